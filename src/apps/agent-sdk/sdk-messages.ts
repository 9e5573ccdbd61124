import { randomUUID } from "node:crypto";
import type { AssistantBlock, ToolResultBlock, UserBlock } from "../../conversation/message.ts";
import type { ModelEvent } from "../../conversation/model-event.ts";
import type { RunEvent } from "../../conversation/run-event.ts";
import { noUsage, type Usage } from "../../conversation/usage.ts";
import { isRecord, type JsonRecord } from "../../foundation/json-record.ts";
import { errorCategory } from "./api-failure.ts";

/** One message for the host; `type` says which. */
export type SdkMessage = JsonRecord & { readonly type: string };

export interface SdkMessageContext {
  readonly sessionId: string;
  readonly uuid: () => string;
  /** The ids of the transcript's lines for an event, where there are any. */
  readonly lineIds: (event: RunEvent) => readonly string[];
  readonly partial: boolean;
  /** The prompt too, which a host knows of itself but not of children. */
  readonly prompts?: boolean;
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
      return assistantMessages(event, context);
    case "user-added":
      return userMessages(event, context);
    case "turn-started":
      return context.partial ? [system("status", { status: "requesting" })] : [];
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
        {
          type: "user",
          message: event.summary,
          ...own(context),
          timestamp: now(),
          isSynthetic: true,
        },
      ];
    case "agents-interrupted":
      return [system("agents_interrupted", { agents: event.agents })];
    case "call-finished":
      // The host knows what it refused itself, and hooks report for themselves.
      if (event.denied === undefined || event.asked === true || isHookDenial(event.denied)) return [];
      return [
        system("permission_denied", {
          tool_name: event.call.name,
          tool_use_id: event.call.id,
          ...context.child,
          decision_reason_type: denialType(event.denied),
          message: event.denied,
        }),
      ];
    default:
      return [];
  }
}

function now(): string {
  return new Date().toISOString();
}

function isHookDenial(reason: string): boolean {
  return /^\S{1,200} was refused by a hook: /.test(reason);
}

