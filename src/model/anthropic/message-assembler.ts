import type { AssistantBlock, AssistantMessage } from "../../conversation/message.ts";
import type { StopReason } from "../../conversation/stop-reason.ts";
import { noUsage, type Usage } from "../../conversation/usage.ts";
import { isRecord, type JsonRecord } from "../../foundation/json-record.ts";
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
  const open = new Map<number, BlockBuilder>();
  const content: AssistantBlock[] = [];
  let head: { readonly id: string; readonly model: string } | undefined;
  let usage: Usage = noUsage;
  let stopReason: unknown;
  let ended = false;

  function builderAt(event: JsonRecord): { readonly index: number; readonly builder: BlockBuilder } {
    const index = Number(event["index"]);
    const builder = open.get(index);
    if (builder === undefined) throw malformed(`${event["type"]} names block ${index}, which was not begun`);
    return { index, builder };
  }

  function start(event: JsonRecord): ModelEvent {
    const message = recordAt(event, "message");
    head = { id: String(message["id"] ?? ""), model: String(message["model"] ?? "") };
    usage = readUsage(message["usage"], usage);
    return { type: "message-started", ...head, usage };
  }

  function beginBlock(event: JsonRecord): ModelEvent {
    if (head === undefined) throw malformed("a block came before message_start");
    const index = Number(event["index"]);
    const builder = startBlock(recordAt(event, "content_block"));
    open.set(index, builder);
    return { type: "block-started", index, block: builder.initial };
  }

  function takeDelta(event: JsonRecord): ModelEvent | undefined {
    const { index, builder } = builderAt(event);
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

  function endBlock(event: JsonRecord): ModelEvent | undefined {
    const { index, builder } = builderAt(event);
    open.delete(index);
    const block = buildBlock(builder);
    content.push(block);
    return { type: "block-ended", index, block };
  }

  function endMessage(): ModelEvent {
    if (head === undefined) throw malformed("the message ended before it began");
    if (open.size > 0) throw malformed("the message ended inside a block");
    const reason = readStopReason(stopReason, content);
    ended = true;
    const whole = withoutCalls.has(reason) ? content.filter(isReadable) : content;
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

  return {
    take(event) {
      switch (event["type"]) {
        case "content_block_delta":
          return takeDelta(event);
        case "message_start":
          return start(event);
        case "content_block_start":
          return beginBlock(event);
        case "content_block_stop":
          return endBlock(event);
        case "message_delta": {
          const delta = event["delta"];
          if (isRecord(delta)) stopReason = delta["stop_reason"] ?? stopReason;
          usage = readUsage(event["usage"], usage);
          return undefined;
        }
        case "message_stop":
          return endMessage();
        case "error":
          throw streamEventError(event, requestId);
        default:
          return undefined;
      }
    },
    end() {
      if (ended) return undefined;
      if (typeof stopReason === "string" && open.size === 0) return endMessage();
      throw new ModelError("stream-cut", "The provider's answer broke off before its end.", {
        ...(requestId === undefined ? {} : { requestId }),
        advice: "This passes by itself as a rule; if it does not, look for a proxy that cuts long answers.",
      });
    },
  };
}

/** After these nothing of a call that broke off is answered; the run ends, or continues without it. */
const withoutCalls: ReadonlySet<StopReason> = new Set([
  "model_context_window_exceeded",
  "refusal",
  "pause_turn",
]);

function isReadable(block: AssistantBlock): boolean {
  return block.type !== "tool_use" || isRecord(block.input);
}

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
function readUsage(said: unknown, before: Usage): Usage {
  if (!isRecord(said)) return before;
  const count = (key: string, last: number): number => {
    const value = said[key];
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
