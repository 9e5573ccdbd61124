import { randomUUID } from "node:crypto";
import type { ModelEvent, ToolResultBlock, UserBlock } from "../../conversation/message.ts";
import type { RunEvent } from "../../conversation/run-event.ts";
import type { Usage } from "../../conversation/usage.ts";
import type { JsonRecord } from "../../foundation/json-record.ts";

/** One message for the host; `type` says which. */
export type SdkMessage = JsonRecord & { readonly type: string };

export interface SdkMessageContext {
  readonly sessionId: string;
  readonly uuid: () => string;
  /** The ids of the transcript's lines for an event, where there are any. */
  readonly lineIds: (event: RunEvent) => readonly string[];
  readonly partial: boolean;
  /** The call that started the child whose messages these are. */
  readonly parentToolUseId?: string;
  /** Fields that every message of a child carries. */
  readonly child?: JsonRecord;
}

/** All counts that programs on the SDK read; those that are not known here are zero or empty. */
export function sdkUsage(usage: Usage): JsonRecord {
  return {
    input_tokens: usage.inputTokens,
    cache_creation_input_tokens: usage.cacheWriteTokens,
    cache_read_input_tokens: usage.cacheReadTokens,
    output_tokens: usage.outputTokens,
    server_tool_use: { web_search_requests: 0, web_fetch_requests: 0 },
    service_tier: "standard",
    cache_creation: {
      ephemeral_1h_input_tokens: 0,
      ephemeral_5m_input_tokens: usage.cacheWriteTokens,
    },
    inference_geo: "",
    iterations: [],
    speed: "standard",
  };
}

/** The messages that an event of a run becomes; many events become none. */
export function sdkMessages(event: RunEvent, context: SdkMessageContext): readonly SdkMessage[] {
  const system = (subtype: string, fields: JsonRecord): SdkMessage => ({
    type: "system",
    subtype,
    ...fields,
    uuid: context.uuid(),
    session_id: context.sessionId,
  });
  switch (event.type) {
    case "assistant-answered":
      return [
        ...(context.partial ? answerEnd(event).map((streamed) => partialMessage(streamed, context)) : []),
        ...assistantMessages(event, context),
      ];
    case "user-added":
      return userMessages(event, context);
    case "model-streamed": {
      const streamed = context.partial ? streamEvent(event.event) : undefined;
      return streamed === undefined ? [] : [partialMessage(streamed, context)];
    }
    case "model-retried":
      return [
        system("api_retry", {
          attempt: event.attempt,
          max_retries: event.maxAttempts - 1,
          retry_delay_ms: Math.round(event.delayMs),
          error_status: event.status ?? null,
          error: errorCategory(event.code),
        }),
      ];
    case "compaction-started":
      return [system("status", { status: "compacting" })];
    case "context-compacted":
      return [
        system("status", { status: null, compact_result: "success" }),
        system("compact_boundary", {
          compact_metadata: {
            trigger: event.trigger,
            pre_tokens: event.preTokens,
            post_tokens: event.postTokens,
            duration_ms: Math.round(event.durationMs),
          },
        }),
      ];
    case "agents-interrupted":
      return [system("agents_interrupted", { agents: event.agents })];
    case "call-finished":
      if (event.denied === undefined) return [];
      return [
        system("permission_denied", {
          tool_name: event.call.name,
          tool_use_id: event.call.id,
          ...context.child,
          message: event.denied,
        }),
      ];
    default:
      return [];
  }
}

function own(context: SdkMessageContext, uuid = context.uuid()): JsonRecord {
  return {
    parent_tool_use_id: context.parentToolUseId ?? null,
    session_id: context.sessionId,
    uuid,
    ...context.child,
  };
}

function partialMessage(event: JsonRecord, context: SdkMessageContext): SdkMessage {
  return { type: "stream_event", event, ...own(context) };
}

/** One message per block, under the id of the block's line in the transcript. */
function assistantMessages(
  event: Extract<RunEvent, { type: "assistant-answered" }>,
  context: SdkMessageContext,
): readonly SdkMessage[] {
  const { id, model, message, stopReason, usage, requestId } = event;
  const ids = context.lineIds(event);
  const parts = message.content.length === 0 ? [[]] : message.content.map((block) => [block]);
  return parts.map((content, index) => ({
    type: "assistant",
    message: {
      model,
      id,
      type: "message",
      role: "assistant",
      content,
      stop_reason: index === parts.length - 1 ? stopReason : null,
      stop_sequence: null,
      stop_details: null,
      usage: sdkUsage(usage),
      context_management: null,
    },
    ...own(context, ids[index]),
    ...(requestId === undefined ? {} : { request_id: requestId }),
  }));
}

