import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import type { Message } from "@retinue/core/conversation/message.ts";
import type { Usage } from "@retinue/core/conversation/usage.ts";
import type { ModelRequest } from "@retinue/core/models/model.ts";
import { errorKinds, type Piece, type ScriptedAnswer } from "./scripted-answer.ts";
import { listOf, type StatusError, textOfValue, type Wire, type WireStream } from "./wire.ts";

/** What the Messages API refuses with status 400; the mistakes a runtime could make, not all there are. */
export function findAnthropicFlaw(body: JsonRecord): string | undefined {
  const messages = listOf(body["messages"]);
  if (typeof body["model"] !== "string") return "model: Field required";
  if (typeof body["max_tokens"] !== "number") return "max_tokens: Field required";
  if (messages.length === 0) return "messages: at least one message is required";
  if (messages[0]?.["role"] !== "user") return "messages: first message must use the user role";
  return findToolFlaw(body) ?? findMarkFlaw(body) ?? findMessageFlaw(messages);
}

function findToolFlaw(body: JsonRecord): string | undefined {
  const names = listOf(body["tools"]).map(({ name }) => String(name));
  const odd = names.findIndex((name) => !/^[a-zA-Z0-9_-]{1,128}$/.test(name));
  if (odd !== -1) return `tools.${odd}.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'`;
  if (new Set(names).size < names.length) return "tools: Tool names must be unique.";
  // Tools that are loaded where a result names them; at least one must be there from the start.
  const tools = listOf(body["tools"]);
  const deferred = tools.filter((tool) => tool["defer_loading"] === true);
  if (deferred.length > 0 && deferred.length === tools.length)
    return "At least one tool must have defer_loading=false.";
  if (deferred.some((tool) => tool["cache_control"] !== undefined))
    return "tools: Tools with defer_loading cannot use prompt caching.";
  const results = listOf(body["messages"])
    .flatMap(({ content }) => listOf(content))
    .map((block) => listOf(block["content"]));
  for (const parts of results) {
    const references = parts.filter(({ type }) => type === "tool_reference");
    if (references.length > 0 && references.length < parts.length)
      return "messages: tool_reference blocks cannot be mixed with other content.";
    const unknown = references.find(({ tool_name }) => !tools.some(({ name }) => name === tool_name));
    if (unknown !== undefined)
      return `messages: Tool reference '${String(unknown["tool_name"])}' not found in available tools`;
  }
  return undefined;
}

function findMarkFlaw(body: JsonRecord): string | undefined {
  const inMessages = listOf(body["messages"]).flatMap(({ content }) => listOf(content));
  const holders = [...listOf(body["tools"]), ...listOf(body["system"]), ...inMessages, body];
  const marked = holders.filter((holder) => isRecord(holder["cache_control"]));
  if (marked.length > 4) {
    return `A maximum of 4 blocks with cache_control may be provided. Found ${marked.length}.`;
  }
  if (marked.some(({ type }) => type === "thinking" || type === "redacted_thinking")) {
    return "cache_control cannot be set for thinking blocks";
  }
  return marked.some(({ type, text }) => type === "text" && text === "")
    ? "cache_control cannot be set for empty text blocks"
    : undefined;
}

function findMessageFlaw(messages: readonly JsonRecord[]): string | undefined {
  for (const [at, message] of messages.entries()) {
    const blocks = listOf(message["content"]);
    if (message["content"] === "" || (Array.isArray(message["content"]) && blocks.length === 0)) {
      if (at < messages.length - 1 || message["role"] === "user") return `messages.${at}: content is empty`;
    }
    if (blocks.some(({ type, text }) => type === "text" && text === "")) {
      return "messages: text content blocks must be non-empty";
    }
    const flaw = findPairFlaw(at, blocks, messages[at + 1], messages[at - 1]);
    if (flaw !== undefined) return flaw;
  }
  return undefined;
}

/** Every call is answered in the very next message, and every result answers a call of the one before. */
function findPairFlaw(
  at: number,
  blocks: readonly JsonRecord[],
  next: JsonRecord | undefined,
  previous: JsonRecord | undefined,
): string | undefined {
  const answered = new Set(idsOf(listOf(next?.["content"]), "tool_result", "tool_use_id"));
  const open = idsOf(blocks, "tool_use", "id").filter((id) => !answered.has(id));
  if (open.length > 0) {
    return `messages.${at}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${open.join(", ")}`;
  }
  const asked = new Set(idsOf(listOf(previous?.["content"]), "tool_use", "id"));
  const stray = idsOf(blocks, "tool_result", "tool_use_id").find((id) => !asked.has(id));
  return stray === undefined
    ? undefined
    : `messages.${at}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${stray}`;
}

