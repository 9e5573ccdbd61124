import { isRecord } from "../foundation/json-record.ts";

/** More of an error than this helps neither a person nor a model, and every character of it is paid for. */
const longest = 1_000;

/** What a provider sent in place of an answer, in a few words: the title of a page, the message of an error, a beginning. */
export function describeBody(text: string): string {
  const trimmed = text.trim();
  if (trimmed === "") return "nothing";
  if (htmlStart.test(trimmed)) return describePage(trimmed);
  return boundedText(messageInJson(trimmed) ?? trimmed);
}

/** The beginning of a text that is too long, with how long it is. */
export function boundedText(text: string): string {
  if (text.length <= longest) return text;
  return `${text.slice(0, longest)}… (${text.length} characters in all)`;
}

const htmlStart = /^<(!doctype html|html|head|body|\?xml)/i;

function describePage(text: string): string {
  const head = text.slice(0, 16_384);
  const heading = /<title[^>]*>([^<]+)/i.exec(head)?.[1] ?? /<h1[^>]*>([^<]+)/i.exec(head)?.[1];
  const title = heading?.replace(/\s+/g, " ").trim().slice(0, 200);
  return `an HTML page of ${text.length} characters${title === undefined || title === "" ? "" : ` titled ${JSON.stringify(title)}`}`;
}

function messageInJson(text: string): string | undefined {
  if (!text.startsWith("{")) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    const error = isRecord(value) ? value["error"] : undefined;
    const message = isRecord(error) ? error["message"] : error;
    if (typeof message === "string" && message !== "") return message;
  } catch {
    // Shown as it is.
  }
  return undefined;
}
