import type { AssistantBlock } from "../conversation/message.ts";
import type { ModelEvent } from "../conversation/model-event.ts";
import { estimateBlockTokens } from "../conversation/token-estimate.ts";
import type { Usage } from "../conversation/usage.ts";
import { isRecord, type JsonRecord } from "../foundation/json-value.ts";
import { closeBlocks, openBlocks, readBlockPart } from "./ai-sdk-blocks.ts";
import { toModelError } from "./ai-sdk-error.ts";
import { readFinishReason, readUsage } from "./ai-sdk-usage.ts";
import { ModelError } from "./model-error.ts";

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
  /** The events that a part of the stream makes; throws a ModelFault when the part is an error. */
  read(part: unknown): readonly ModelEvent[];
  /** The events that close the answer; throws a ModelFault when the stream broke off. */
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
