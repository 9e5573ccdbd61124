import { isRecord } from "@retinue/base/foundation/json-record.ts";
import type { AssistantBlock, Message, UserBlock } from "../../conversation/message.ts";
import { sentCallInput } from "../read-call-input.ts";
import { wrappedBy } from "./block-builder.ts";

/** A content block as it is sent; keys always in the same order, so that the same conversation gives the same bytes. */
export interface WireBlock {
  readonly type: string;
  readonly [key: string]: unknown;
}

export interface WireMessage {
  readonly role: "user" | "assistant";
  readonly content: readonly WireBlock[];
}

/** A message as the Messages API takes it, or undefined when nothing of it can be sent. */
export function toWireMessage(message: Message): WireMessage | undefined {
  const blocks: readonly (AssistantBlock | UserBlock)[] =
    typeof message.content === "string" ? [{ type: "text", text: message.content }] : message.content;
  const content = blocks.flatMap(toWireBlock);
  return content.length === 0 ? undefined : { role: message.role, content };
}

function toWireBlock(block: AssistantBlock | UserBlock): readonly WireBlock[] {
  switch (block.type) {
    case "text": {
      // The API refuses text blocks without a visible character.
      if (block.text.trim() === "") return [];
      const citations = block.citations ?? [];
      const text = { type: "text", text: block.text };
      return [citations.length === 0 ? text : { ...text, citations }];
    }
    case "thinking":
      // Without a signature it came from another provider, which this one cannot check.
      if (block.signature === "") return [];
      return [{ type: "thinking", thinking: block.thinking, signature: block.signature }];
    case "redacted_thinking":
      return [{ type: "redacted_thinking", data: block.data }];
    case "tool_use":
      return [
        { type: "tool_use", id: wireId(block.id), name: block.name, input: sentCallInput(block.input) },
      ];
    case "tool_result": {
      const failed = block.is_error === true;
      const content =
        typeof block.content === "string"
          ? block.content
          : block.content.flatMap((part) => toWireBlock(part));
      const wireResult: WireBlock = {
        type: "tool_result",
        tool_use_id: wireId(block.tool_use_id),
        // The API refuses a failed result that says nothing.
        content: failed && content.length === 0 ? "(no output)" : content,
        ...(failed ? { is_error: true } : {}),
      };
      return [wireResult];
    }
    case "image":
      return [{ type: "image", source: block.source }];
    case "document":
      return [
        {
          type: "document",
          source: block.source,
          title: block.title,
        },
      ];
    case "provider": {
      const wrapped = block["block"];
      const isOurs =
        block["provider"] === wrappedBy && isRecord(wrapped) && typeof wrapped["type"] === "string";
      return isOurs ? [{ ...wrapped, type: String(wrapped["type"]) }] : [];
    }
    default:
      return [block];
  }
}

/** Ids of calls that another provider made may have signs that this one refuses. */
function wireId(id: string): string {
  return plainId.test(id) ? id : id.replace(/[^A-Za-z0-9_-]/g, "_") || "call";
}

const plainId = /^[A-Za-z0-9_-]+$/;
