import type { Usage } from "./usage.ts";

/** Messages are shaped like the Anthropic API's, so that transcripts need no translation. All of it is plain data. */

export interface TextBlock {
  readonly type: "text";
  readonly text: string;
  readonly citations?: readonly unknown[] | null | undefined;
}

interface ThinkingBlock {
  readonly type: "thinking";
  readonly thinking: string;
  readonly signature: string;
}

interface RedactedThinkingBlock {
  readonly type: "redacted_thinking";
  readonly data: string;
}

export interface ToolUseBlock {
  readonly type: "tool_use";
  readonly id: string;
  readonly name: string;
  /** A JSON object; where the model wrote something else, that value, or its text where it is not JSON. */
  readonly input: unknown;
}

export interface ImageBlock {
  readonly type: "image";
  readonly source:
    | { readonly type: "base64"; readonly media_type: string; readonly data: string }
    | { readonly type: "url"; readonly url: string };
}

export interface DocumentBlock {
  readonly type: "document";
  readonly source: { readonly type: "base64"; readonly media_type: string; readonly data: string };
  readonly title?: string | undefined;
}

/** A tool that was found by a search: from here on the model has it. */
export interface ToolReferenceBlock {
  readonly type: "tool_reference";
  readonly tool_name: string;
}

export interface ToolResultBlock {
  readonly type: "tool_result";
  readonly tool_use_id: string;
  readonly content: string | readonly (TextBlock | ImageBlock | DocumentBlock | ToolReferenceBlock)[];
  readonly is_error?: boolean | undefined;
}

/** What a provider's own server tools put into an answer; kept and sent back unchanged. */
export interface ProviderBlock {
  readonly type: "server_tool_use" | "web_search_tool_result" | "web_fetch_tool_result" | "provider";
  readonly [key: string]: unknown;
}

export type AssistantBlock = TextBlock | ThinkingBlock | RedactedThinkingBlock | ToolUseBlock | ProviderBlock;
export type UserBlock = TextBlock | ImageBlock | DocumentBlock | ToolResultBlock;

export interface UserMessage {
  readonly role: "user";
  readonly content: string | readonly UserBlock[];
  /** The keys of the team mail it delivers; written down with it, so that no mail is delivered twice. Never sent. */
  readonly mail?: readonly string[] | undefined;
}

export interface AssistantMessage {
  readonly role: "assistant";
  readonly content: readonly AssistantBlock[];
}

export type Message = UserMessage | AssistantMessage;

export function toolCallsOf(message: AssistantMessage): readonly ToolUseBlock[] {
  return message.content.filter((block): block is ToolUseBlock => block.type === "tool_use");
}

/** What is read of found tools where they are not loaded at this place of the conversation. */
export function referenceText({ tool_name: name }: ToolReferenceBlock): string {
  return `Loaded: ${name}`;
}

/** The text of a result, without its files. */
export function resultText(content: ToolResultBlock["content"]): string {
  if (typeof content === "string") return content;
  return content
    .flatMap((block) => {
      if (block.type === "text") return [block.text];
      return block.type === "tool_reference" ? [referenceText(block)] : [];
    })
    .join("\n");
}

/** The text a person would read, without thinking and calls. */
export function textOf(message: Message): string {
  if (typeof message.content === "string") return message.content;
  const blocks: readonly (AssistantBlock | UserBlock)[] = message.content;
  return blocks.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n");
}

/**
 * What a model says while it answers. `block-ended` carries the whole block; deltas are only for viewers.
 * The stream ends with exactly one `message-ended`, or it throws a ModelError. `attempt-failed` says that what came
 * since the last `message-started` is void and the request is made again; `fell-back` that it is, and another model is asked.
 */
export type ModelEvent =
  /** Said now and then while the request waits for its turn, so that the silence is not taken for a stall. */
  | { readonly type: "request-waiting" }
  /** How much of the provider's quota is used, from 0 to 1, and how long it is until there is a new one. */
  | { readonly type: "quota-reported"; readonly used: number; readonly resetsInMs: number }
  /** The quota is used up: the request is made when there is a new one. `until` in milliseconds since 1970. */
  | { readonly type: "quota-waiting"; readonly provider: string; readonly until: number }
  /** The wait for the quota is over. */
  | { readonly type: "quota-renewed"; readonly provider: string }
  | {
      readonly type: "message-started";
      readonly id: string;
      readonly model: string;
      readonly usage?: Usage | undefined;
      readonly requestId?: string | undefined;
    }
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
      readonly status?: number | undefined;
      readonly message: string;
    }
  | { readonly type: "fell-back"; readonly from: string; readonly to: string; readonly code: string }
  | {
      readonly type: "message-ended";
      readonly id: string;
      readonly model: string;
      readonly message: AssistantMessage;
      readonly stopReason: StopReason;
      readonly usage: Usage;
      readonly requestId?: string | undefined;
    };

/** Why a model stopped talking, in the provider-neutral words of the Anthropic API. */
export type StopReason =
  | "end_turn"
  | "tool_use"
  | "max_tokens"
  | "stop_sequence"
  | "pause_turn"
  | "refusal"
  | "model_context_window_exceeded";
