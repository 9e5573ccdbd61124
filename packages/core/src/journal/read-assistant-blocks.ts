import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import type { AssistantBlock, ToolResultBlock, UserBlock } from "../conversation/message.ts";

/** The blocks of a user's line that a model can be given again; anything else in the file is left out. */
export function readUserBlocks(content: unknown): readonly UserBlock[] {
  if (typeof content === "string") return hasWords(content) ? [{ type: "text", text: content }] : [];
  if (!Array.isArray(content)) return [];
  return content.flatMap((block: unknown) => (isRecord(block) ? readUserBlock(block) : []));
}

/** Blocks this version does not recognize are kept: only their provider can judge them. */
export function readAssistantBlocks(content: unknown): readonly AssistantBlock[] {
  if (typeof content === "string") return hasWords(content) ? [{ type: "text", text: content }] : [];
  if (!Array.isArray(content)) return [];
  return content.flatMap((block: unknown) => (isRecord(block) ? readAssistantBlock(block) : []));
}

function readUserBlock(block: JsonRecord): readonly UserBlock[] {
  const isKept =
    (block.type === "text" && typeof block.text === "string" && hasWords(block.text)) ||
    ((block.type === "image" || block.type === "document") && isRecord(block.source));
  // The fields that distinguish the kinds were checked; what else a block carries is the provider's.
  if (isKept) return [block as unknown as UserBlock];
  if (block.type !== "tool_result" || typeof block.tool_use_id !== "string") return [];
  // The content is checked below, the other fields above.
  return [{ ...block, content: readResultContent(block.content) } as unknown as ToolResultBlock];
}

function readResultContent(content: unknown): ToolResultBlock["content"] {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  const kept = content.filter((part: unknown) => {
    if (!isRecord(part) || typeof part.type !== "string") return false;
    return part.type !== "text" || (typeof part.text === "string" && hasWords(part.text));
  });
  // Only blocks with a type remain.
  return kept.length === 0 ? "" : (kept as ToolResultBlock["content"]);
}

function readAssistantBlock(block: JsonRecord): readonly AssistantBlock[] {
  // Each case checks the fields that this product reads; the rest goes back to the provider unchanged.
  const same = [block as unknown as AssistantBlock];
  switch (block.type) {
    case "text":
      return typeof block.text === "string" && hasWords(block.text) ? same : [];
    case "thinking":
      return typeof block.thinking === "string" && typeof block.signature === "string" ? same : [];
    case "redacted_thinking":
      return typeof block.data === "string" ? same : [];
    case "tool_use": {
      if (typeof block.id !== "string" || typeof block.name !== "string") return [];
      const { id, name } = block;
      return isRecord(block.input) ? same : [{ ...block, type: "tool_use", id, name, input: {} }];
    }
    default:
      return typeof block.type === "string" ? same : [];
  }
}

/** Providers refuse text without a visible character. */
function hasWords(text: string): boolean {
  return text.trim() !== "";
}
