import { describe, expect, it } from "vitest";
import type { RunEnding, RunEvent } from "../../conversation/run-event.ts";
import { createSampleRuntime } from "../../testing/sample-runtime.ts";
import { createAnswerStream } from "../agent-sdk/answer-stream.ts";
import type { ModelTally } from "./model-tally.ts";
import { initMessage, type MessageOptions, messagesOf } from "./output-messages.ts";
import { resultMessage } from "./result-message.ts";

const context = { sessionId: "s1", uuid: () => "u1" };
const own = { parent_tool_use_id: null, session_id: "s1", uuid: "u1" };
const usage = { inputTokens: 1, outputTokens: 2, cacheReadTokens: 3, cacheWriteTokens: 4 };
const wire = {
  input_tokens: 1,
  output_tokens: 2,
  cache_read_input_tokens: 3,
  cache_creation_input_tokens: 4,
};

function show(event: RunEvent, options: Partial<MessageOptions> = {}) {
  return messagesOf(event, { replay: false, ...options }, context);
}

function watch(event: RunEvent, partial: boolean) {
  const { sessionId, uuid } = context;
  return createAnswerStream({ sessionId: () => sessionId, uuid, lineIds: () => [], partial }).take(event);
}

describe("the first message", () => {
  it("shows what was decided for the session [CLI-1]", async () => {
    await using sample = await createSampleRuntime([]);
    await sample.workspace.write("plugin/.claude-plugin/plugin.json", '{"name": "house-rules"}');
    await using session = await sample
      .restart([], { pluginDirectories: [sample.workspace.path("plugin")] })
      .runtime.open({ tools: ["Read"], permissionMode: "plan", effort: "high" });
    const message = initMessage(session, "ANTHROPIC_API_KEY", {
      ...context,
      sessionId: session.plan.sessionId,
    });
    expect(message).toEqual({
      type: "system",
      subtype: "init",
      cwd: sample.workspace.project,
      session_id: session.plan.sessionId,
      tools: ["Read"],
      mcp_servers: [],
      model: "scripted",
      model_provider: "scripted",
      model_reason: "the program",
      permissionMode: "plan",
      apiKeySource: "ANTHROPIC_API_KEY",
      slash_commands: [],
      agents: expect.arrayContaining(["general-purpose", "Explore"]),
      skills: [],
      plugins: [{ name: "house-rules", path: sample.workspace.path("plugin") }],
      output_style: "default",
      effort: "high",
      retinue_version: expect.stringMatching(/^\d+\.\d+\.\d+/),
      uuid: "u1",
    });
  });
});

