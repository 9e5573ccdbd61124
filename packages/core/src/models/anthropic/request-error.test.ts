import { describe, expect, test } from "vitest";
import { readRetryAfter } from "../read-retry-after.ts";
import { connectionError, requestError, statusError, streamError } from "./request-error.ts";

function answer(status: number, type: string, message: string, headers: Record<string, string> = {}) {
  const all = new Map(Object.entries({ "request-id": "req_9", ...headers }));
  const body = JSON.stringify({ type: "error", error: { type, message } });
  return statusError({ status, text: body }, (name) => all.get(name));
}

describe("errors of requests [MDL-3] [MDL-6]", () => {
  test.each([
    [400, "invalid_request_error", "max_tokens: must be positive", "invalid-request", false],
    [
      400,
      "invalid_request_error",
      "prompt is too long: 210000 tokens > 200000 maximum",
      "context-too-long",
      false,
    ],
    [
      400,
      "invalid_request_error",
      "input length and `max_tokens` exceed context limit: 1 + 2 > 2",
      "context-too-long",
      false,
    ],
    [401, "authentication_error", "invalid x-api-key", "unauthorized", false],
    [403, "permission_error", "no", "unauthorized", false],
    [404, "not_found_error", "model: claude-nope", "not-found", false],
    [408, "", "timeout", "server-error", true],
    [409, "", "conflict", "server-error", true],
    [425, "", "early", "server-error", true],
    [413, "request_too_large", "Request exceeds the maximum size", "context-too-long", false],
    [422, "", "unprocessable", "invalid-request", false],
    [429, "rate_limit_error", "slow down", "rate-limited", true],
    [500, "api_error", "oops", "server-error", true],
    [503, "overloaded_error", "busy", "overloaded", true],
    [529, "overloaded_error", "busy", "overloaded", true],
  ])("status %i %s %j is %s", (status, type, message, code, mayPass) => {
    const failure = answer(status, type, message);
    expect(failure).toMatchObject({ code, status, mayPass, requestId: "req_9" });
    expect(failure.message).toContain(message);
  });

  test("advice names what to look at", () => {
    expect(answer(401, "", "").advice).toContain("ANTHROPIC_API_KEY");
    expect(answer(404, "", "").advice).toContain("model's name");
  });

  test("what the provider asks us to wait is kept", () => {
    expect(answer(429, "", "", { "retry-after": "7" }).retryAfterMs).toBe(7000);
  });

  test.each([
    ["", "The provider answered 502: status code (no body)"],
    [
      "<html><title>Bad gateway</title></html>",
      'The provider answered 502: an HTML page of 39 characters titled "Bad gateway"',
    ],
    ["upstream is gone", "The provider answered 502: upstream is gone"],
    ['"just a text"', 'The provider answered 502: "just a text"'],
    ['{"error":"boom"}', "The provider answered 502: boom"],
    ['{"message":"boom"}', "The provider answered 502: boom"],
    ['{"detail":"boom"}', 'The provider answered 502: {"detail":"boom"}'],
  ])("the body %j is no trouble", (body, message) => {
    expect(statusError({ status: 502, text: body }, () => undefined)).toMatchObject({
      code: "server-error",
      status: 502,
      message,
    });
  });

  test("the host that answered is named", () => {
    const refused = { status: 401, text: "{}", host: "api.anthropic.com" };
    expect(statusError(refused, () => undefined).message).toBe("api.anthropic.com answered 401: {}");
  });

  test("an id of the request is taken from the body where no header has it", () => {
    const body = '{"type":"error","error":{"type":"api_error","message":"no"},"request_id":"req_b"}';
    expect(statusError({ status: 500, text: body }, () => undefined).requestId).toBe("req_b");
  });

  test.each([
    ["https://api.anthropic.com", "ENOTFOUND", "Cannot reach api.anthropic.com (ENOTFOUND).", undefined],
    [
      "https://api.anthropic.com",
      "ECONNREFUSED",
      "Cannot reach api.anthropic.com (ECONNREFUSED).",
      undefined,
    ],
    ["http://127.0.0.1:9/v1", "ECONNREFUSED", "Cannot reach 127.0.0.1:9 (ECONNREFUSED).", 3],
    ["http://localhost:11434", "ECONNREFUSED", "Cannot reach localhost:11434 (ECONNREFUSED).", 3],
    ["http://[::1]:9", "ECONNREFUSED", "Cannot reach [::1]:9 (ECONNREFUSED).", 3],
    ["http://127.0.0.1:9", "ECONNRESET", "Cannot reach 127.0.0.1:9 (ECONNRESET).", undefined],
  ])("no connection to %s (%s) names host and cause", (address, code, message, maxAttempts) => {
    const cause = Object.assign(new Error("connect failed"), { code });
    const several = new AggregateError([cause, cause]);
    for (const error of [cause, new TypeError("fetch failed", { cause }), new Error("x", { cause: several })])
      expect(connectionError(error, address)).toMatchObject({
        code: "connection-failed",
        mayPass: true,
        message,
        maxAttempts,
      });
  });

  test.each([
    "ENOTFOUND",
    "EAI_AGAIN",
    "ENETUNREACH",
  ])("%s is not tried for a minute where nothing was reached before", (code) => {
    const cause = Object.assign(new Error("connect failed"), { code });
    expect(connectionError(cause, "https://nohost.invalid").maxAttemptsUnreached).toBe(5);
    const reset = Object.assign(new Error("connect failed"), { code: "ECONNRESET" });
    expect(connectionError(reset, "https://nohost.invalid").maxAttemptsUnreached).toBeUndefined();
  });

  test("a connection that takes too long is a stall", () => {
    const slow = Object.assign(new Error("connect ETIMEDOUT 10.0.0.1:443"), { code: "ETIMEDOUT" });
    for (const error of [slow, new TypeError("fetch failed", { cause: slow })])
      expect(connectionError(error, "https://x")).toMatchObject({ code: "stalled", mayPass: true });
  });

  test("anything else is a request that could not be sent, and is not repeated", () => {
    expect(requestError(new TypeError("Invalid URL"), "nonsense")).toMatchObject({
      code: "invalid-request",
      mayPass: false,
      message: expect.stringContaining("nonsense"),
    });
    expect(requestError(undefined, "u").code).toBe("invalid-request");
  });

  test("an error while reading the answer is a cut", () => {
    expect(streamError(new Error("aborted"), "r")).toMatchObject({ code: "stream-cut", requestId: "r" });
  });
});

