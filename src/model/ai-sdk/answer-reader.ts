import { estimateBlockTokens } from "../../conversation/estimate-request-tokens.ts";
import type { AssistantBlock } from "../../conversation/message.ts";
import type { ModelEvent } from "../../conversation/model-event.ts";
import type { StopReason } from "../../conversation/stop-reason.ts";
import type { Usage } from "../../conversation/usage.ts";
import { isRecord, type JsonRecord } from "../../foundation/json-record.ts";
import { ModelError } from "../model-error.ts";
import { closeBlocks, openBlocks, readBlockPart } from "./open-blocks.ts";
import { toModelError } from "./to-model-error.ts";

export interface AnswerContext {
  /** The id of the message; ours, because some servers repeat theirs. */
  readonly id: string;
  readonly provider: string;
  readonly model: string;
  /** Ids of calls made before in this conversation. */
  readonly earlierCallIds: Iterable<string>;
  /** What the request is likely to have cost, for servers that count nothing. */
  readonly estimateInput: () => number;
  readonly requestId?: string;
}

export interface AnswerReader {
  /** The events that a part of the stream makes; throws a ModelError when the part is an error. */
  read(part: unknown): readonly ModelEvent[];
  /** The events that close the answer; throws a ModelError when the stream broke off. */
  end(): readonly ModelEvent[];
}

/** Makes our events from the parts of an AI SDK stream. */
export function createAnswerReader(context: AnswerContext): AnswerReader {
  const { id, model, provider } = context;
  const modelName = `${provider}/${model}`;
  const open = openBlocks(context.earlierCallIds);
  let finish: JsonRecord | undefined;
  let requestId = context.requestId;
  return {
    read(part) {
      if (!isRecord(part)) return [];
      if (part["type"] === "error") throw toModelError(part["error"], { model: modelName, hasBegun: true });
      if (part["type"] === "finish") finish = part;
      if (part["type"] === "response-metadata" && typeof part["id"] === "string") requestId ??= part["id"];
      return readBlockPart(open, part);
    },
    end() {
      if (finish === undefined) throw new ModelError("stream-cut", `${modelName}: the answer broke off.`);
      const hasCalls = open.blocks.some(({ kind }) => kind === "tool_use");
      const reading = readFinishReason(finish["finishReason"], hasCalls);
      if (reading.type === "failed") {
        throw new ModelError(reading.code, `${modelName}: the provider ended the answer with an error.`);
      }
      const { events, content } = closeBlocks(open, provider);
      const message = { role: "assistant" as const, content };
      const usage = readUsage(finish["usage"]) ?? estimateUsage(content, context);
      const request = requestId === undefined ? {} : { requestId };
      const { reason: stopReason } = reading;
      return [...events, { type: "message-ended", id, model, message, stopReason, usage, ...request }];
    },
  };
}

function estimateUsage(content: readonly AssistantBlock[], { estimateInput }: AnswerContext): Usage {
  const outputTokens = content.reduce((total, block) => total + estimateBlockTokens(block), 0);
  return { inputTokens: estimateInput(), outputTokens, cacheReadTokens: 0, cacheWriteTokens: 0 };
}

/** The counts of a `finish` part in any generation of the interface; undefined where the provider counted nothing. */
export function readUsage(usage: unknown): Usage | undefined {
  if (!isRecord(usage)) return undefined;
  const { inputTokens, outputTokens } = usage;
  const input = isRecord(inputTokens) ? inputTokens : flatInput(usage);
  const output = count(isRecord(outputTokens) ? outputTokens["total"] : outputTokens);
  const total = count(input["total"]);
  const cacheReadTokens = count(input["cacheRead"]) ?? 0;
  const cacheWriteTokens = count(input["cacheWrite"]) ?? 0;
  const fresh = count(input["noCache"]);
  if (total === undefined && fresh === undefined && output === undefined) return undefined;
  const inputTokensLeft = fresh ?? Math.max(0, (total ?? 0) - cacheReadTokens - cacheWriteTokens);
  return { inputTokens: inputTokensLeft, outputTokens: output ?? 0, cacheReadTokens, cacheWriteTokens };
}

type FinishReading =
  | { readonly type: "stopped"; readonly reason: StopReason }
  | { readonly type: "failed"; readonly code: "server-error" | "stream-cut" };

/** Why the model stopped, in our words. Some servers say `stop` also when they call tools. */
export function readFinishReason(finish: unknown, hasCalls: boolean): FinishReading {
  const raw = isRecord(finish) ? finish["raw"] : undefined;
  const unified = isRecord(finish) ? finish["unified"] : finish;
  if (raw === "model_context_window_exceeded") return { type: "stopped", reason: raw };
  switch (unified) {
    case "length":
      return { type: "stopped", reason: "max_tokens" };
    case "content-filter":
      return { type: "stopped", reason: "refusal" };
    case "error":
      return { type: "failed", code: "server-error" };
    case "interrupted":
      return { type: "failed", code: "stream-cut" };
    default:
      return { type: "stopped", reason: hasCalls ? "tool_use" : "end_turn" };
  }
}

/** Up to its second generation the interface had one number for all input. */
function flatInput(usage: JsonRecord): JsonRecord {
  return { total: usage["inputTokens"], cacheRead: usage["cachedInputTokens"] };
}

function count(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) ? Math.max(0, value) : undefined;
}
