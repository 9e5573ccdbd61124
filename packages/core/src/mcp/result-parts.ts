import { escapeControlTags } from "@retinue/base/foundation/escape-control-tags.ts";
import { isRecord, type JsonRecord, quote } from "@retinue/base/foundation/json-record.ts";
import { imageSizeOf, imageTypeOf } from "../tools/image-size.ts";

/** A piece of what a server gave back. */
export type ResultPart =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "image"; readonly mediaType: string; readonly data: string }
  /** What a model cannot be shown: kept in a file. */
  | { readonly type: "file"; readonly about: string; readonly extension: string; readonly bytes: Buffer };

export interface ReadResult {
  readonly parts: readonly ResultPart[];
  readonly isError: boolean;
  readonly structured?: unknown;
}

const maxParts = 200;
const maxImages = 20;
/** Of all images of one result together, as they are sent. */
const maxImageCharacters = 10_000_000;
const maxImageBytes = 3_750_000;
const maxImageSide = 8_000;

/** Reads the result of a tool call; what is not as the protocol has it becomes text. */
export function readToolResult(result: unknown): ReadResult {
  if (!isRecord(result)) return { parts: [textPart(asText(result))], isError: false };
  const { content, structuredContent, isError } = result;
  const parts = limitImages(readBlocks(content));
  const structured = structuredContent === undefined ? {} : { structured: structuredContent };
  const hasContent = parts.some((part) => part.type !== "text" || part.text.trim() !== "");
  const shownParts =
    !hasContent && structuredContent !== undefined ? [textPart(asText(structuredContent))] : parts;
  return { parts: shownParts, isError: isError === true, ...structured };
}

/** The contents of a resource, as `resources/read` gives them. */
export function readResourceResult(result: unknown): readonly ResultPart[] {
  const contents = isRecord(result) ? result["contents"] : undefined;
  if (!Array.isArray(contents)) return [];
  return limitImages(
    contents.slice(0, maxParts).flatMap((entry) => (isRecord(entry) ? readResource(entry) : [])),
  );
}

function readBlocks(content: unknown): readonly ResultPart[] {
  if (content === undefined || content === null) return [];
  if (!Array.isArray(content)) return [textPart(asText(content))];
  const parts = content.slice(0, maxParts).flatMap(readBlock);
  const more = content.length - maxParts;
  return more > 0 ? [...parts, textPart(`[${more} more parts were left out]`)] : parts;
}

function readBlock(block: unknown): readonly ResultPart[] {
  if (!isRecord(block)) return [textPart(asText(block))];
  switch (block["type"]) {
    case "text":
      return [textPart(asText(block["text"]))];
    case "image":
    case "audio":
      return [readBinary(block["data"], block["mimeType"], String(block["type"]))];
    case "resource":
      return isRecord(block["resource"]) ? readResource(block["resource"]) : [];
    case "resource_link": {
      const { uri, name, title, description } = block;
      const label = [title, name].find((text) => typeof text === "string" && text !== "");
      const about = typeof description === "string" ? `: ${description}` : "";
      const link = `[link to the resource ${quote(uri, 500)}${label === undefined ? "" : ` (${String(label)})`}${about}]`;
      return [textPart(link)];
    }
    default:
      return [textPart(asText(block))];
  }
}

function readResource(resource: JsonRecord): readonly ResultPart[] {
  const { uri, text, blob, mimeType } = resource;
  const head = textPart(`[resource ${quote(uri, 500)}]`);
  if (typeof text === "string") return [head, textPart(text)];
  return blob === undefined ? [head] : [head, readBinary(blob, mimeType, "resource")];
}

/** An image that a provider rejects would spoil the whole conversation, so it is measured before it is shown. */
function readBinary(data: unknown, mimeType: unknown, kind: string): ResultPart {
  if (typeof data !== "string") return textPart(`[${kind} without data]`);
  const bytes = Buffer.from(data, "base64");
  const type = imageTypeOf(bytes);
  const size = type === undefined ? undefined : imageSizeOf(bytes, type);
  const fits = size !== undefined && size.width <= maxImageSide && size.height <= maxImageSide;
  if (type !== undefined && fits && bytes.length <= maxImageBytes) {
    return { type: "image", mediaType: type, data: bytes.toString("base64") };
  }
  const media = typeof mimeType === "string" ? mimeType : "application/octet-stream";
  return filePart(kind, media, bytes);
}

/** A request that is too large is refused as a whole, and every later one with it. */
function limitImages(parts: readonly ResultPart[]): readonly ResultPart[] {
  let images = 0;
  let characters = 0;
  return parts.map((part) => {
    if (part.type !== "image") return part;
    const isWithin = images < maxImages && characters + part.data.length <= maxImageCharacters;
    if (!isWithin) return filePart("image", part.mediaType, Buffer.from(part.data, "base64"));
    images += 1;
    characters += part.data.length;
    return part;
  });
}

function filePart(kind: string, media: string, bytes: Buffer): ResultPart {
  const about = escapeControlTags(`${kind}, ${quote(media, 100)}, ${bytes.length} bytes`);
  return {
    type: "file",
    about,
    extension: /^[a-z]+\/(?:x-)?([a-z0-9]{1,8})\b/i.exec(media)?.[1]?.toLowerCase() ?? "bin",
    bytes,
  };
}

function textPart(text: string): ResultPart {
  return { type: "text", text: escapeControlTags(text) };
}

function asText(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}