/** What kind of decision a refusal was, as far as its sentence says. */
export function denialType(reason: string): string {
  if (/\bdontAsk\b|\bmode\b/.test(reason)) return "mode";
  if (/outside/.test(reason)) return "workingDir";
  return /\brule\b/.test(reason) ? "rule" : "other";
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

type Answer = Extract<RunEvent, { type: "assistant-answered" }>;
type AnswerHead = Pick<Answer, "id" | "model" | "usage" | "requestId">;

/** One message per block; why the model stopped is not known yet when a block is complete. */
function assistantMessages(event: Answer, context: SdkMessageContext): readonly SdkMessage[] {
  const ids = context.lineIds(event);
  return event.message.content.map((block, index) => blockMessage(block, event, context, ids[index]));
}

function blockMessage(
  block: AssistantBlock,
  { id, model, usage, requestId }: AnswerHead,
  context: SdkMessageContext,
  uuid?: string,
): SdkMessage {
  return {
    type: "assistant",
    message: {
      model,
      id,
      type: "message",
      role: "assistant",
      content: [block],
      stop_reason: null,
      stop_sequence: null,
      stop_details: null,
      usage: sdkUsage(usage),
      context_management: null,
    },
    ...own(context, uuid),
    ...(requestId === undefined ? {} : { request_id: requestId }),
    timestamp: now(),
  };
}

/** Shows an answer while it is given: each block as soon as it is complete, and its parts where they are asked for. */
export interface AnswerStream {
  take(event: RunEvent): readonly SdkMessage[];
  /** The ids under which the blocks of the answer were shown; its lines in the transcript get the same. */
  ids(): readonly string[];
}

export function createAnswerStream(
  context: Omit<SdkMessageContext, "sessionId"> & { readonly sessionId: () => string },
): AnswerStream {
  let head: AnswerHead | undefined;
  let ids: string[] = [];
  let askedAt = 0;
  const here = (): SdkMessageContext => ({ ...context, sessionId: context.sessionId() });
  const show = (streamed: JsonRecord | undefined, more: JsonRecord = {}): readonly SdkMessage[] =>
    streamed === undefined || !context.partial ? [] : [{ ...partialMessage(streamed, here()), ...more }];
  const complete = (block: AssistantBlock, known: AnswerHead): SdkMessage => {
    const id = context.uuid();
    ids.push(id);
    return blockMessage(block, known, here(), id);
  };
  const takeStreamed = (event: ModelEvent): readonly SdkMessage[] => {
    if (event.type === "message-started") {
      const { id, model, usage = noUsage, requestId } = event;
      head = { id, model, usage, ...(requestId === undefined ? {} : { requestId }) };
      ids = [];
      return show(streamEvent(event), { ttft_ms: Date.now() - askedAt });
    }
    if (event.type !== "block-ended" || head === undefined) return show(streamEvent(event));
    const { index, block } = event;
    const isSigned = block.type === "thinking" && block.signature !== "";
    const signature = isSigned
      ? delta(index, { type: "signature_delta", signature: block.signature })
      : undefined;
    return [...show(signature), complete(block, head), ...show(streamEvent(event))];
  };
  return {
    ids: () => ids,
    take(event) {
      switch (event.type) {
        case "turn-started":
          askedAt = Date.now();
          return [];
        case "model-streamed":
          return takeStreamed(event.event);
        case "model-retried":
          head = undefined;
          ids = [];
          return [];
        case "assistant-answered": {
          const rest = event.message.content.slice(ids.length).map((block) => complete(block, event));
          const ending = answerEnd(event).flatMap((streamed) => show(streamed));
          head = undefined;
          ids = [];
          return [...rest, ...ending];
        }
        default:
          return [];
      }
    },
  };
}

/** Each result is a message of its own beside its structured form; what else was added is marked as synthetic. */
function userMessages(
  event: Extract<RunEvent, { type: "user-added" }>,
  context: SdkMessageContext,
): readonly SdkMessage[] {
  const { message, origin, results = {} } = event;
  const { content } = message;
  if (origin === "prompt") {
    if (context.prompts !== true) return [];
    const blocks = typeof content === "string" ? [{ type: "text", text: content } as const] : content;
    return [{ type: "user", message: { role: "user", content: blocks }, ...own(context), timestamp: now() }];
  }
  const ids = context.lineIds(event);
  const blocks = typeof content === "string" ? [] : content.filter(isResult);
  const rest = typeof content === "string" ? content : content.filter((block) => !isResult(block));
  const answers = blocks.map((block, index) => ({
    type: "user",
    message: { role: "user", content: [block] },
    ...own(context, ids[index]),
    ...toolUseResult(block, results),
    timestamp: now(),
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

/** What programs read of a result: the output of the tool, or why it failed. */
function toolUseResult(block: ToolResultBlock, results: Readonly<Record<string, unknown>>): JsonRecord {
  if (block.is_error === true) {
    const { content } = block;
    const texts = typeof content === "string" ? [content] : (content ?? []).flatMap((part) => textsOf(part));
    return { tool_use_result: `Error: ${texts.join("\n")}` };
  }
  if (!Object.hasOwn(results, block.tool_use_id)) return {};
  return { tool_use_result: programResult(results[block.tool_use_id]) };
}

/** What a tool gives programs; that of a command in the form they know. */
export function programResult(result: unknown): unknown {
  if (!isRecord(result) || typeof result["stdout"] !== "string") return result;
  const { durationMs: _duration, exitCode: _code, ...rest } = result;
  return { ...rest, stdout: result["stdout"].trimEnd(), isImage: false, noOutputExpected: false };
}

function textsOf(part: Exclude<NonNullable<ToolResultBlock["content"]>, string>[number]): readonly string[] {
  return part.type === "text" ? [part.text] : [];
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

/** What a command of the session says about what it did. */
export function commandOutput(text: string, sessionId: string): SdkMessage {
  return {
    type: "user",
    message: { role: "user", content: `<local-command-stdout>${text}</local-command-stdout>` },
    parent_tool_use_id: null,
    session_id: sessionId,
    uuid: randomUUID(),
    timestamp: now(),
    isReplay: true,
  };
}

/** A sentence for people beside the conversation. */
export function informational(
  content: string,
  sessionId: string,
  level: "warning" | "notice" = "warning",
): SdkMessage {
  return {
    type: "system",
    subtype: "informational",
    content,
    level,
    uuid: randomUUID(),
    session_id: sessionId,
  };
}
