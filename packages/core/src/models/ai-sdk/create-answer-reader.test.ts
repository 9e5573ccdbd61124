import type { JsonRecord } from "@retinue/base/foundation/json-record.ts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { toPrompt } from "../language-model.ts";
import { createAnswerReader, readFinishReason, readUsage } from "./create-answer-reader.ts";

const finish = { type: "finish", finishReason: { unified: "stop" }, usage: undefined };

describe("[MDL-3] parts of a stream become blocks", () => {
  test("blocks may overlap and keep the order of their start", () => {
    const { content } = read([
      { type: "text-delta", id: "t", delta: "Reading" },
      { type: "tool-input-start", id: "c", toolName: "Read" },
      { type: "tool-input-delta", id: "c", delta: '{"a":1}' },
      { type: "tool-call", toolCallId: "c", toolName: "Read", input: '{"a":1}' },
      { type: "text-end", id: "t" },
      finish,
    ]);
    expect(content).toEqual([
      { type: "text", text: "Reading" },
      { type: "tool_use", id: "c", name: "Read", input: { a: 1 } },
    ]);
  });

  test("a text without words makes no block, for it would be refused when sent back", () => {
    const parts = ["text-start", "text-end", "reasoning-start", "reasoning-end"].map((type) => ({
      type,
      id: "0",
    }));
    expect(read([...parts, finish]).content).toEqual([]);
  });

  test("a call that is not streamed comes with one delta", () => {
    const call = { type: "tool-call", toolCallId: "c", toolName: "Read", input: '{"a":1}' };
    const { events, stopReason } = read([call, finish]);
    expect(events.map(({ type }) => type)).toEqual([
      "block-started",
      "input-delta",
      "block-ended",
      "message-ended",
    ]);
    expect(stopReason).toBe("tool_use");
  });

  test.each([
    ["", {}],
    ["[1]", [1]],
    ['{"a":', '{"a":'],
  ])("the input %j is read as %j", (input, expected) => {
    const { content } = read([{ type: "tool-call", toolCallId: "c", toolName: "Read", input }, finish]);
    expect(content).toEqual([{ type: "tool_use", id: "c", name: "Read", input: expected }]);
  });

  test("a call that was cut off by the limit on tokens is closed", () => {
    const { content, stopReason } = read([
      { type: "tool-input-start", id: "c", toolName: "Write" },
      { type: "tool-input-delta", id: "c", delta: '{"text":"ab' },
      { ...finish, finishReason: "length" },
    ]);
    expect(content).toEqual([{ type: "tool_use", id: "c", name: "Write", input: '{"text":"ab' }]);
    expect(stopReason).toBe("max_tokens");
  });

  test("ids that were used before in the conversation are made new", () => {
    const call = { type: "tool-call", toolCallId: "call_0", toolName: "Read", input: "{}" };
    const { content } = read([call, call, finish], ["call_0"]);
    expect(content).toMatchObject([{ id: "call_0_2" }, { id: "call_0_3" }]);
  });

  test("calls that the provider ran itself are not ours", () => {
    const { content, stopReason } = read([
      { type: "tool-input-start", id: "s", toolName: "search", providerExecuted: true },
      { type: "tool-input-delta", id: "s", delta: "{}" },
      { type: "tool-call", toolCallId: "s", toolName: "search", input: "{}", providerExecuted: true },
      finish,
    ]);
    expect([content, stopReason]).toEqual([[], "end_turn"]);
  });

  test("what a provider wants back is kept beside the blocks and returned with each", () => {
    const { content } = read([
      { type: "reasoning-start", id: "r", providerMetadata: { openai: { itemId: "rs_1" } } },
      { type: "reasoning-end", id: "r", providerMetadata: { openai: { encrypted: "xyz" } } },
      { type: "text-delta", id: "t", delta: "Hi" },
      {
        type: "tool-call",
        toolCallId: "c",
        toolName: "Read",
        input: "{}",
        providerMetadata: { google: { thoughtSignature: "s" } },
      },
      finish,
    ]);
    // Transcripts keep messages as JSON.
    const kept: typeof content = JSON.parse(JSON.stringify(content));
    const request = { system: [], tools: [], messages: [{ role: "assistant" as const, content: kept }] };
    const back = (provider: string) => toPrompt(request, { version: "v3", provider, takesResultFiles: true });
    expect(back("p")).toEqual([
      {
        role: "assistant",
        content: [
          { type: "reasoning", text: "", providerOptions: { openai: { itemId: "rs_1", encrypted: "xyz" } } },
          { type: "text", text: "Hi" },
          {
            type: "tool-call",
            toolCallId: "c",
            toolName: "Read",
            input: {},
            providerOptions: { google: { thoughtSignature: "s" } },
          },
        ],
      },
    ]);
    expect(back("another")).toEqual([
      {
        role: "assistant",
        content: [
          { type: "text", text: "Hi" },
          { type: "tool-call", toolCallId: "c", toolName: "Read", input: {} },
        ],
      },
    ]);
  });

  test("a stream without its finish was cut", () => {
    expect(() => read([{ type: "text-delta", id: "t", delta: "Hi" }])).toThrow(
      expect.objectContaining({ code: "stream-cut" }),
    );
  });

  test("tokens are estimated where the server counts none", () => {
    expect(read([{ type: "text-delta", id: "t", delta: "four" }, finish]).usage).toEqual({
      inputTokens: 42,
      outputTokens: 1,
      cacheReadTokens: 0,
      cacheWriteTokens: 0,
    });
  });

  test("whatever the parts are, every block that starts ends, and the message holds them in order", () => {
    const kinds = [
      "text-start",
      "text-delta",
      "text-end",
      "reasoning-delta",
      "reasoning-end",
      "tool-input-start",
    ];
    const part = fc.record({
      type: fc.constantFrom(...kinds, "tool-input-delta", "tool-call", "raw"),
      id: fc.constantFrom("a", "b"),
      toolCallId: fc.constantFrom("a", "b"),
      delta: fc.string(),
      input: fc.string(),
    });
    fc.assert(
      fc.property(fc.array(part), (parts) => {
        const { events, content } = read([...parts, finish]);
        const indexes = (type: string) =>
          events.flatMap((event) => (event.type === type && "index" in event ? [event.index] : []));
        expect(indexes("block-ended").toSorted()).toEqual(indexes("block-started").toSorted());
        const ended = events.filter((event) => event.type === "block-ended");
        expect(ended.toSorted((a, b) => a.index - b.index).map(({ block }) => block)).toEqual(content);
      }),
    );
  });
});

