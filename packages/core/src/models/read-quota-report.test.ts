import { describe, expect, test } from "vitest";
import { readQuotaReport, readQuotaReset } from "./read-quota-report.ts";

const now = Date.parse("2026-11-18T20:00:00Z");
const headers = (values: Record<string, string>) => (name: string) =>
  ({ date: new Date(now).toUTCString(), ...values })[name];
const inSeconds = (seconds: number): string => String((now + seconds * 1000) / 1000);
const atMoment = (seconds: number): string => new Date(now + seconds * 1000).toISOString();

describe("headers about a quota [LIM-7]", () => {
  test.each([
    [
      "the window of a subscription that is fuller",
      {
        "anthropic-ratelimit-unified-5h-utilization": "0.4",
        "anthropic-ratelimit-unified-5h-reset": inSeconds(600),
        "anthropic-ratelimit-unified-7d-utilization": "0.97",
        "anthropic-ratelimit-unified-7d-reset": inSeconds(86_400),
      },
      { used: 0.97, resetsInMs: 86_400_000 },
    ],
    [
      "requests of a day",
      {
        "anthropic-ratelimit-requests-limit": "1000",
        "anthropic-ratelimit-requests-remaining": "250",
        "anthropic-ratelimit-requests-reset": atMoment(7200),
      },
      { used: 0.75, resetsInMs: 7_200_000 },
    ],
    [
      "tokens of a day, as OpenAI writes them",
      {
        "x-ratelimit-limit-tokens": "100",
        "x-ratelimit-remaining-tokens": "0",
        "x-ratelimit-reset-tokens": "6h12m1.5s",
      },
      { used: 1, resetsInMs: (6 * 3600 + 12 * 60 + 1.5) * 1000 },
    ],
    [
      "nothing of requests of a minute",
      {
        "x-ratelimit-limit-requests": "60",
        "x-ratelimit-remaining-requests": "0",
        "x-ratelimit-reset-requests": "1m0s",
      },
      undefined,
    ],
    ["nothing where there are no such headers", {}, undefined],
    [
      "nothing where they are no numbers",
      {
        "anthropic-ratelimit-unified-5h-utilization": "much",
        "anthropic-ratelimit-unified-5h-reset": "soon",
        "x-ratelimit-limit-requests": "",
        "x-ratelimit-remaining-requests": "",
        "x-ratelimit-reset-requests": "later",
      },
      undefined,
    ],
  ])("%s", (_title, values, expected) => {
    expect(readQuotaReport(headers(values as Record<string, string>))).toEqual(expected);
  });

  test.each([
    ["claude-opus-4-1", { used: 0.99, resetsInMs: 3_600_000 }],
    ["claude-sonnet-4-5", { used: 0.2, resetsInMs: 60_000 }],
    ["", { used: 0.2, resetsInMs: 60_000 }],
  ])("the window of a family of models counts for that family alone: %s", (model, expected) => {
    const values = {
      "anthropic-ratelimit-unified-5h-utilization": "0.2",
      "anthropic-ratelimit-unified-5h-reset": inSeconds(60),
      "anthropic-ratelimit-unified-7d_opus-utilization": "0.99",
      "anthropic-ratelimit-unified-7d_opus-reset": inSeconds(3600),
    };
    expect(readQuotaReport(headers(values), model)).toEqual(expected);
  });

  test.each([
    [
      "a rejected subscription",
      {
        "anthropic-ratelimit-unified-status": "rejected",
        "anthropic-ratelimit-unified-reset": inSeconds(90),
      },
      90_000,
    ],
    [
      "by the clock of the one that answers",
      {
        date: new Date(now + 30_000).toUTCString(),
        "anthropic-ratelimit-unified-status": "rejected",
        "anthropic-ratelimit-unified-reset": inSeconds(90),
      },
      60_000,
    ],
    ["a retry-after beyond what a request waits", { "retry-after": "7200" }, 7_200_000],
    ["a retry-after that a request waits anyway", { "retry-after": "30" }, undefined],
    [
      "a used-up window of OpenAI's",
      {
        "x-ratelimit-limit-requests": "200",
        "x-ratelimit-remaining-requests": "0",
        "x-ratelimit-reset-requests": "11h",
      },
      11 * 3_600_000,
    ],
    ["no time at all", {}, undefined],
    ["a time that no provider counts", { "retry-after": "1e18" }, undefined],
    [
      "a moment that no calendar has",
      {
        "anthropic-ratelimit-unified-status": "rejected",
        "anthropic-ratelimit-unified-reset": "99999999999999",
        "retry-after": "60",
      },
      60_000,
    ],
    [
      "a moment without end",
      {
        "anthropic-ratelimit-unified-status": "rejected",
        "anthropic-ratelimit-unified-reset": "Infinity",
      },
      undefined,
    ],
  ])("a refusal: %s", (_title, values, expected) => {
    expect(readQuotaReset(headers(values as Record<string, string>))).toBe(expected);
  });
});
