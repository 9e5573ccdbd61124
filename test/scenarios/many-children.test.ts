import { readdirSync } from "node:fs";
import { type Message, textOf } from "@retinue/core/conversation/message.ts";
import type { RuntimeOptions } from "@retinue/core/kernel/options/runtime-options.ts";
import { createSampleRuntime } from "@retinue/testing/sample-runtime.ts";
import { describe, expect, onTestFinished, test } from "vitest";

const all = 200;
const limitMs = 60_000;

/** Every start and end that hooks are notified of, by the id of the child. */
function createHearing() {
  const received = new Map<string, string[]>();
  const hooks: RuntimeOptions["hooks"] = (["SubagentStart", "SubagentStop"] as const).map((event) => ({
    event,
    run: async (input) => {
      const id = String(input["agent_id"]);
      received.set(id, [...(received.get(id) ?? []), event]);
      return {};
    },
  }));
  return { received, hooks };
}

function collectWarnings(): string[] {
  const warnings: string[] = [];
  const listen = (warning: Error) => void warnings.push(warning.name);
  process.on("warning", listen);
  onTestFinished(() => void process.off("warning", listen));
  return warnings;
}

function openFiles(): number {
  return process.platform === "linux" ? readdirSync("/proc/self/fd").length : 0;
}

/** Each child uses a tool; for every tenth it is one that starts a process. */
function callOf([first]: readonly Message[]) {
  return /Look \d*0\./.test(JSON.stringify(first))
    ? { name: "Glob", input: { pattern: "*.none" } }
    : { name: "TodoWrite", input: { todos: [] } };
}

async function runMany(
  concurrency: number,
  environment: Readonly<Record<string, string>>,
  transcripts: boolean,
) {
  const { received, hooks } = createHearing();
  const warnings = collectWarnings();
  await using sample = await createSampleRuntime(
    [
      {
        times: "any",
        respond: ({ messages }) => (messages.length === 1 ? { calls: [callOf(messages)] } : "Done."),
      },
    ],
    { env: { PATH: process.env["PATH"], ...environment }, hooks, transcripts },
  );
  await using session = await sample.runtime.open();
  const ended = new Map<string, number>();
  const watching = (async () => {
    for await (const { event, state } of session.tasks.watch())
      if (event.type === "run-ended") ended.set(state.id, (ended.get(state.id) ?? 0) + 1);
  })();
  const before = openFiles();
  const statuses: string[] = [];
  let most = 0;
  for (let done = 0; done < all; done += concurrency) {
    const handles = Array.from({ length: concurrency }, (_, index) =>
      session.spawn("general-purpose", `Look ${done + index}.`),
    );
    await Promise.all(handles.map(({ started }) => started));
    most = Math.max(most, session.tasks.list().filter(({ status }) => status === "running").length);
    for (const { status } of await Promise.all(handles.map(({ result }) => result))) statuses.push(status);
  }
  const after = openFiles();
  const left = session.tasks.list().filter(({ endedAt }) => endedAt === undefined);
  await session[Symbol.asyncDispose]();
  await watching;
  return { statuses, ended, received, warnings, left, most, files: after - before };
}

describe("[LIM-1, SPN-6, HKS-8] hundreds of children in one process leave nothing behind", () => {
  test.each([
    ["ten at a time, each with its transcript", 10, {}, true],
    [
      "a hundred at a time, where the limit is raised",
      100,
      { CLAUDE_CODE_MAX_CONCURRENT_SUBAGENTS: "100" },
      false,
    ],
  ] as const)(
    "%s",
    async (_title, concurrency, environment, transcripts) => {
      const { statuses, ended, received, warnings, left, most, files } = await runMany(
        concurrency,
        environment,
        transcripts,
      );
      expect(statuses).toEqual(Array.from({ length: all }, () => "completed"));
      expect(ended.size).toBe(all);
      expect([...ended.values()].filter((count) => count !== 1)).toEqual([]);
      expect(received.size).toBe(all);
      const wrong = [...received.values()].filter((events) => events.join() !== "SubagentStart,SubagentStop");
      expect(wrong).toEqual([]);
      expect(left).toEqual([]);
      expect(most).toBeGreaterThan(1);
      expect(files).toBeLessThan(10);
      expect(warnings).toEqual([]);
    },
    limitMs,
  );

  test("[LIM-1] more than may run wait from code, in the order of the calls, and are refused in the background", async () => {
    await using sample = await createSampleRuntime([
      { match: "wait", text: "Never", failure: "stall", after: 1, times: 10 },
      { text: "Done.", times: 3 },
    ]);
    await using session = await sample.runtime.open();
    const handles = Array.from({ length: 10 }, () => session.spawn("Explore", "wait"));
    await Promise.all(handles.map(({ started }) => started));
    await expect(session.spawn("Explore", "one more", { background: true }).result).rejects.toThrow(
      "max concurrent agents reached (10)",
    );
    const waiting = ["first", "second", "third"].map((prompt) => session.spawn("Explore", prompt));
    await Promise.all(waiting.map(({ started }) => started));
    expect(waiting.map((handle) => handle.state()?.queuePosition)).toEqual([1, 2, 3]);
    await handles[0]?.stop();
    const ended = await Promise.all(waiting.map(({ result }) => result));
    expect(ended.map(({ status }) => status)).toEqual(["completed", "completed", "completed"]);
    expect(sample.requests.slice(10).map(({ messages }) => messages.slice(0, 1).map(textOf).join())).toEqual([
      expect.stringContaining("first"),
      expect.stringContaining("second"),
      expect.stringContaining("third"),
    ]);
  });
});
