import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import type {
  AssistantBlock,
  Message,
  StopReason,
  ToolUseBlock,
  UserBlock,
} from "@retinue/core/conversation/message.ts";
import type { Usage } from "@retinue/core/conversation/usage.ts";
import type { ModelRequest } from "@retinue/core/models/model.ts";
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

/** A chat completions body as the request that a model in this program would have got. */
function readOpenAiRequest(body: JsonRecord): ModelRequest {
  const messages = listOf(body["messages"]);
  const limit = body["max_tokens"] ?? body["max_completion_tokens"];
  return {
    system: messages.filter(({ role }) => isSystem(role)).map(({ content }) => plainText(content)),
    tools: listOf(body["tools"]).map(readTool),
    messages: readMessages(messages.filter(({ role }) => !isSystem(role))),
    ...(typeof limit === "number" ? { maxTokens: limit } : {}),
  };
}

function isSystem(role: unknown): boolean {
  return role === "system" || role === "developer";
}

function readTool(tool: JsonRecord): ModelRequest["tools"][number] {
  const inner = isRecord(tool["function"]) ? tool["function"] : {};
  return {
    name: textOfValue(inner["name"]),
    description: textOfValue(inner["description"]),
    inputSchema: isRecord(inner["parameters"]) ? inner["parameters"] : {},
  };
}

/** Results of tools are messages of their own here and blocks of one user message there. */
function readMessages(messages: readonly JsonRecord[]): readonly Message[] {
  const read: Message[] = [];
  for (const message of messages) {
    const last = read.at(-1);
    if (message["role"] === "assistant") {
      read.push({ role: "assistant", content: assistantBlocks(message) });
      continue;
    }
    const blocks = message["role"] === "tool" ? [resultBlock(message)] : userBlocks(message["content"]);
    if (last?.role !== "user") read.push({ role: "user", content: blocks });
    else read[read.length - 1] = { role: "user", content: [...asBlocks(last.content), ...blocks] };
  }
  return read;
}

function asBlocks(content: string | readonly UserBlock[]): readonly UserBlock[] {
  return typeof content === "string" ? [{ type: "text", text: content }] : content;
}

function assistantBlocks(message: JsonRecord): readonly AssistantBlock[] {
  const thinking = textOfValue(message["reasoning_content"]);
  const text = plainText(message["content"]);
  return [
    ...(thinking === "" ? [] : [{ type: "thinking" as const, thinking, signature: "" }]),
    ...(text === "" ? [] : [{ type: "text" as const, text }]),
    ...listOf(message["tool_calls"]).map((call) => {
      const inner = isRecord(call["function"]) ? call["function"] : {};
      const input = parseOrKeep(textOfValue(inner["arguments"]));
      return {
        type: "tool_use" as const,
        id: textOfValue(call["id"]),
        name: textOfValue(inner["name"]),
        input,
      };
    }),
  ];
}

function resultBlock(message: JsonRecord): UserBlock {
  const id = textOfValue(message["tool_call_id"]);
  return { type: "tool_result", tool_use_id: id, content: plainText(message["content"]) };
}

function userBlocks(content: unknown): readonly UserBlock[] {
  if (typeof content === "string") return [{ type: "text", text: content }];
  return listOf(content).flatMap((part): readonly UserBlock[] => {
    if (part["type"] === "text") return [{ type: "text", text: textOfValue(part["text"]) }];
    const image = part["image_url"];
    return isRecord(image) ? [imageBlock(textOfValue(image["url"]))] : [];
  });
}

function imageBlock(url: string): UserBlock {
  const [, mediaType, data] = /^data:([^;]+);base64,(.*)$/s.exec(url) ?? [];
  if (mediaType === undefined || data === undefined) return { type: "image", source: { type: "url", url } };
  return { type: "image", source: { type: "base64", media_type: mediaType, data } };
}

function plainText(content: unknown): string {
  if (typeof content === "string") return content;
  return listOf(content)
    .map(({ text }) => textOfValue(text))
    .join("\n");
}

function parseOrKeep(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
