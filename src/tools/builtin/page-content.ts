import { stripTags } from "./plain-html.ts";

export type PageContent =
  | { readonly type: "text"; readonly text: string; readonly title?: string }
  | { readonly type: "binary"; readonly mediaType: string };

export interface ContentOptions {
  readonly url: string;
  readonly signal: AbortSignal;
  /** For the conversion of HTML. */
  readonly limitMs: number;
}

/** The media type of a header, without its parameters. */
export function mediaTypeOf(contentType: string | undefined): string {
  return (contentType ?? "").split(";")[0]?.trim().toLowerCase() ?? "";
}

/** Whether a type is known not to be text, so that its body need not be read. */
export function isBinaryType(mediaType: string): boolean {
  return !isTextType(mediaType) && mediaType !== "" && mediaType !== "application/octet-stream";
}

/** What a body says: HTML as Markdown, other text as it is. */
export async function readContent(
  body: Buffer,
  contentType: string | undefined,
  options: ContentOptions,
): Promise<PageContent> {
  const mediaType = mediaTypeOf(contentType);
  if (!isTextType(mediaType) && (isBinaryType(mediaType) || looksBinary(body))) {
    return { type: "binary", mediaType: mediaType || "unknown" };
  }
  const text = decode(body, contentType);
  const isHtml = /html/.test(mediaType) || (mediaType === "" && /^\s*<(?:!doctype html|html)/i.test(text));
  if (!isHtml) return { type: "text", text };
  return { type: "text", ...(await readHtml(text, options)) };
}

const maxHtml = 3_000_000;

/** Plain text where a page is too much for the conversion. */
async function readHtml(html: string, { url, ...options }: ContentOptions) {
  const { runHtmlConversion } = await import("./run-html-conversion.ts");
  const source = html.slice(0, maxHtml);
  const converted = (await runHtmlConversion(source, url, options)) ?? { text: stripTags(source) };
  if (source.length === html.length) return converted;
  return { ...converted, text: `${converted.text}\n\n[The page is longer; the rest was not read.]` };
}

const textType =
  /^text\/|[+/](?:json|xml|yaml|toml)$|^application\/(?:(?:x-)?(?:javascript|ecmascript|typescript|yaml|toml|ndjson|sh|sql|httpd-php|www-form-urlencoded)|json5|ld\+json|jsonl|graphql|xhtml\+xml)$/;

function isTextType(mediaType: string): boolean {
  return textType.test(mediaType);
}

function looksBinary(body: Buffer): boolean {
  return body.subarray(0, 4_096).includes(0);
}

/** By byte order mark, header, or what the page says of itself; UTF-8 else. */
function decode(body: Buffer, contentType: string | undefined): string {
  const label =
    markOf(body) ?? charsetIn(contentType ?? "") ?? charsetIn(body.subarray(0, 1_024).toString("latin1"));
  try {
    return new TextDecoder(label ?? "utf-8").decode(body);
  } catch {
    return new TextDecoder("utf-8").decode(body);
  }
}

function markOf(body: Buffer): string | undefined {
  if (body[0] === 0xff && body[1] === 0xfe) return "utf-16le";
  if (body[0] === 0xfe && body[1] === 0xff) return "utf-16be";
  return body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf ? "utf-8" : undefined;
}

function charsetIn(text: string): string | undefined {
  return /charset\s*=\s*["']?\s*([\w:.-]{1,40})/i.exec(text)?.[1];
}
