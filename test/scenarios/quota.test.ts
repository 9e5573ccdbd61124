import type { ChildProcess } from "node:child_process";
import { textOf } from "@retinue/core/conversation/message.ts";
import type { ModelRequest } from "@retinue/core/models/model.ts";
import { becomes } from "@retinue/testing/becomes.ts";
import { type FakeProvider, startFakeProvider } from "@retinue/testing/fake-provider.ts";
import type { StepAnswer } from "@retinue/testing/script.ts";
import { describe, expect, test } from "vitest";
import { createPlace, type Place, runCommand, runInProcess } from "./run-command.ts";

const callsIn = ({ messages }: ModelRequest): number =>
  messages.flatMap(({ role, content }) =>
    role === "assistant" && typeof content !== "string"
      ? content.filter((block) => block.type === "tool_use")
      : [],
  ).length;

const promptOf = ({ messages }: ModelRequest): string =>
  messages[0] === undefined ? "" : textOf(messages[0]);

/** Reads one file after another, then ends; each file once. */
function reading(count: number) {
  return (request: ModelRequest): StepAnswer => {
    const last = request.messages.at(-1);
    if (last !== undefined && textOf(last).includes("Hand in what you have")) return { text: "Handed in." };
    const done = callsIn(request);
    if (done >= count) return { text: `All read for: ${promptOf(request).slice(0, 7)}` };
    return { calls: [{ name: "Read", input: { file_path: `file-${done}.txt` } }] };
  };
}

function createQuotaPlace(files: number): Place {
  const place = createPlace();
  for (let number = 0; number < files; number += 1) place.write(`file-${number}.txt`, `text ${number}`);
  return place;
}

const settings = JSON.stringify({ quota: { wait: true } });
const keyed = (provider: FakeProvider) => ({
  environment: {
    ANTHROPIC_BASE_URL: provider.url,
    ANTHROPIC_API_KEY: "key",
    ANTHROPIC_MODEL: "claude-sonnet-4-5",
  },
});

const failed = ({ requests }: FakeProvider): number =>
  requests.filter(({ status }) => status === "failed").length;

describe("a quota of a key, over processes [LIM-7]", () => {
  test("two processes share it: both finish, and a window has at most one refusal", async () => {
    await using provider = await startFakeProvider({
      respond: reading(6),
      quota: { requests: 5, everyMs: 2500 },
    });
    const place = createQuotaPlace(6);
    const run = (prompt: string) =>
      runCommand(place, ["-p", prompt, "--settings", settings], keyed(provider));
    const [one, two] = await Promise.all([run("One, read."), run("Two, read.")]);
    expect(one, one.err).toMatchObject({ code: 0, out: "All read for: One, re\n" });
    expect(two, two.err).toMatchObject({ code: 0, out: "All read for: Two, re\n" });
    expect(one.err + two.err).toContain("The quota of anthropic is used up; waiting");
    // Each new window begins with a request that was answered.
    const windows = Math.ceil(provider.requests.length / 5) + 1;
    expect(failed(provider)).toBeLessThanOrEqual(windows);
    for (const id of place.transcripts().keys()) {
      const replayed = await runInProcess(place, ["replay", id], {});
      expect(replayed, replayed.out + replayed.err).toMatchObject({ code: 0 });
    }
  });

  test("a run that prints JSON at its end says on stderr meanwhile that it waits", async () => {
    await using provider = await startFakeProvider({
      respond: reading(1),
      quota: { requests: 1, everyMs: 1200 },
    });
    const words = ["-p", "Gamma, read.", "--settings", settings, "--output-format", "json"];
    const { code, out, err } = await runInProcess(createQuotaPlace(1), words, keyed(provider));
    expect({ code, result: JSON.parse(out).result }).toEqual({ code: 0, result: "All read for: Gamma, " });
    expect(err).toContain("The quota of anthropic is used up; waiting");
    expect(err).toContain("There is a new quota of anthropic");
  });

  test("tasks shows who waits and until when, and after a crash resume --waiting continues without repeating", async () => {
    await using provider = await startFakeProvider({
      respond: reading(3),
      quota: { requests: 2, everyMs: 6000 },
    });
    const place = createQuotaPlace(3);
    let child: ChildProcess | undefined;
    const crashed = runCommand(place, ["-p", "Alpha, read.", "--settings", settings], {
      ...keyed(provider),
      started: (process) => {
        child = process;
      },
    });
    const listed = async () => {
      const { out } = await runInProcess(place, ["tasks", "--json"], {});
      return JSON.parse(out).waiting?.[0];
    };
    await becomes(async () => (await listed()) !== undefined);
    expect(await listed()).toMatchObject({ provider: "anthropic", isLive: true });
    const { out: table } = await runInProcess(place, ["tasks"], {});
    expect(table).toMatch(
      /^session [0-9a-f-]{36} {2}Alpha, read\. {2}waiting-for-quota of anthropic until \d\d:\d\d\n/,
    );
    child?.kill("SIGKILL");
    await crashed;
    expect(await listed()).toMatchObject({ isLive: false });
    const before = provider.requests.length;
    const { code, err } = await runCommand(
      place,
      ["resume", "--waiting", "--settings", settings],
      keyed(provider),
    );
    expect({ code }, err).toEqual({ code: 0 });
    expect(await listed()).toBeUndefined();
    const made = provider.requests.slice(before).filter(({ status }) => status === "answered");
    // Two files were read before; the third is read after, and none again.
    const read = made.flatMap(({ request }) => callsIn(request));
    expect(read.every((calls) => calls >= 1)).toBe(true);
    const results = provider.requests.at(-1)?.request.messages ?? [];
    expect(JSON.stringify(results).match(/text 0/g)).toHaveLength(1);
    const again = await runInProcess(place, ["resume", "--waiting"], {});
    expect(again).toMatchObject({ code: 0, err: expect.stringContaining("Nothing in this folder waits") });
  });

  test("wrong values of the setting are reported with their place", async () => {
    const place = createPlace();
    place.write(".claude/settings.json", '{\n  "quota": { "wait": true, "maxUsdUnattended": 0 }\n}\n');
    const { out, err } = await runInProcess(place, ["agents", "check"], {});
    expect(out + err).toContain("settings.json:2");
    const said = (out + err).replace(/\s+/g, " ");
    expect(said).toContain('"quota.maxUsdUnattended" cannot be read: it must be a number above 0, but is 0');
  });
});