/** Each result is a message of its own beside its structured form; what else was added is marked as synthetic. */
function userMessages(
  event: Extract<RunEvent, { type: "user-added" }>,
  context: SdkMessageContext,
): readonly SdkMessage[] {
  const { message, origin, results = {} } = event;
  if (origin === "prompt") return [];
  const ids = context.lineIds(event);
  const { content } = message;
  const blocks = typeof content === "string" ? [] : content.filter(isResult);
  const rest = typeof content === "string" ? content : content.filter((block) => !isResult(block));
  const answers = blocks.map((block, index) => ({
    type: "user",
    message: { role: "user", content: [block] },
    ...own(context, ids[index]),
    ...(Object.hasOwn(results, block.tool_use_id) ? { tool_use_result: results[block.tool_use_id] } : {}),
    timestamp: new Date().toISOString(),
  }));
  if (rest.length === 0 || origin === "tool-results" || origin === "message") return answers;
  return [
    ...answers,
    {
      type: "user",
      message: { role: "user", content: rest },
      ...own(context, ids.at(-1)),
      isSynthetic: true,
    },
  ];
}

function isResult(block: UserBlock): block is ToolResultBlock {
  return block.type === "tool_result";
}

function streamEvent(event: ModelEvent): JsonRecord | undefined {
  switch (event.type) {
    case "message-started":
      return {
        type: "message_start",
        message: {
          model: event.model,
          id: event.id,
          type: "message",
          role: "assistant",
          content: [],
          stop_reason: null,
          stop_sequence: null,
          ...(event.usage === undefined ? {} : { usage: sdkUsage(event.usage) }),
        },
      };
    case "block-started":
      return { type: "content_block_start", index: event.index, content_block: event.block };
    case "text-delta":
      return delta(event.index, { type: "text_delta", text: event.text });
    case "thinking-delta":
      return delta(event.index, { type: "thinking_delta", thinking: event.text });
    case "input-delta":
      return delta(event.index, { type: "input_json_delta", partial_json: event.json });
    case "block-ended":
      return { type: "content_block_stop", index: event.index };
    default:
      return undefined;
  }
}

function delta(index: number, content: JsonRecord): JsonRecord {
  return { type: "content_block_delta", index, delta: content };
}

function answerEnd({
  stopReason,
  usage,
}: Pick<Extract<RunEvent, { type: "assistant-answered" }>, "stopReason" | "usage">): readonly JsonRecord[] {
  const ending = { stop_reason: stopReason, stop_sequence: null };
  return [{ type: "message_delta", delta: ending, usage: sdkUsage(usage) }, { type: "message_stop" }];
}

/** A sentence for people beside the conversation. */
export function informational(content: string, sessionId: string): SdkMessage {
  return {
    type: "system",
    subtype: "informational",
    content,
    level: "warning",
    uuid: randomUUID(),
    session_id: sessionId,
  };
}

const categories: ReadonlyMap<string, string> = new Map([
  ["unauthorized", "authentication_failed"],
  ["no-credentials", "authentication_failed"],
  ["rate-limited", "rate_limit"],
  ["overloaded", "overloaded"],
  ["server-error", "server_error"],
  ["connection-failed", "server_error"],
  ["stalled", "server_error"],
  ["stream-cut", "server_error"],
  ["stream-malformed", "server_error"],
  ["unexpected-answer", "server_error"],
  ["invalid-request", "invalid_request"],
  ["context-too-long", "invalid_request"],
  ["not-found", "model_not_found"],
  ["untrusted-certificate", "unknown"],
  ["script-mismatch", "invalid_request"],
]);

const statuses: ReadonlyMap<string, number> = new Map([
  ["unauthorized", 401],
  ["rate-limited", 429],
  ["overloaded", 529],
  ["server-error", 500],
  ["invalid-request", 400],
  ["context-too-long", 400],
  ["not-found", 404],
]);

/** The category under which programs know a failure of the provider. */
export function errorCategory(code: string): string {
  return categories.get(code) ?? "unknown";
}

/** Whether a run ended because the provider failed. */
export function isProviderFailure(code: string): boolean {
  return categories.has(code);
}

export function errorStatus(code: string): number | null {
  return statuses.get(code) ?? null;
}