function idsOf(blocks: readonly JsonRecord[], type: string, key: string): readonly string[] {
  return blocks.filter((block) => block["type"] === type).map((block) => String(block[key]));
}

/** The Anthropic Messages protocol. */
export const anthropicWire: Wire = {
  readRequest: readAnthropicRequest,
  findFlaw: findAnthropicFlaw,
  statusOf: (failure) => errorKinds[failure].status ?? 500,
  errorBody: (failure, message) => ({
    type: "error",
    error: { type: errorTypes[failure], message },
    request_id: "req_fake",
  }),
  whole: (answer, model, usage) => ({
    ...openMessage(answer, model),
    content: answer.blocks,
    stop_reason: answer.stopReason,
    usage: usageOf(usage),
  }),
  openStream,
};

function openStream(answer: ScriptedAnswer, body: JsonRecord, usage: Usage): WireStream {
  const model = textOfValue(body["model"]);
  return {
    begin: () =>
      event("message_start", {
        message: {
          ...openMessage(answer, model),
          content: [],
          usage: { ...usageOf(usage), output_tokens: 1 },
        },
      }) + event("ping", {}),
    piece: pieceEvents,
    end: () =>
      event("message_delta", {
        delta: { stop_reason: answer.stopReason, stop_sequence: null },
        usage: { output_tokens: usage.outputTokens },
      }) + event("message_stop", {}),
    error: (failure, message) => event("error", anthropicWire.errorBody(failure, message)),
    malformed: () => 'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"del\n\n',
  };
}

/** The request as a model in this program would have got it, without the marks for caching. */
export function readAnthropicRequest(body: JsonRecord): ModelRequest {
  const { system, max_tokens: maxTokens } = body;
  const parts = typeof system === "string" ? [system] : listOf(system).map(({ text }) => textOfValue(text));
  const tools = listOf(body["tools"]).filter((tool) => tool["input_schema"] !== undefined);
  return {
    system: parts,
    tools: tools.map(({ name, description, input_schema: inputSchema, defer_loading: deferred }) => ({
      name: textOfValue(name),
      description: textOfValue(description),
      inputSchema: inputSchema as JsonRecord, // Checked for presence above; the tests that read it know its shape.
      ...(deferred === true ? { loading: "found" as const } : {}),
    })),
    messages: listOf(body["messages"]).map(readMessage),
    ...(typeof maxTokens === "number" ? { maxTokens } : {}),
  };
}

function readMessage({ role, content }: JsonRecord): Message {
  const bare = typeof content === "string" ? content : listOf(content).map(withoutMark);
  return { role, content: bare } as unknown as Message; // The wire's shape is the conversation's shape.
}

function withoutMark({ cache_control: _, ...block }: JsonRecord): JsonRecord {
  return block;
}

const errorTypes: Readonly<Record<StatusError, string>> = {
  "rate-limited": "rate_limit_error",
  overloaded: "overloaded_error",
  "server-error": "api_error",
  "context-too-long": "invalid_request_error",
  "invalid-request": "invalid_request_error",
  unauthorized: "authentication_error",
  "not-found": "not_found_error",
};

function openMessage({ id }: ScriptedAnswer, model: string): JsonRecord {
  return { id, type: "message", role: "assistant", model, stop_reason: null, stop_sequence: null };
}

function usageOf(usage: Usage): JsonRecord {
  return {
    input_tokens: usage.inputTokens,
    cache_read_input_tokens: usage.cacheReadTokens,
    cache_creation_input_tokens: usage.cacheWriteTokens,
    output_tokens: usage.outputTokens,
  };
}

function pieceEvents(piece: Piece): string {
  const { index } = piece;
  if (piece.type === "block-started")
    return event("content_block_start", { index, content_block: piece.block });
  if (piece.type === "delta") return event("content_block_delta", { index, delta: deltaOf(piece) });
  const stop = event("content_block_stop", { index });
  if (piece.block.type !== "thinking") return stop;
  const delta = { type: "signature_delta", signature: piece.block.signature };
  return event("content_block_delta", { index, delta }) + stop;
}

function deltaOf({ kind, text }: Extract<Piece, { type: "delta" }>): JsonRecord {
  if (kind === "input") return { type: "input_json_delta", partial_json: text };
  return kind === "text" ? { type: "text_delta", text } : { type: "thinking_delta", thinking: text };
}

function event(type: string, data: JsonRecord): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`;
}
