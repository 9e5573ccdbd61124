import type { AssistantBlock, AssistantMessage, Message } from "../conversation/message.ts";
import type { StopReason } from "../conversation/stop-reason.ts";
import type { Price, Usage } from "../conversation/usage.ts";

/** A tool as a model sees it. */
export interface ToolSpecification {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the input object. */
  readonly inputSchema: Readonly<Record<string, unknown>>;
}

/** A tool that the provider runs itself, such as its web search. Models without it ignore it. */
export interface ServerTool {
  readonly name: "web_search";
  readonly maxUses?: number;
  readonly allowedDomains?: readonly string[];
  readonly blockedDomains?: readonly string[];
}

/** One provider turn, complete as data. The order tools, system, messages is stable between turns, so that caches hold. */
export interface ModelRequest {
  readonly system: readonly string[];
  readonly tools: readonly ToolSpecification[];
  readonly serverTools?: readonly ServerTool[];
  readonly messages: readonly Message[];
  /** The most tokens the answer may have; the model's own limit when absent. */
  readonly maxTokens?: number;
  readonly toolChoice?: "auto" | "none" | { readonly tool: string };
  readonly effort?: string | number;
}

/**
 * What a model says while it answers. `block-ended` carries the whole block; deltas are only for those who watch.
 * The stream ends with exactly one `message-ended`, or it throws a ModelFault. `attempt-failed` says that what came
 * since the last `message-started` is void and the request is made again.
 */
export type ModelEvent =
  | { readonly type: "message-started"; readonly id: string; readonly model: string; readonly usage?: Usage }
  | { readonly type: "block-started"; readonly index: number; readonly block: AssistantBlock }
  | { readonly type: "text-delta"; readonly index: number; readonly text: string }
  | { readonly type: "thinking-delta"; readonly index: number; readonly text: string }
  | { readonly type: "input-delta"; readonly index: number; readonly json: string }
  | { readonly type: "block-ended"; readonly index: number; readonly block: AssistantBlock }
  | {
      readonly type: "attempt-failed";
      readonly attempt: number;
      readonly maxAttempts: number;
      readonly delayMs: number;
      readonly code: string;
      readonly status?: number;
      readonly message: string;
    }
  | {
      readonly type: "message-ended";
      readonly id: string;
      readonly model: string;
      readonly message: AssistantMessage;
      readonly stopReason: StopReason;
      readonly usage: Usage;
      readonly requestId?: string;
    };

/** What is known of a model before it is asked. */
export interface ModelFacts {
  readonly id: string;
  readonly provider: string;
  /** Tokens that fit, prompt and answer together. */
  readonly contextWindow: number;
  readonly maxOutputTokens: number;
  readonly price?: Price;
  readonly supportsServerTools: boolean;
}

/** One model of one provider. */
export interface Model {
  readonly facts: ModelFacts;
  stream(request: ModelRequest, options: { readonly signal: AbortSignal }): AsyncIterable<ModelEvent>;
}
