import { isRecord } from "@retinue/base/foundation/json-record.ts";
import {
  type AssistantBlock,
  type Message,
  referenceText,
  type ToolReferenceBlock,
  type UserBlock,
} from "../../conversation/message.ts";
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

function toWireBlock(block: AssistantBlock | UserBlock | ToolReferenceBlock): readonly WireBlock[] {
  switch (block.type) {
    case "tool_reference":
      return [{ type: "tool_reference", tool_name: block.tool_name }];
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

/** The tools that the results of a message name as found. */
export function referencesIn({ content }: WireMessage): readonly string[] {
  return content.flatMap((block) =>
    partsOf(block).flatMap((part) => (isReference(part) ? part.tool_name : [])),
  );
}

/**
 * References stay where the request defers the tool they name; all others become words. What else is in such a result comes
 * behind it: the API takes references alone.
 */
export function withReferences(message: WireMessage, deferred: ReadonlySet<string>): WireMessage {
  const behind: WireBlock[] = [];
  const content = message.content.map((block): WireBlock => {
    const parts = partsOf(block).map((part) =>
      isReference(part) && !deferred.has(part.tool_name) ? inWords(part) : part,
    );
    const kept = parts.filter(isReference);
    if (kept.length === 0) return parts.length === 0 ? block : { ...block, content: parts };
    behind.push(...parts.filter((part) => !isReference(part)));
    return { ...block, content: kept };
  });
  return { role: message.role, content: [...content, ...behind] };
}

function partsOf(block: WireBlock): readonly WireBlock[] {
  const parts: unknown = block.type === "tool_result" ? block["content"] : undefined;
  // Written by toWireBlock above.
  return Array.isArray(parts) && parts.some(isReference) ? (parts as readonly WireBlock[]) : [];
}

function isReference(part: unknown): part is WireBlock & { readonly tool_name: string } {
  return isRecord(part) && part["type"] === "tool_reference" && typeof part["tool_name"] === "string";
}

function inWords({ tool_name }: { readonly tool_name: string }): WireBlock {
  return { type: "text", text: referenceText({ type: "tool_reference", tool_name }) };
}

/** Ids of calls that another provider made may have signs that this one refuses. */
function wireId(id: string): string {
  return plainId.test(id) ? id : id.replace(/[^A-Za-z0-9_-]/g, "_") || "call";
}

const plainId = /^[A-Za-z0-9_-]+$/;