describe("what happens in a run", () => {
  const answer = {
    type: "assistant-answered",
    id: "msg_1",
    model: "claude-sonnet-5",
    message: { role: "assistant", content: [{ type: "text", text: "Yes." }] },
    stopReason: "end_turn",
    usage,
    requestId: "req_1",
  } as const;
  const assistant = {
    type: "assistant",
    message: {
      id: "msg_1",
      type: "message",
      role: "assistant",
      model: "claude-sonnet-5",
      content: [{ type: "text", text: "Yes." }],
      stop_reason: null,
      stop_sequence: null,
      usage: wire,
    },
    request_id: "req_1",
    ...own,
  };

  it("an answer is the message of the API", () => {
    expect(show(answer)).toMatchObject([assistant]);
    expect(watch(answer, false)).toMatchObject([assistant]);
  });

  it("each block of an answer is a message, and its stream ends behind them for those who watch it", () => {
    const ending = {
      type: "message_delta",
      delta: { stop_reason: "end_turn", stop_sequence: null },
      usage: wire,
    };
    expect(watch(answer, true)).toMatchObject([
      assistant,
      { type: "stream_event", event: ending, ...own },
      { type: "stream_event", event: { type: "message_stop" }, ...own },
    ]);
  });

  it("each result of a call is a message, with what programs keep of it", () => {
    const result = (id: string) => ({ type: "tool_result", tool_use_id: id, content: "done" }) as const;
    const reminder = { type: "text", text: "Remember." } as const;
    const event: RunEvent = {
      type: "user-added",
      origin: "tool-results",
      message: { role: "user", content: [result("t1"), result("__proto__"), reminder] },
      results: { t1: { stdout: "done" } },
    };
    const timestamp = expect.any(String);
    expect(show(event)).toEqual([
      {
        type: "user",
        message: { role: "user", content: [{ ...result("t1"), is_error: false }] },
        tool_use_result: { stdout: "done", isImage: false, noOutputExpected: false },
        timestamp,
        ...own,
      },
      { type: "user", message: { role: "user", content: [result("__proto__")] }, timestamp, ...own },
      { type: "user", message: { role: "user", content: [reminder] }, isSynthetic: true, ...own },
    ]);
  });

  it("a prompt is shown only when it is asked for", () => {
    const event: RunEvent = {
      type: "user-added",
      origin: "prompt",
      message: { role: "user", content: "Hi." },
    };
    expect(show(event)).toEqual([]);
    expect(show(event, { replay: true })).toEqual([
      { type: "user", message: { role: "user", content: "Hi." }, isReplay: true, ...own },
    ]);
  });

  it("a text that the runtime adds is marked as such", () => {
    const event: RunEvent = {
      type: "user-added",
      origin: "system",
      message: { role: "user", content: "Continue." },
    };
    expect(show(event)).toEqual([
      { type: "user", message: { role: "user", content: "Continue." }, isSynthetic: true, ...own },
    ]);
  });

  it.each<[string, Extract<RunEvent, { type: "model-streamed" }>["event"], object]>([
    [
      "message_start",
      { type: "message-started", id: "msg_1", model: "m", usage },
      {
        type: "message_start",
        message: {
          id: "msg_1",
          type: "message",
          role: "assistant",
          model: "m",
          content: [],
          stop_reason: null,
          stop_sequence: null,
          usage: wire,
        },
      },
    ],
    [
      "content_block_start",
      { type: "block-started", index: 0, block: { type: "text", text: "" } },
      { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
    ],
    [
      "text_delta",
      { type: "text-delta", index: 0, text: "Y" },
      { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Y" } },
    ],
    [
      "thinking_delta",
      { type: "thinking-delta", index: 1, text: "Hm" },
      { type: "content_block_delta", index: 1, delta: { type: "thinking_delta", thinking: "Hm" } },
    ],
    [
      "input_json_delta",
      { type: "input-delta", index: 2, json: '{"a' },
      { type: "content_block_delta", index: 2, delta: { type: "input_json_delta", partial_json: '{"a' } },
    ],
    [
      "content_block_stop",
      { type: "block-ended", index: 0, block: { type: "text", text: "Y" } },
      { type: "content_block_stop", index: 0 },
    ],
  ])("what the model says meanwhile is shown as %s, when it is asked for", (_, event, expected) => {
    const shown = watch({ type: "model-streamed", event }, true);
    expect(shown.filter(({ type }) => type === "stream_event")).toMatchObject([
      { type: "stream_event", event: expected, ...own },
    ]);
    const counted = watch({ type: "model-streamed", event }, false);
    expect(counted.filter(({ subtype }) => subtype !== "thinking_tokens")).toEqual([]);
  });

  it("a retry counts attempts after the first", () => {
    const event = { attempt: 1, maxAttempts: 11, delayMs: 500, code: "overloaded", message: "Busy." };
    const shown = {
      type: "system",
      subtype: "api_retry",
      attempt: 1,
      max_retries: 10,
      retry_delay_ms: 500,
      error: "overloaded",
      session_id: "s1",
      uuid: "u1",
    };
    expect(show({ type: "model-retried", ...event, status: 529 })).toEqual([{ ...shown, error_status: 529 }]);
    expect(show({ type: "model-retried", ...event })).toEqual([{ ...shown, error_status: null }]);
  });

  it("a call that was refused is reported; others are seen in their results", () => {
    const call = { type: "tool_use", id: "t1", name: "Bash", input: {} } as const;
    const event = { type: "call-finished", call, isError: true, durationMs: 1 } as const;
    expect(show(event)).toEqual([]);
    expect(show({ ...event, denied: "No." })).toEqual([
      {
        type: "system",
        subtype: "permission_denied",
        tool_name: "Bash",
        tool_use_id: "t1",
        decision_reason_type: "other",
        message: "No.",
        session_id: "s1",
        uuid: "u1",
      },
    ]);
  });

  it.each<RunEvent>([
    { type: "turn-started", turn: 1 },
    { type: "call-progressed", callId: "t1", text: "…" },
  ])("$type is not shown", (event) => {
    expect(show(event, { replay: true })).toEqual([]);
  });
});

describe("the result", () => {
  const model = { id: "claude-sonnet-5", contextWindow: 200_000, maxOutputTokens: 64_000 };
  const ending: RunEnding = {
    status: "completed",
    reason: "end_turn",
    text: "Done.",
    totals: { usage, turns: 3, toolUses: 2, durationMs: 12.4, modelMs: 10.6, costUsd: 0.25 },
    denials: [
      {
        call: { type: "tool_use", id: "t1", name: "Bash", input: { command: "ls" } },
        reason: "No.",
      },
    ],
  };

  it("a failure of the provider is a success with an error, and its text", () => {
    const failed: RunEnding = { ...ending, status: "failed", reason: "context-too-long", error: "Why." };
    expect(resultMessage(failed, model, context)).toMatchObject({
      subtype: "success",
      is_error: true,
      api_error_status: 400,
      result: "Prompt is too long. API Error: 400 Why.",
      terminal_reason: "prompt_too_long",
    });
  });

  it("counts children into the cost and beside the main agent's model, not into its usage [LIM-4]", () => {
    const sum = { usage, cost: 0.5 };
    const children = new Map([
      [model.id, sum],
      ["claude-haiku-5", sum],
    ]);
    const tree = { ...ending.totals, costUsd: 1.25 };
    expect(resultMessage({ ...ending, tree }, model, context, children)).toMatchObject({
      total_cost_usd: 1.25,
      usage: wire,
      modelUsage: {
        "claude-sonnet-5": { outputTokens: 4, costUSD: 0.75, contextWindow: 200_000 },
        "claude-haiku-5": { outputTokens: 2, costUSD: 0.5 },
      },
    });
  });

  it("costs what its models cost together, also where children went on after its end [LIM-4]", () => {
    const children = new Map([["claude-haiku-5", { usage: ending.totals.usage, cost: 0.5 }]]);
    const tree = { ...ending.totals, costUsd: 0.25 };
    const costOf = (tally: ModelTally) =>
      resultMessage({ ...ending, tree }, model, context, tally)["total_cost_usd"];
    expect(costOf(children)).toBe(0.75);
    expect(costOf(new Map([["unpriced", { usage: ending.totals.usage }]]))).toBeNull();
  });

  it("of a success has the text and every sum [CLI-1, LIM-4]", () => {
    expect(resultMessage(ending, model, context)).toEqual({
      type: "result",
      subtype: "success",
      is_error: false,
      duration_ms: 12,
      duration_api_ms: 11,
      num_turns: 3,
      result: "Done.",
      stop_reason: "end_turn",
      terminal_reason: "completed",
      session_id: "s1",
      total_cost_usd: 0.25,
      usage: wire,
      modelUsage: {
        "claude-sonnet-5": {
          inputTokens: 1,
          outputTokens: 2,
          cacheReadInputTokens: 3,
          cacheCreationInputTokens: 4,
          costUSD: 0.25,
          contextWindow: 200_000,
          maxOutputTokens: 64_000,
        },
      },
      permission_denials: [{ tool_name: "Bash", tool_use_id: "t1", tool_input: { command: "ls" } }],
      uuid: "u1",
    });
  });

  it.each<[Partial<RunEnding>, string, string, string | null]>([
    [{ status: "partial", reason: "max_turns" }, "error_max_turns", "max_turns", null],
    [{ status: "partial", reason: "max_budget" }, "error_max_budget_usd", "budget_exhausted", null],
    [
      { status: "failed", reason: "max_structured_output_retries" },
      "error_max_structured_output_retries",
      "structured_output_retry_exhausted",
      null,
    ],
    [{ status: "failed", reason: "model-unknown" }, "error_during_execution", "model-unknown", null],
    [{ status: "failed", reason: "refusal" }, "error_during_execution", "refusal", "refusal"],
    [{ status: "partial", reason: "max_tokens" }, "error_during_execution", "max_tokens", "max_tokens"],
    [{ status: "stopped", reason: "interrupted" }, "error_during_execution", "interrupted", null],
  ])("of %j is %s", (changes, subtype, terminal_reason, stop_reason) => {
    expect(resultMessage({ ...ending, ...changes, error: "Why." }, model, context)).toMatchObject({
      subtype,
      is_error: true,
      terminal_reason,
      stop_reason,
      result: "Done.",
      errors: ["Why."],
    });
  });

  it("of an unknown price is null, and typed output is next to the text [SDK-4]", () => {
    const { costUsd: _cost, ...totals } = ending.totals;
    const message = resultMessage({ ...ending, totals, output: { a: 1 } }, model, context);
    expect(message).toMatchObject({ total_cost_usd: null, structured_output: { a: 1 } });
  });
});

describe("a compaction on the stream", () => {
  it("[CMP-2] is announced, and its boundary says why and how much there was", () => {
    const system = { type: "system", session_id: "s1", uuid: "u1" };
    expect(show({ type: "compaction-started", trigger: "auto", preTokens: 9 })).toEqual([
      { ...system, subtype: "status", status: "compacting" },
    ]);
    const event: RunEvent = {
      type: "context-compacted",
      trigger: "manual",
      preTokens: 900,
      postTokens: 90,
      by: "model",
      summary: { role: "user", content: "So far" },
      kept: 0,
      keptAnswers: 0,
      model: "m",
      durationMs: 12.4,
      usage,
    };
    expect(show(event)).toMatchObject([
      { ...system, subtype: "status", status: null, compact_result: "success" },
      {
        ...system,
        subtype: "compact_boundary",
        compact_metadata: { trigger: "manual", pre_tokens: 900, post_tokens: 90, duration_ms: 12 },
      },
      { type: "user", message: { content: "So far" }, isSynthetic: true },
      { type: "user", message: { content: "<local-command-stdout>Compacted </local-command-stdout>" } },
    ]);
  });
});
