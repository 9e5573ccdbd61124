import { quote } from "@retinue/base/foundation/json-record.ts";
import { isRetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { hostOf, readWebAddress } from "./private-reason.ts";
import { type ResolveHost, requestPage } from "./request-page.ts";
import { stripTags } from "./strip-tags.ts";

export interface CachedPage {
  readonly url: string;
  readonly status: number;
  readonly mediaType: string;
  readonly bytes: number;
  readonly text: string;
  readonly title?: string;
}

export type FetchedPage =
  | { readonly type: "page"; readonly page: CachedPage }
  | { readonly type: "moved"; readonly from: string; readonly to: string; readonly status: number }
  | { readonly type: "refused"; readonly reason: string };

export interface FetchOptions {
  readonly mayFetchPrivate: (host: string) => boolean;
  readonly resolve?: ResolveHost;
  readonly signal: AbortSignal;
  readonly limitMs: number;
  readonly maxBytes: number;
}

const maxRedirects = 5;
const redirecting: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/** Fetches a page. Redirects are followed on the same host only, and each step is decided anew. */
export async function fetchPage(start: URL, options: FetchOptions): Promise<FetchedPage> {
  let current = start.href;
  for (let step = 0; step <= maxRedirects; step += 1) {
    const decided = readWebAddress(current, options.mayFetchPrivate);
    if (decided.type === "refused") return decided;
    try {
      const answer = await requestPage({ ...options, ...decided });
      const target = redirecting.has(answer.status) ? answer.header("location") : undefined;
      if (target === undefined) {
        const contentType = answer.header("content-type");
        const declared = answer.header("content-length");
        const mediaType = mediaTypeOf(contentType);
        if (isBinaryType(mediaType)) {
          answer.discard();
          return refuse(decided.url, binaryText(mediaType, declared));
        }
        const body = await answer.body();
        options.signal.throwIfAborted();
        const content = await readContent(body, contentType, { ...options, url: decided.url.href });
        if (content.type === "binary")
          return refuse(decided.url, binaryText(content.mediaType, String(body.length)));
        const title = content.title === undefined ? {} : { title: content.title };
        const page = {
          url: decided.url.href,
          status: answer.status,
          mediaType,
          bytes: body.length,
          text: content.text,
          ...title,
        };
        return { type: "page", page };
      }
      answer.discard();
      const next = URL.parse(target, decided.url.href);
      if (next === null) return refuse(decided.url, `redirects to ${quote(target)}, which is not an address`);
      // What was allowed of a private host is one of its services.
      const isOther = decided.mayBePrivate
        ? next.host !== decided.url.host
        : hostOf(next) !== hostOf(decided.url);
      if (isOther) {
        return {
          type: "moved",
          from: decided.url.href,
          to: next.href.slice(0, 4_000),
          status: answer.status,
        };
      }
      current = next.href;
    } catch (error) {
      return refuse(decided.url, explain(error, options.signal));
    }
  }
  return refuse(start, `redirects more than ${maxRedirects} times`);
}

function refuse(url: URL, reason: string): FetchedPage {
  return { type: "refused", reason: `${quote(url.href, 200)} was not read: ${reason}.` };
}

function binaryText(mediaType: string, bytes: string | undefined): string {
  const size = bytes === undefined ? "of unknown size" : `of ${bytes} bytes`;
  return `it is not text but ${quote(mediaType)} ${size}. Download it with a command if you need it`;
}

function explain(error: unknown, signal: AbortSignal): string {
  if (signal.aborted) return "the run was interrupted";
  if (isRetinueError(error)) return error.message;
  const first: unknown = error instanceof AggregateError ? error.errors[0] : error;
  const code = first instanceof Error && "code" in first ? String(first.code) : "";
  return reasons.get(code) ?? (first instanceof Error ? first.message : String(first));
}

const reasons: ReadonlyMap<string, string> = new Map([
  ["ENOTFOUND", "no host has that name"],
  ["EAI_AGAIN", "the name could not be looked up; is there a network?"],
  ["ECONNREFUSED", "the host refused the connection"],
  ["ECONNRESET", "the connection was cut"],
  ["ETIMEDOUT", "the host did not answer"],
  ["EHOSTUNREACH", "the host cannot be reached"],
  ["ENETUNREACH", "the network cannot be reached"],
  ["CERT_HAS_EXPIRED", "its certificate has expired"],
  ["DEPTH_ZERO_SELF_SIGNED_CERT", "its certificate is signed by an unknown authority"],
  ["ERR_TLS_CERT_ALTNAME_INVALID", "its certificate is for another host"],
]);

type PageContent =
  | { readonly type: "text"; readonly text: string; readonly title?: string }
  | { readonly type: "binary"; readonly mediaType: string };

interface ContentOptions {
  readonly url: string;
  readonly signal: AbortSignal;
  /** For the conversion of HTML. */
  readonly limitMs: number;
}

/** The media type of a header, without its parameters. */
function mediaTypeOf(contentType: string | undefined): string {
  return (contentType ?? "").split(";")[0]?.trim().toLowerCase() ?? "";
}

/** Whether a type is known not to be text, so that its body need not be read. */
function isBinaryType(mediaType: string): boolean {
  return !isTextType(mediaType) && mediaType !== "" && mediaType !== "application/octet-stream";
}

/** What a body says: HTML as Markdown, other text as it is. */
async function readContent(
  body: Buffer,
  contentType: string | undefined,
  options: ContentOptions,
): Promise<PageContent> {
  const mediaType = mediaTypeOf(contentType);
  if (!isTextType(mediaType) && (isBinaryType(mediaType) || body.subarray(0, 4_096).includes(0))) {
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
  const { runHtmlConversion } = await import("./convert-html.ts");
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

/** By byte order mark, header, or what the page declares; UTF-8 else. */
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
