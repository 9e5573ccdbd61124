import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import type { AssistantBlock, AssistantMessage, StopReason } from "../../conversation/message.ts";
import { noUsage, type Usage } from "../../conversation/usage.ts";
import type { ModelEvent } from "../model.ts";
import { ModelError } from "../model-error.ts";
import { type BlockBuilder, buildBlock, startBlock } from "./block-builder.ts";
import { streamEventError } from "./request-error.ts";

export interface MessageAssembler {
  /** What one provider event means to us, if anything. Unknown events mean nothing; impossible ones throw a ModelError. */
  take(event: JsonRecord): ModelEvent | undefined;
  /** What the end of the stream means: a last event that the provider left unsaid, or a ModelError when words are missing. */
  end(): ModelEvent | undefined;
}

/** Puts a message together from the provider's stream events, passing deltas on as they come. */
export function createMessageAssembler(requestId?: string): MessageAssembler {
  const draft: Draft = {
    requestId,
    open: new Map(),
    content: [],
    head: undefined,
    usage: noUsage,
    stopReason: undefined,
    ended: false,
  };
  return {
    take(event) {
      const handle = handlers.get(String(event["type"]));
      return handle?.(draft, event);
    },
    end() {
      if (draft.ended) return undefined;
      if (typeof draft.stopReason === "string" && draft.open.size === 0) return endMessage(draft);
      throw new ModelError("stream-cut", "The provider's answer broke off before its end.", {
        requestId,
        advice: "This is usually temporary; if it persists, check for a proxy that cuts off long answers.",
      });
    },
  };
}

/** A message as far as it has come. */
interface Draft {
  readonly requestId: string | undefined;
  readonly open: Map<number, BlockBuilder>;
  readonly content: AssistantBlock[];
  head: { readonly id: string; readonly model: string } | undefined;
  usage: Usage;
  stopReason: unknown;
  ended: boolean;
}

type Handler = (draft: Draft, event: JsonRecord) => ModelEvent | undefined;

/** By the type of the event; the first one is by far the most frequent. */
const handlers: ReadonlyMap<string, Handler> = new Map<string, Handler>([
  ["content_block_delta", takeDelta],
  ["message_start", startMessage],
  ["content_block_start", beginBlock],
  ["content_block_stop", endBlock],
  ["message_delta", changeMessage],
  ["message_stop", endMessage],
  ["error", fail],
]);

function startMessage(draft: Draft, event: JsonRecord): ModelEvent {
  const message = recordAt(event, "message");
  const head = { id: String(message["id"] ?? ""), model: String(message["model"] ?? "") };
  draft.head = head;
  draft.usage = readUsage(message["usage"], draft.usage);
  const { usage, requestId } = draft;
  return { type: "message-started", ...head, usage, ...(requestId === undefined ? {} : { requestId }) };
}

function beginBlock({ head, open }: Draft, event: JsonRecord): ModelEvent {
  if (head === undefined) throw malformed("a block came before message_start");
  const index = Number(event["index"]);
  const builder = startBlock(recordAt(event, "content_block"));
  open.set(index, builder);
  return { type: "block-started", index, block: builder.initial };
}

function builderAt(
  { open }: Draft,
  event: JsonRecord,
): { readonly index: number; readonly builder: BlockBuilder } {
  const index = Number(event["index"]);
  const builder = open.get(index);
  if (builder === undefined)
    throw malformed(`${event["type"]} names block ${index}, which was never started`);
  return { index, builder };
}

function takeDelta(draft: Draft, event: JsonRecord): ModelEvent | undefined {
  const { index, builder } = builderAt(draft, event);
  const delta = recordAt(event, "delta");
  switch (delta["type"]) {
    case "text_delta":
      builder.text += delta["text"];
      return { type: "text-delta", index, text: String(delta["text"]) };
    case "thinking_delta":
      builder.text += delta["thinking"];
      return { type: "thinking-delta", index, text: String(delta["thinking"]) };
    case "input_json_delta":
      builder.json += delta["partial_json"];
      return { type: "input-delta", index, json: String(delta["partial_json"]) };
    case "signature_delta":
      builder.signature += delta["signature"];
      return undefined;
    case "citations_delta":
      builder.citations.push(delta["citation"]);
      return undefined;
    default:
      return undefined;
  }
}

function endBlock(draft: Draft, event: JsonRecord): ModelEvent {
  const { index, builder } = builderAt(draft, event);
  draft.open.delete(index);
  const block = buildBlock(builder);
  draft.content.push(block);
  return { type: "block-ended", index, block };
}

function changeMessage(draft: Draft, event: JsonRecord): undefined {
  const delta = event["delta"];
  if (isRecord(delta)) draft.stopReason = delta["stop_reason"] ?? draft.stopReason;
  draft.usage = readUsage(event["usage"], draft.usage);
}

function endMessage(draft: Draft): ModelEvent {
  const { head, open, content, usage, requestId } = draft;
  if (head === undefined) throw malformed("the message ended before it started");
  if (open.size > 0) throw malformed("the message ended inside a block");
  const reason = readStopReason(draft.stopReason, content);
  draft.ended = true;
  const whole = withoutCalls.has(reason)
    ? content.filter((block) => block.type !== "tool_use" || isRecord(block.input))
    : content;
  const message: AssistantMessage = { role: "assistant", content: whole };
  return {
    type: "message-ended",
    ...head,
    message,
    stopReason: reason,
    usage,
    ...(requestId === undefined ? {} : { requestId }),
  };
}

function fail({ requestId }: Draft, event: JsonRecord): never {
  throw streamEventError(event, requestId);
}

/** After these nothing of a call that broke off is answered; the run ends, or continues without it. */
const withoutCalls: ReadonlySet<StopReason> = new Set([
  "model_context_window_exceeded",
  "refusal",
  "pause_turn",
]);

const stopReasons: ReadonlySet<unknown> = new Set<StopReason>([
  "end_turn",
  "tool_use",
  "max_tokens",
  "stop_sequence",
  "pause_turn",
  "refusal",
  "model_context_window_exceeded",
]);

/** A reason that is new to us is read from what the message holds. */
function readStopReason(reason: unknown, content: readonly AssistantBlock[]): StopReason {
  // The set holds exactly the members of the type.
  if (stopReasons.has(reason)) return reason as StopReason;
  return content.some(({ type }) => type === "tool_use") ? "tool_use" : "end_turn";
}

/** Counts are cumulative; one that is not said keeps its last value. */
function readUsage(reported: unknown, before: Usage): Usage {
  if (!isRecord(reported)) return before;
  const count = (key: string, last: number): number => {
    const value = reported[key];
    return typeof value === "number" && Number.isFinite(value) ? value : last;
  };
  return {
    inputTokens: count("input_tokens", before.inputTokens),
    outputTokens: count("output_tokens", before.outputTokens),
    cacheReadTokens: count("cache_read_input_tokens", before.cacheReadTokens),
    cacheWriteTokens: count("cache_creation_input_tokens", before.cacheWriteTokens),
  };
}

function recordAt(event: JsonRecord, key: string): JsonRecord {
  const value = event[key];
  if (!isRecord(value)) throw malformed(`${event["type"]} has no ${key}`);
  return value;
}

function malformed(what: string): ModelError {
  return new ModelError("stream-malformed", `The provider's answer cannot be read: ${what}.`);
}
