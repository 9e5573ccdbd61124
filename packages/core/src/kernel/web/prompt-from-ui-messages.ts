import { invalid } from "@retinue/base/foundation/check-arguments.ts";
import { quote } from "@retinue/base/foundation/json-record.ts";
import type { UserBlock, UserMessage } from "../../conversation/message.ts";

/**
 * The prompt in the `messages` that `useChat` of the AI SDK sends: the text and files of the last one, which must be the person's. A
 * session knows the messages before it, so nothing else of what a page sends is believed.
 */
export function promptFromUiMessages(messages: unknown): UserMessage["content"] {
  const last: unknown = Array.isArray(messages) ? messages.at(-1) : undefined;
  const { role, parts } = Object(last);
  if (role !== "user" || !Array.isArray(parts))
    throw invalid(
      `The messages of promptFromUiMessages() must be a list whose last entry is { role: "user", parts }, but are ${quote(messages, 60)}.`,
    );
  const blocks = parts.flatMap((part) => readPart(Object(part)));
  if (blocks.length === 0)
    throw invalid("The last message of promptFromUiMessages() has neither text nor files.");
  const [only] = blocks;
  return blocks.length === 1 && only?.type === "text" ? only.text : blocks;
}

/** Files are taken as they were sent; an address would make the server fetch what a page names. */
function readPart({ type, text, mediaType, url }: Readonly<Record<string, unknown>>): readonly UserBlock[] {
  if (type === "text" && typeof text === "string" && text.trim() !== "") return [{ type: "text", text }];
  if (type !== "file" || typeof url !== "string" || typeof mediaType !== "string") return [];
  const data = /^data:[^,]*;base64,(.*)$/s.exec(url)?.[1];
  if (data === undefined)
    throw invalid("A file in the messages of promptFromUiMessages() must be a base64 data: URL.");
  const source = { type: "base64", media_type: mediaType, data } as const;
  if (mediaType.startsWith("image/")) return [{ type: "image", source }];
  if (mediaType === "application/pdf") return [{ type: "document", source }];
  if (mediaType.startsWith("text/"))
    return [{ type: "text", text: Buffer.from(data, "base64").toString("utf8") }];
  throw invalid(
    `A file of the type ${quote(mediaType, 40)} cannot be part of a prompt; only images, PDF and text can.`,
  );
}
