import type { AssistantBlock, Message, ToolReferenceBlock, ToolResultBlock, UserBlock } from "./message.ts";

/** What a model reads at one turn, as far as counting goes. */
export interface CountableRequest {
  readonly system: readonly string[];
  readonly tools: readonly {
    readonly name: string;
    readonly description: string;
    readonly inputSchema: Readonly<Record<string, unknown>>;
  }[];
  readonly messages: readonly Message[];
}

/** A guess without a tokenizer, good to about a fifth; it never shrinks when something is added. */
export function estimateRequestTokens(request: CountableRequest): number {
  const system = sum(request.system, estimateTextTokens);
  return (
    system +
    sum(request.tools, (tool) => {
      const known = toolEstimates.get(tool);
      if (known !== undefined) return known;
      const texts = `${tool.name} ${tool.description} ${json(tool.inputSchema)}`;
      const tokens = tokensPerTool + estimateTextTokens(texts);
      toolEstimates.set(tool, tokens);
      return tokens;
    }) +
    sum(request.messages, estimateMessageTokens)
  );
}

export function estimateMessageTokens(message: Message): number {
  const { content } = message;
  if (typeof content === "string") return tokensPerMessage + estimateTextTokens(content);
  const blocks: readonly (AssistantBlock | UserBlock)[] = content;
  return tokensPerMessage + sum(blocks, estimateBlockTokens);
}

export function estimateBlockTokens(block: AssistantBlock | UserBlock | ToolReferenceBlock): number {
  switch (block.type) {
    case "tool_reference":
      return tokensPerCall + estimateTextTokens(block.tool_name);
    case "text":
      return estimateTextTokens(block.text);
    case "thinking":
      return estimateTextTokens(block.thinking);
    case "image":
      return tokensPerImage;
    case "document":
      return Math.max(tokensPerImage, Math.ceil((block.source.data.length * 0.75) / documentBytesPerToken));
    case "tool_use":
      return tokensPerCall + estimateTextTokens(block.name) + estimateTextTokens(json(block.input));
    case "tool_result":
      return tokensPerCall + resultTokens(block.content);
    default:
      return estimateTextTokens(json(block));
  }
}

/** About four characters of Latin text, two of other alphabets, or two thirds of a Chinese character make a token. */
export function estimateTextTokens(text: string): number {
  let quarters = 0;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code < 0x250) quarters += 1;
    else if (isIdeographic(code)) quarters += 6;
    else quarters += 2;
  }
  return Math.ceil(quarters / 4);
}

const tokensPerMessage = 4;
const tokensPerCall = 8;
const tokensPerTool = 12;
const tokensPerImage = 1_600;
const documentBytesPerToken = 20;

/** Specifications of tools never change, and many agents share them. */
const toolEstimates = new WeakMap<CountableRequest["tools"][number], number>();

/** The content of a result may be left out in conversations that others wrote. */
function resultTokens(content: ToolResultBlock["content"] | undefined): number {
  return typeof content === "string" ? estimateTextTokens(content) : sum(content ?? [], estimateBlockTokens);
}

/** Kana, Chinese characters, Hangul and full-width forms. */
function isIdeographic(code: number): boolean {
  return (
    (code >= 0x2e80 && code <= 0x9fff) ||
    (code >= 0xac00 && code <= 0xd7af) ||
    (code >= 0xf900 && code <= 0xfaff) ||
    (code >= 0xff00 && code <= 0xffef)
  );
}

function json(value: unknown): string {
  return JSON.stringify(value) ?? "";
}

function sum<Item>(items: readonly Item[], tokens: (item: Item) => number): number {
  let total = 0;
  for (const item of items) total += tokens(item);
  return total;
}
