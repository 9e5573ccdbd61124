import type { Message, ModelEvent } from "../conversation/message.ts";
import type { Price } from "../conversation/usage.ts";

export type { ModelEvent } from "../conversation/message.ts";

/** A tool as a model sees it. */
export interface ToolSpecification {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the input object. */
  readonly inputSchema: Readonly<Record<string, unknown>>;
  /** `searches`: its results make other tools appear. `found`: such a one, which comes behind all others. */
  readonly loading?: "searches" | "found" | undefined;
}

/** A tool that the provider runs itself, such as its web search. Models without it ignore it. */
export interface ServerTool {
  readonly name: "web_search";
  readonly maxUses?: number | undefined;
  readonly allowedDomains?: readonly string[] | undefined;
  readonly blockedDomains?: readonly string[] | undefined;
}

/** One provider turn, complete as data. The order tools, system, messages is stable between turns, so that caches hold. */
export interface ModelRequest {
  readonly system: readonly string[];
  readonly tools: readonly ToolSpecification[];
  readonly serverTools?: readonly ServerTool[] | undefined;
  readonly messages: readonly Message[];
  /** The most tokens the answer may have; the model's own limit when absent. */
  readonly maxTokens?: number | undefined;
  readonly toolChoice?: "auto" | "none" | { readonly tool: string } | undefined;
  readonly effort?: string | number | undefined;
  /** How long the provider keeps what the request has in common with the next; as usual there when absent. */
  readonly cacheTtl?: "5m" | "1h" | undefined;
  /** Whether the model thinks before it answers; as usual for it when absent. */
  readonly thinks?: boolean | undefined;
}

/** What is known of a model before it is asked. */
export interface ModelFacts {
  readonly id: string;
  readonly provider: string;
  /** Tokens that fit, prompt and answer together. */
  readonly contextWindow: number;
  readonly maxOutputTokens: number;
  readonly price?: Price | undefined;
  readonly supportsServerTools: boolean;
}

/** One model of one provider. */
export interface Model {
  readonly facts: ModelFacts;
  stream(request: ModelRequest, options: { readonly signal: AbortSignal }): AsyncIterable<ModelEvent>;
}