describe("readRetryAfter [MDL-6]", () => {
  const date = "Sun, 01 Nov 2026 10:00:00 GMT";
  test.each<[Record<string, string>, number | undefined]>([
    [{}, undefined],
    [{ "retry-after": "0.5" }, 500],
    [{ "retry-after": "0" }, 0],
    [{ "retry-after": "soon" }, undefined],
    [{ "retry-after": "-3" }, undefined],
    [{ "retry-after": "Sun, 01 Nov 2026 10:00:09 GMT", date }, 9000],
    [{ "retry-after": "Sun, 01 Nov 2026 10:00:09 GMT" }, undefined],
    [{ "retry-after": "Sun, 01 Nov 2026 09:59:00 GMT", date }, undefined],
    [{ "retry-after-ms": "120", "retry-after": "9" }, 120],
    [
      {
        "anthropic-ratelimit-requests-remaining": "0",
        "anthropic-ratelimit-requests-reset": "2026-11-01T10:00:20Z",
        date,
      },
      20_000,
    ],
    [
      {
        "anthropic-ratelimit-requests-remaining": "3",
        "anthropic-ratelimit-requests-reset": "2026-11-01T10:00:20Z",
        date,
      },
      undefined,
    ],
    [
      {
        "anthropic-ratelimit-requests-remaining": "0",
        "anthropic-ratelimit-requests-reset": "2026-11-01T10:00:20Z",
        "anthropic-ratelimit-tokens-remaining": "0",
        "anthropic-ratelimit-tokens-reset": "2026-11-01T10:00:40Z",
        date,
      },
      40_000,
    ],
  ])("%j is %j", (headers, expected) => {
    expect(readRetryAfter((name) => headers[name])).toBe(expected);
  });
});
