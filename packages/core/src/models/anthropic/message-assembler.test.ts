import { describe, expect, test } from "vitest";
import type { ModelEvent } from "../model.ts";
import type { ModelError } from "../model-error.ts";
import { createMessageAssembler } from "./message-assembler.ts";

const start = {
  type: "message_start",
  message: {
    id: "msg_1",
    model: "claude-x",
    usage: {
      input_tokens: 5,
      cache_read_input_tokens: 100,
      cache_creation_input_tokens: 20,
      output_tokens: 1,
    },
  },
};

function block(index: number, content: object, ...deltas: object[]): object[] {
  return [
    { type: "content_block_start", index, content_block: content },
    ...deltas.map((delta) => ({ type: "content_block_delta", index, delta })),
    { type: "content_block_stop", index },
  ];
}

function stop(reason: string | null, usage: object = { output_tokens: 9 }): object[] {
  return [{ type: "message_delta", delta: { stop_reason: reason }, usage }, { type: "message_stop" }];
}

function assemble(events: readonly object[]): readonly ModelEvent[] {
  const assembler = createMessageAssembler("req_1");
  const taken = events.flatMap((event) => assembler.take({ ...event }) ?? []);
  const last = assembler.end();
  return last === undefined ? taken : [...taken, last];
}

function lastOf(events: readonly ModelEvent[]): Extract<ModelEvent, { type: "message-ended" }> {
  const last = events.at(-1);
  if (last?.type !== "message-ended") throw new Error(`ended with ${last?.type}`);
  return last;
}

function errorOf(events: readonly object[]): ModelError {
  try {
    assemble(events);
  } catch (error) {
    return error as ModelError;
  }
  throw new Error("nothing was thrown");
}