test.each([
  [
    { inputTokens: { total: 10, noCache: 3, cacheRead: 5, cacheWrite: 2 }, outputTokens: { total: 4 } },
    [3, 5, 2, 4],
  ],
  [{ inputTokens: { total: 10, cacheRead: 4 }, outputTokens: { total: 4 } }, [6, 4, 0, 4]],
  [{ inputTokens: 10, cachedInputTokens: 4, outputTokens: 4 }, [6, 4, 0, 4]],
  [{ inputTokens: 2, cachedInputTokens: 4, outputTokens: -1 }, [0, 4, 0, 0]],
  [{ inputTokens: {}, outputTokens: {} }, undefined],
  [null, undefined],
])("[MDL-3] the usage %j is read as %j", (usage, expected) => {
  const read = readUsage(usage);
  const { inputTokens, cacheReadTokens, cacheWriteTokens, outputTokens } = read ?? {};
  expect(read && [inputTokens, cacheReadTokens, cacheWriteTokens, outputTokens]).toEqual(expected);
});

test.each([
  ["stop", false, "end_turn"],
  ["stop", true, "tool_use"],
  ["tool-calls", true, "tool_use"],
  [{ unified: "tool-calls", raw: "x" }, false, "end_turn"],
  [{ unified: "length" }, true, "max_tokens"],
  ["content-filter", false, "refusal"],
  [{ unified: "other", raw: "model_context_window_exceeded" }, false, "model_context_window_exceeded"],
  ["unknown", false, "end_turn"],
  ["error", false, "server-error"],
  [{ unified: "interrupted" }, false, "stream-cut"],
])("[MDL-3] a finish by %j with calls %s is %s", (finishReason, hasCalls, expected) => {
  const reading = readFinishReason(finishReason, hasCalls);
  expect(reading.type === "stopped" ? reading.reason : reading.code).toBe(expected);
});

function read(parts: readonly JsonRecord[], earlierCallIds: readonly string[] = []) {
  const reader = createAnswerReader({
    id: "m",
    provider: "p",
    model: "x",
    earlierCallIds,
    estimateInput: () => 42,
  });
  const events = [...parts.flatMap((part) => reader.read(part)), ...reader.end()];
  const end = events.at(-1);
  if (end?.type !== "message-ended") throw new Error("No end.");
  return { events, content: end.message.content, stopReason: end.stopReason, usage: end.usage };
}
