import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import type { AssistantBlock } from "../../conversation/message.ts";
import { readCallInput } from "../read-call-input.ts";

/** A block while its deltas arrive. */
export interface BlockBuilder {
  readonly raw: JsonRecord;
  readonly initial: AssistantBlock;
  text: string;
  json: string;
  signature: string;
  readonly citations: unknown[];
}

export function startBlock(raw: JsonRecord): BlockBuilder {
  const citations = raw["citations"];
  return {
    raw,
    initial: initialBlock(raw),
    text: stringOf(raw["type"] === "thinking" ? raw["thinking"] : raw["text"]),
    json: "",
    signature: stringOf(raw["signature"]),
    citations: Array.isArray(citations) ? [...citations] : [],
  };
}

/** The finished block. A call whose input is not a JSON object keeps what was written, for the error that answers it. */
export function buildBlock(builder: BlockBuilder): AssistantBlock {
  const { raw, initial, text, json, signature, citations } = builder;
  switch (initial.type) {
    case "text":
      return citations.length === 0 ? { type: "text", text } : { type: "text", text, citations };
    case "thinking":
      return { type: "thinking", thinking: text, signature };
    case "tool_use":
      return { ...initial, input: readInput(json, raw["input"]) };
    case "server_tool_use": {
      // The provider has run it already, and takes it back only with an object.
      const input = readInput(json, raw["input"]);
      return { ...initial, input: isRecord(input) ? input : {} };
    }
    default:
      return initial;
  }
}

/** Blocks this program does not recognize travel in a wrapping, and are sent back as they came. */
export const wrappedBy = "anthropic";

function initialBlock(raw: JsonRecord): AssistantBlock {
  switch (raw["type"]) {
    case "text":
      return { type: "text", text: stringOf(raw["text"]) };
    case "thinking":
      return { type: "thinking", thinking: stringOf(raw["thinking"]), signature: stringOf(raw["signature"]) };
    case "redacted_thinking":
      return { type: "redacted_thinking", data: stringOf(raw["data"]) };
    case "tool_use":
      return { type: "tool_use", id: stringOf(raw["id"]), name: stringOf(raw["name"]), input: {} };
    case "server_tool_use":
      return { ...raw, type: "server_tool_use" };
    case "web_search_tool_result":
      return { ...raw, type: "web_search_tool_result" };
    case "web_fetch_tool_result":
      return { ...raw, type: "web_fetch_tool_result" };
    default:
      return { type: "provider", provider: wrappedBy, block: raw };
  }
}

function readInput(json: string, given: unknown): unknown {
  return json.trim() === "" && isRecord(given) ? given : readCallInput(json);
}

function stringOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
