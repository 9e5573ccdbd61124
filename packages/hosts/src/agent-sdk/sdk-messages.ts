import { randomUUID } from "node:crypto";
import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import {
  type AssistantBlock,
  type ToolResultBlock,
  textOf,
  type UserBlock,
} from "@retinue/core/conversation/message.ts";
import type { RunEvent } from "@retinue/core/conversation/run-event.ts";
import { noUsage, type Usage } from "@retinue/core/conversation/usage.ts";
import { fallbackSentence, quotaSentence } from "../shared/debug-line.ts";
import { errorCategory } from "./api-failure.ts";
import { type CallResults, denialType, type FinishedCall, isHookDenial, resultMeta } from "./call-results.ts";

/** One message for the host; `type` says which. */
export type SdkMessage = JsonRecord & { readonly type: string };

export interface SdkMessageContext {
  readonly sessionId: string;
  readonly uuid: () => string;
  /** The ids of the transcript's lines for an event, where there are any. */
  readonly lineIds: (event: RunEvent) => readonly string[];
  readonly partial: boolean;
  /** Which results were shown already. */
  readonly results: CallResults;
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
    output_tokens_details: { thinking_tokens: 0 },
    fallback_credit: null,
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
    case "assistant-answered": {
      // One message per block; why the model stopped is not known yet when a block is complete.
      const ids = context.lineIds(event);
      return event.message.content.map((block, index) => blockMessage(block, event, context, ids[index]));
    }
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
          // Where nothing was answered, nothing is known.
          error: event.status === undefined ? "unknown" : errorCategory(event.code),
          error_message: event.message,
        }),
      ];
    case "model-fell-back":
      return [
        system("model_fallback", {
          trigger: errorCategory(event.code),
          original_model: event.from,
          fallback_model: event.to,
          content: fallbackSentence(event),
        }),
      ];
    case "quota-waiting":
      return [
        system("quota_waiting", {
          provider: event.provider,
          resets_at: new Date(event.until).toISOString(),
          content: quotaSentence(event),
        }),
      ];
    case "quota-renewed":
      return [system("quota_renewed", { provider: event.provider, content: quotaSentence(event) })];
    case "compaction-started":
      return [system("status", { status: "compacting" })];
    case "context-compacted": {
      const { trigger, preTokens, postTokens, durationMs, summary } = event;
      return [
        system("status", { status: null, compact_result: "success" }),
        system("compact_boundary", {
          compact_metadata: {
            trigger,
            pre_tokens: preTokens,
            post_tokens: postTokens,
            duration_ms: Math.round(durationMs),
          },
        }),
        {
          type: "user",
          message: { role: "user", content: textOf(summary) },
          ...own(context),
          timestamp: now(),
          isSynthetic: true,
          isReplay: false,
        },
        ...(trigger === "manual" ? [commandOutput("Compacted ", context.sessionId)] : []),
      ];
    }
    case "agents-interrupted":
      return [system("agents_interrupted", { agents: event.agents })];
    case "call-finished":
      return [...denialMessages(event, context, system), ...resultMessages(event, context)];
    default:
      return [];
  }
}

function now(): string {
  return new Date().toISOString();
}

/** The host knows what it refused itself, and hooks report for themselves. */
function denialMessages(
  { call, denied, asked }: FinishedCall,
  context: SdkMessageContext,
  system: (subtype: string, fields: JsonRecord) => SdkMessage,
): readonly SdkMessage[] {
  if (denied === undefined || asked === true || isHookDenial(denied)) return [];
  return [
    system("permission_denied", {
      tool_name: call.name,
      tool_use_id: call.id,
      ...context.child,
      decision_reason_type: denialType(denied),
      message: denied,
    }),
  ];
}

/** The result of a call that has ended; what a skill says follows its result. */
function resultMessages(event: FinishedCall, context: SdkMessageContext): readonly SdkMessage[] {
  const { call, content, isError, data } = event;
  if (content === undefined) return [];
  const uuid = context.uuid();
  context.results.show(call.id, uuid);
  const isSkill = call.name === "Skill" && !isError;
  const block: ToolResultBlock = {
    type: "tool_result",
    tool_use_id: call.id,
    content: isSkill ? `The skill ${skillOf(call.input)} follows.` : content,
    ...(isError ? { is_error: true } : {}),
  };
  const results = data === undefined ? {} : { [call.id]: data };
  const meta = resultMeta(event);
  const shown = call.name === "StructuredOutput" && !isError ? { tool_use_result: content } : undefined;
  const result = { ...resultMessage(block, results, context, uuid), ...shown, ...meta };
  if (!isSkill) return [result];
  const text = typeof content === "string" ? [{ type: "text", text: content }] : content;
  return [result, { ...syntheticUser(text, context), timestamp: now() }];
}

function skillOf(input: unknown): string {
  return isRecord(input) && typeof input["skill"] === "string" ? input["skill"] : "";
}

/** Children's results carry no structured form, but why they failed. */
function resultMessage(
  block: ToolResultBlock,
  results: Readonly<Record<string, unknown>>,
  context: SdkMessageContext,
  uuid?: string,
): SdkMessage {
  return {
    type: "user",
    message: { role: "user", content: [shownResult(block, results)] },
    ...own(context, uuid),
    ...(context.parentToolUseId === undefined || block.is_error === true
      ? toolUseResult(block, results)
      : {}),
    timestamp: now(),
  };
}

