/** Messages are shaped like the Anthropic API's, so that transcripts need no translation. All of it is plain data. */

export interface TextBlock {
  readonly type: "text";
  readonly text: string;
  readonly citations?: readonly unknown[] | null;
}

export interface ThinkingBlock {
  readonly type: "thinking";
  readonly thinking: string;
  readonly signature: string;
}

export interface RedactedThinkingBlock {
  readonly type: "redacted_thinking";
  readonly data: string;
}

export interface ToolUseBlock {
  readonly type: "tool_use";
  readonly id: string;
  readonly name: string;
  /** A JSON object; where the model wrote something else, that value, or its text where it is no JSON. */
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
  readonly title?: string;
}

export interface ToolResultBlock {
  readonly type: "tool_result";
  readonly tool_use_id: string;
  readonly content: string | readonly (TextBlock | ImageBlock | DocumentBlock)[];
  readonly is_error?: boolean;
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
  readonly mail?: readonly string[];
}

export interface AssistantMessage {
  readonly role: "assistant";
  readonly content: readonly AssistantBlock[];
}

export type Message = UserMessage | AssistantMessage;

export function toolCallsOf(message: AssistantMessage): readonly ToolUseBlock[] {
  return message.content.filter((block): block is ToolUseBlock => block.type === "tool_use");
}

/** The text a person would read, without thinking and calls. */
export function textOf(message: Message): string {
  if (typeof message.content === "string") return message.content;
  const blocks: readonly (AssistantBlock | UserBlock)[] = message.content;
  return blocks.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n");
}
