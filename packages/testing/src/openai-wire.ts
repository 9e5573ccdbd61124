import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import type { StopReason, ToolUseBlock } from "@retinue/core/conversation/message.ts";
import type { Usage } from "@retinue/core/conversation/usage.ts";
import { readOpenAiRequest } from "./read-open-ai-request.ts";
import { errorKinds, type Piece, type ScriptedAnswer, writtenInput } from "./scripted-answer.ts";
import { listOf, type StatusError, textOfValue, type Wire, type WireStream } from "./wire.ts";

/** The chat completions protocol of OpenAI, which most other providers and local servers speak. */
export const openAiWire: Wire = {
  readRequest: readOpenAiRequest,
  findFlaw,
  statusOf: (failure) => (failure === "overloaded" ? 503 : (errorKinds[failure].status ?? 500)),
  errorBody: (failure, message) => ({
    error: { message, type: errorTypes[failure], param: null, code: errorCodes.get(failure) ?? null },
  }),
  whole: (answer, model, usage) => ({
    id: answer.id,
    object: "chat.completion",
    created: 0,
    model,
    choices: [{ index: 0, message: messageOf(answer), finish_reason: finishReasons[answer.stopReason] }],
    usage: usageOf(usage),
  }),
  openStream,
};

function openStream(answer: ScriptedAnswer, body: JsonRecord, usage: Usage): WireStream {
  const head = { id: answer.id, object: "chat.completion.chunk", created: 0, model: body["model"] };
  const line = (data: JsonRecord) => `data: ${JSON.stringify(data)}\n\n`;
  const chunk = (delta: JsonRecord, finish: string | null = null) =>
    line({ ...head, choices: [{ index: 0, delta, finish_reason: finish }] });
  const callNumbers = new Map<number, number>();
  const options = body["stream_options"];
  const wantsUsage = isRecord(options) && options["include_usage"] === true;
  return {
    begin: () => chunk({ role: "assistant", content: "" }),
    piece: (piece) => {
      const delta = deltaOf(piece, callNumbers);
      return delta === undefined ? "" : chunk(delta);
    },
    end: () =>
      chunk({}, finishReasons[answer.stopReason]) +
      (wantsUsage ? line({ ...head, choices: [], usage: usageOf(usage) }) : "") +
      "data: [DONE]\n\n",
    error: (failure, message) => line(openAiWire.errorBody(failure, message)),
    malformed: () => 'data: {"id":"broken","choices":[{"ind\n\n',
  };
}

function deltaOf(piece: Piece, callNumbers: Map<number, number>): JsonRecord | undefined {
  if (piece.type === "block-started" && piece.block.type === "tool_use") {
    const { id, name } = piece.block;
    const index = callNumbers.size;
    callNumbers.set(piece.index, index);
    return { tool_calls: [{ index, id, type: "function", function: { name, arguments: "" } }] };
  }
  if (piece.type !== "delta") return undefined;
  if (piece.kind === "text") return { content: piece.text };
  if (piece.kind === "thinking") return { reasoning_content: piece.text };
  return { tool_calls: [{ index: callNumbers.get(piece.index), function: { arguments: piece.text } }] };
}

function messageOf({ blocks }: ScriptedAnswer): JsonRecord {
  const texts = blocks.flatMap((block) => (block.type === "text" ? [block.text] : []));
  const thinking = blocks.flatMap((block) => (block.type === "thinking" ? [block.thinking] : []));
  const calls = blocks.filter((block): block is ToolUseBlock => block.type === "tool_use");
  return {
    role: "assistant",
    content: texts.length === 0 ? null : texts.join(""),
    ...(thinking.length === 0 ? {} : { reasoning_content: thinking.join("") }),
    ...(calls.length === 0 ? {} : { tool_calls: calls.map(callOf) }),
  };
}

function callOf({ id, name, input }: ToolUseBlock): JsonRecord {
  return { id, type: "function", function: { name, arguments: writtenInput(input) } };
}

/** As the real endpoint: a tool message must answer a call of the assistant message before it, and none may be missing. */
function findFlaw(body: JsonRecord): string | undefined {
  const messages = listOf(body["messages"]);
  if (messages.length === 0) return "Invalid 'messages': empty array.";
  let open = new Set<string>();
  for (const { role, tool_call_id: id, tool_calls: calls } of messages) {
    if (role === "tool") {
      if (!open.delete(textOfValue(id))) {
        return "messages with role 'tool' must be a response to a preceding message with 'tool_calls'.";
      }
      continue;
    }
    if (open.size > 0) break;
    open = new Set(listOf(calls).map((call) => textOfValue(call["id"])));
  }
  if (open.size === 0) return undefined;
  return `An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. Missing: ${[...open].join(", ")}`;
}

function usageOf(usage: Usage): JsonRecord {
  const prompt = usage.inputTokens + usage.cacheReadTokens + usage.cacheWriteTokens;
  return {
    prompt_tokens: prompt,
    completion_tokens: usage.outputTokens,
    total_tokens: prompt + usage.outputTokens,
    prompt_tokens_details: { cached_tokens: usage.cacheReadTokens },
  };
}

const finishReasons: Readonly<Record<StopReason, string>> = {
  end_turn: "stop",
  tool_use: "tool_calls",
  max_tokens: "length",
  stop_sequence: "stop",
  pause_turn: "stop",
  refusal: "content_filter",
  model_context_window_exceeded: "length",
};

const errorTypes: Readonly<Record<StatusError, string>> = {
  "rate-limited": "rate_limit_error",
  overloaded: "server_error",
  "server-error": "server_error",
  "context-too-long": "invalid_request_error",
  "invalid-request": "invalid_request_error",
  unauthorized: "invalid_request_error",
  "not-found": "invalid_request_error",
};

const errorCodes: ReadonlyMap<StatusError, string> = new Map([
  ["rate-limited", "rate_limit_exceeded"],
  ["overloaded", "overloaded"],
  ["context-too-long", "context_length_exceeded"],
  ["unauthorized", "invalid_api_key"],
  ["not-found", "model_not_found"],
]);