function syntheticUser(content: unknown, context: SdkMessageContext, uuid?: string): SdkMessage {
  return {
    type: "user",
    message: { role: "user", content },
    ...own(context, uuid),
    isSynthetic: true,
  };
}

export function own(context: SdkMessageContext, uuid = context.uuid()): JsonRecord {
  return {
    parent_tool_use_id: context.parentToolUseId ?? null,
    session_id: context.sessionId,
    uuid,
    ...context.child,
  };
}

type Answer = Extract<RunEvent, { type: "assistant-answered" }>;
export type AnswerHead = Pick<Answer, "id" | "model" | "usage" | "requestId">;

export function blockMessage(
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
    request_id: requestId,
    timestamp: now(),
  };
}

/** An answer that no model gave. */
export function syntheticAnswer(
  text: string,
  { id, uuid, sessionId }: { readonly id: string; readonly uuid: string; readonly sessionId: string },
  stop: { readonly stop_reason: string; readonly stop_sequence: string | null },
): SdkMessage {
  return {
    type: "assistant",
    message: {
      id,
      type: "message",
      role: "assistant",
      model: "<synthetic>",
      content: [{ type: "text", text }],
      ...stop,
      stop_details: null,
      usage: sdkUsage(noUsage),
      context_management: null,
    },
    parent_tool_use_id: null,
    session_id: sessionId,
    uuid,
    timestamp: now(),
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
  const answers = blocks.flatMap((block, index) =>
    context.results.isShown(block.tool_use_id) ? [] : [resultMessage(block, results, context, ids[index])],
  );
  const isKnown = origin === "tool-results" || origin === "message";
  if (rest.length === 0 || isKnown) return answers;
  return [...answers, syntheticUser(rest, context, ids.at(-1))];
}

/** What programs read of a result: the output of the tool, or why it failed. */
function toolUseResult(block: ToolResultBlock, results: Readonly<Record<string, unknown>>): JsonRecord {
  if (block.is_error === true) {
    const { content } = block;
    const texts = typeof content === "string" ? [content] : (content ?? []).flatMap((part) => textsOf(part));
    return { tool_use_result: `Error: ${texts.join("\n")}` };
  }
  if (!Object.hasOwn(results, block.tool_use_id)) return {};
  return { tool_use_result: programResult(results[block.tool_use_id], block.content) };
}

/** Programs read the results of agents and servers as blocks, and of a command that it did not fail. */
function shownResult(block: ToolResultBlock, results: Readonly<Record<string, unknown>>): ToolResultBlock {
  const result = results[block.tool_use_id];
  if (block.is_error === true || !isRecord(result)) return block;
  if (isCommandResult(result)) return { ...block, is_error: false };
  const { content } = block;
  const inBlocks = typeof result["agentId"] === "string" || isServerResult(result);
  // A structured result stays the text that it is.
  if (typeof content !== "string" || !inBlocks || result["structuredContent"] !== undefined) return block;
  return { ...block, content: [{ type: "text", text: content }] };
}

/** What a tool gives programs; commands, written files and results of servers in the form they know. */
export function programResult(result: unknown, content?: ToolResultBlock["content"]): unknown {
  if (!isRecord(result)) return result;
  if (isCommandResult(result)) {
    const { durationMs: _duration, exitCode: _code, ...rest } = result;
    return { ...rest, stdout: result["stdout"].trimEnd(), isImage: false, noOutputExpected: false };
  }
  if (isServerResult(result)) {
    // The blocks that a tool of a server gave, beside its structured content where it has one.
    if (content === undefined) return result;
    const blocks = typeof content === "string" ? [{ type: "text", text: content }] : content;
    const { structuredContent } = result;
    return structuredContent === undefined ? blocks : { content, structuredContent };
  }
  if (typeof result["filePath"] !== "string" || !["create", "update"].includes(String(result["type"])))
    return result;
  const isNew = result["type"] === "create";
  return {
    originalFile: null,
    userModified: false,
    ...result,
    ...(isNew ? { structuredPatch: [] } : {}),
  };
}

function isCommandResult(result: JsonRecord): result is JsonRecord & { readonly stdout: string } {
  return typeof result["stdout"] === "string";
}

function isServerResult({ server, tool }: JsonRecord): boolean {
  return typeof server === "string" && typeof tool === "string";
}

function textsOf(part: Exclude<NonNullable<ToolResultBlock["content"]>, string>[number]): readonly string[] {
  return part.type === "text" ? [part.text] : [];
}

function isResult(block: UserBlock): block is ToolResultBlock {
  return block.type === "tool_result";
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

/** Something for people that needs no place in the conversation. */
export function notification(key: string, text: string, sessionId: string): SdkMessage {
  const about = { key, text, priority: "immediate" };
  return { type: "system", subtype: "notification", ...about, uuid: randomUUID(), session_id: sessionId };
}

export function interruptedMessage(sessionId: string, inTools: boolean): SdkMessage {
  const text = inTools ? "[Request interrupted by user for tool use]" : "[Request interrupted by user]";
  return {
    type: "user",
    message: { role: "user", content: [{ type: "text", text }] },
    parent_tool_use_id: null,
    session_id: sessionId,
    uuid: randomUUID(),
    timestamp: now(),
  };
}