describe("createMessageAssembler [MDL-3]", () => {
  test("deltas are passed on and the whole message comes last, with usage split by cache", () => {
    const events = assemble([
      start,
      { type: "ping" },
      ...block(
        0,
        { type: "thinking", thinking: "", signature: "" },
        { type: "thinking_delta", thinking: "hm" },
        { type: "signature_delta", signature: "sig" },
      ),
      ...block(
        1,
        { type: "text", text: "" },
        { type: "text_delta", text: "a" },
        { type: "text_delta", text: "b" },
      ),
      ...block(
        2,
        { type: "tool_use", id: "t1", name: "Read", input: {} },
        { type: "input_json_delta", partial_json: '{"pa' },
        { type: "input_json_delta", partial_json: 'th":1}' },
      ),
      ...stop("tool_use"),
    ]);
    expect(events.map(({ type }) => type)).toEqual([
      "message-started",
      "block-started",
      "thinking-delta",
      "block-ended",
      "block-started",
      "text-delta",
      "text-delta",
      "block-ended",
      "block-started",
      "input-delta",
      "input-delta",
      "block-ended",
      "message-ended",
    ]);
    expect(lastOf(events)).toEqual({
      type: "message-ended",
      id: "msg_1",
      model: "claude-x",
      requestId: "req_1",
      stopReason: "tool_use",
      usage: { inputTokens: 5, outputTokens: 9, cacheReadTokens: 100, cacheWriteTokens: 20 },
      message: {
        role: "assistant",
        content: [
          { type: "thinking", thinking: "hm", signature: "sig" },
          { type: "text", text: "ab" },
          { type: "tool_use", id: "t1", name: "Read", input: { path: 1 } },
        ],
      },
    });
  });

  test("server tools, their results, citations and redacted thinking are kept as they came", () => {
    const result = { type: "web_search_tool_result", tool_use_id: "s1", content: [{ url: "u" }] };
    const events = assemble([
      start,
      ...block(0, { type: "redacted_thinking", data: "xx" }),
      ...block(
        1,
        { type: "server_tool_use", id: "s1", name: "web_search", input: {} },
        { type: "input_json_delta", partial_json: '{"query":"q"}' },
      ),
      ...block(2, result),
      ...block(
        3,
        { type: "text", text: "", citations: [] },
        { type: "text_delta", text: "said" },
        { type: "citations_delta", citation: { url: "u" } },
      ),
      ...stop("end_turn"),
    ]);
    expect(lastOf(events).message.content).toEqual([
      { type: "redacted_thinking", data: "xx" },
      { type: "server_tool_use", id: "s1", name: "web_search", input: { query: "q" } },
      result,
      { type: "text", text: "said", citations: [{ url: "u" }] },
    ]);
  });

  test("events, deltas and blocks of kinds yet unknown never break a message", () => {
    const unknown = { type: "hologram", data: 3 };
    const events = assemble([
      start,
      { type: "weather_report" },
      ...block(0, unknown, { type: "hologram_delta", x: 1 }),
      ...block(1, { type: "text", text: "" }, { type: "glow_delta" }, { type: "text_delta", text: "ok" }),
      ...stop("end_turn"),
    ]);
    expect(lastOf(events).message.content).toEqual([
      { type: "provider", provider: "anthropic", block: unknown },
      { type: "text", text: "ok" },
    ]);
  });

  test.each([
    "end_turn",
    "max_tokens",
    "stop_sequence",
    "pause_turn",
    "refusal",
    "model_context_window_exceeded",
  ])("the stop reason %s is passed on", (reason) => {
    expect(lastOf(assemble([start, ...stop(reason)])).stopReason).toBe(reason);
  });

  test("a stop reason that is new is read from whether the message holds calls", () => {
    const call = block(0, { type: "tool_use", id: "t", name: "Read", input: {} });
    expect(lastOf(assemble([start, ...stop("novel")])).stopReason).toBe("end_turn");
    expect(lastOf(assemble([start, ...call, ...stop("novel")])).stopReason).toBe("tool_use");
  });

  test("the last usage counts, and what it leaves out keeps its value", () => {
    const usage = { input_tokens: null, output_tokens: 7, cache_read_input_tokens: 130 };
    expect(lastOf(assemble([start, ...stop("end_turn", usage)])).usage).toEqual({
      inputTokens: 5,
      outputTokens: 7,
      cacheReadTokens: 130,
      cacheWriteTokens: 20,
    });
  });

  test("a call whose input is no JSON is kept as it was written, and nothing is asked for again [MDL-6]", () => {
    const half = block(
      1,
      { type: "tool_use", id: "t", name: "Write", input: {} },
      { type: "input_json_delta", partial_json: '{"content": "long' },
    );
    const text = block(0, { type: "text", text: "" }, { type: "text_delta", text: "so:" });
    const contentBy = (reason: string) =>
      lastOf(assemble([start, ...text, ...half, ...stop(reason)])).message.content;
    const call = { type: "tool_use", id: "t", name: "Write", input: '{"content": "long' };
    for (const reason of ["tool_use", "max_tokens"])
      expect(contentBy(reason)).toEqual([{ type: "text", text: "so:" }, call]);
    for (const reason of ["refusal", "pause_turn", "model_context_window_exceeded"])
      expect(contentBy(reason)).toEqual([{ type: "text", text: "so:" }]);
  });

  test("input that is JSON but no object is kept too [MDL-6]", () => {
    const call = block(
      0,
      { type: "tool_use", id: "t", name: "X" },
      { type: "input_json_delta", partial_json: "[1]" },
    );
    expect(lastOf(assemble([start, ...call, ...stop("tool_use")])).message.content).toEqual([
      { type: "tool_use", id: "t", name: "X", input: [1] },
    ]);
  });

  test.each<[string, readonly object[]]>([
    ["a delta of a block that was not begun", [start, { type: "content_block_delta", index: 4, delta: {} }]],
    ["a block before the message", block(0, { type: "text", text: "" })],
    ["a start without a message", [{ type: "message_start" }]],
    [
      "an end inside a block",
      [
        start,
        { type: "content_block_start", index: 0, content_block: { type: "text" } },
        { type: "message_stop" },
      ],
    ],
  ])("%s cannot be read and may be asked for again", (_what, events) => {
    const failure = errorOf(events);
    expect(failure.code).toBe("stream-malformed");
    expect(failure.mayPass).toBe(true);
  });

  test("a stream that ends early was cut, unless only the word that it ended is missing", () => {
    expect(errorOf([start, ...block(0, { type: "text", text: "x" })]).code).toBe("stream-cut");
    expect(errorOf([]).code).toBe("stream-cut");
    expect(lastOf(assemble([start, ...stop("end_turn").slice(0, 1)])).stopReason).toBe("end_turn");
  });

  test.each([
    ["overloaded_error", "overloaded", 529],
    ["rate_limit_error", "rate-limited", 429],
    ["api_error", "server-error", 500],
    ["timeout_error", "server-error", 504],
    ["authentication_error", "unauthorized", 401],
    ["permission_error", "unauthorized", 403],
    ["not_found_error", "not-found", 404],
    ["request_too_large", "context-too-long", 413],
    ["invalid_request_error", "invalid-request", 400],
    ["something_new", "server-error", 500],
  ])("an error event of type %s is the error %s", (type, code, status) => {
    const failure = errorOf([start, { type: "error", error: { type, message: "why" } }]);
    expect(failure).toMatchObject({
      code,
      status,
      requestId: "req_1",
      message: expect.stringContaining("why"),
    });
  });
});
