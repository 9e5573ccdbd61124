import { expect, test } from "vitest";
import type { ToolUseBlock } from "../conversation/message.ts";
import type { RunEvent } from "../conversation/run-event.ts";
import { createTranscriptWriter } from "./transcript-writer.ts";

const call = (id: string): ToolUseBlock => ({ type: "tool_use", id, name: "Bash", input: {} });
const usage = { inputTokens: 1, outputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0 };

function write(events: readonly (RunEvent | number)[]): readonly Record<string, unknown>[] {
  const lines: Record<string, unknown>[] = [];
  let now = 0;
  let ids = 0;
  const uuid = (): string => {
    ids += 1;
    return `id-${ids}`;
  };
  const writer = createTranscriptWriter({
    log: { append: (texts) => lines.push(...texts.map((text) => JSON.parse(text))) },
    ids: { uuid },
    now: () => now,
    facts: { sessionId: "s", cwd: "/", version: "1", entrypoint: "cli" },
  });
  for (const event of events) {
    if (typeof event === "number") now = event;
    else writer.record(event);
  }
  return lines;
}

const answered: RunEvent = {
  type: "assistant-answered",
  id: "m",
  model: "x",
  message: { role: "assistant", content: [call("one"), call("two")] },
  stopReason: "tool_use",
  usage,
  durationMs: 1234.4,
};
const results: RunEvent = {
  type: "user-added",
  origin: "tool-results",
  message: {
    role: "user",
    content: [
      { type: "tool_result", tool_use_id: "one", content: "done" },
      { type: "tool_result", tool_use_id: "two", content: "no", is_error: true },
    ],
  },
};

test("[LIM-4] the line of a result has when its call began, how long it took, and why it was refused", () => {
  const [first, , one, two] = write([
    answered,
    1000,
    { type: "call-started", call: call("one"), effect: "read" },
    3000,
    { type: "call-finished", call: call("one"), isError: false, durationMs: 1999.6, decidedMs: 3.2 },
    { type: "call-finished", call: call("two"), isError: true, durationMs: 0, asked: true, denied: "a rule" },
    results,
  ]);
  expect(first).toMatchObject({ type: "assistant", durationMs: 1234 });
  expect(one?.["toolCall"]).toEqual({ startedAt: 1000, durationMs: 2000, decidedMs: 3 });
  expect(two?.["toolCall"]).toEqual({ durationMs: 0, asked: true, denied: "a rule" });
});

test("[LIM-4] a call without such facts has a line without them, also when its id was used before", () => {
  const used: RunEvent = { type: "call-finished", call: call("one"), isError: false, durationMs: 5 };
  const lines = write([answered, used, answered, results]);
  expect(lines.filter((line) => "toolCall" in line)).toEqual([]);
});

test("[LIM-4] a request that is made again is a line in the words existing viewers read", () => {
  const [retry] = write([
    {
      type: "model-retried",
      attempt: 1,
      maxAttempts: 10,
      delayMs: 1500.5,
      code: "overloaded",
      status: 529,
      message: "busy",
    },
  ]);
  expect(retry).toMatchObject({
    type: "system",
    subtype: "api_error",
    error: { code: "overloaded", status: 529, message: "busy" },
    retryInMs: 1501,
    retryAttempt: 1,
    maxRetries: 10,
  });
});
