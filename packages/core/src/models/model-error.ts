import { isRecord } from "@retinue/base/foundation/json-record.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";

/** Why a model call failed. The first group may succeed when tried again, the second will not. */
export type ModelErrorCode =
  | "rate-limited"
  | "quota-exhausted"
  | "overloaded"
  | "server-error"
  | "connection-failed"
  | "stream-cut"
  | "stream-malformed"
  | "stalled"
  | "context-too-long"
  | "invalid-request"
  | "unauthorized"
  | "not-found"
  | "unexpected-answer"
  | "untrusted-certificate"
  | "script-mismatch";

const passing: ReadonlySet<ModelErrorCode> = new Set([
  "rate-limited",
  "overloaded",
  "server-error",
  "connection-failed",
  "stream-cut",
  "stream-malformed",
  "stalled",
  // A page of a proxy that is being restarted, or an error that its gateway has wrapped in a 200.
  "unexpected-answer",
]);

/** What a provider answered instead of a message, in its own words. */
export interface ProviderAnswer {
  readonly status: number;
  /** Its name of the error, such as `overloaded_error`; empty where it gave none. */
  readonly type: string;
  readonly message: string;
}

export interface ModelErrorOptions {
  readonly status?: number;
  readonly answer?: ProviderAnswer;
  /** What the provider asked us to wait. */
  readonly retryAfterMs?: number;
  /** Set where a quota is used up rather than a rate exceeded: how long until there is a new one. */
  readonly quotaResetsInMs?: number;
  /** Of `quota-exhausted`: until when no request is made, in milliseconds since 1970. */
  readonly closedUntil?: number;
  readonly requestId?: string;
  /** How many attempts are worth it, the first included; as many as usual when absent. */
  readonly maxAttempts?: number;
  /** The same while the model has never been reached, where a wrong address is likelier than a network that comes back. */
  readonly maxAttemptsUnreached?: number;
  readonly advice?: string;
  readonly cause?: unknown;
}

/** The only error a Model's stream throws, besides the abort of its own signal. */
export class ModelError extends RetinueError {
  override readonly code: ModelErrorCode;
  readonly status: number | undefined;
  readonly retryAfterMs: number | undefined;
  readonly quotaResetsInMs: number | undefined;
  readonly closedUntil: number | undefined;
  readonly requestId: string | undefined;
  readonly answer: ProviderAnswer | undefined;
  readonly maxAttempts: number | undefined;
  readonly maxAttemptsUnreached: number | undefined;

  constructor(code: ModelErrorCode, message: string, options: ModelErrorOptions = {}) {
    // It becomes part of conversations, which are paid for by the word.
    super(code, boundedText(message), {
      advice: options.advice,
      ...(options.cause === undefined ? {} : { cause: options.cause }),
    });
    this.code = code;
    this.status = options.status;
    this.retryAfterMs = options.retryAfterMs;
    this.quotaResetsInMs = options.quotaResetsInMs;
    this.closedUntil = options.closedUntil;
    this.requestId = options.requestId;
    this.answer = options.answer;
    this.maxAttempts = options.maxAttempts;
    this.maxAttemptsUnreached = options.maxAttemptsUnreached;
  }

  get mayPass(): boolean {
    return passing.has(this.code);
  }
}

/**
 * Whether a refusal says that the request is too large: the conversation for the window, or a part of it for the provider.
 * Each provider and each server for local models has words of its own.
 */
export function isContextTooLong(words: string): boolean {
  return tooLongWords.some((pattern) => pattern.test(words));
}

const tooLongWords: readonly RegExp[] = [
  /context_length_exceeded|exceed_context_size|string_above_max_length|request_too_large|model_max_prompt_tokens_exceeded/i,
  /(prompt|input|inputs|request|messages?|text|content|conversation|payload)\b[^.]{0,40}\b(is|are) too (long|large|big)/i,
  /too (long|large) for (the |this |requested )?(model|context)/i,
  /request (entity )?too large|payload too large/i,
  /(maximum|max|available|model'?s|exceeds?|exceeded|greater than|larger than|longer than|over) (the )?(allowed |maximum |available |model'?s? )*(context|prompt|input|sequence|model) ?(length|window|size|limit|tokens)/i,
  /exceed.{0,60}context|context (length|window|size|limit).{0,40}exceed/i,
  /(too many|number of|count of|total) (input |prompt )?tokens|token (count|limit).{0,40}exceed|exceeds? .{0,40}(number of )?tokens/i,
  /reduce (the length of|your) (the )?(messages?|prompt|input)/i,
  /inputs?`? (tokens? \+|must have less than)/i,
  /(images?|documents?|pdfs?|files?|media|attachments?)\b.{0,80}\b(exceeds?|too (large|big|long|many)|larger than|maximum)/i,
  /too many (images|documents|pdf pages)|maximum of \d+ pdf pages|could not process (the )?(image|pdf|document)/i,
];

/** The longest line of a stream; one that never ends would fill the memory. */
export const maxLine = 8 * 1024 * 1024;

/** As much of a body that is no stream as is read to say what it is. */
const keptOfBody = 64 * 1024;

/** As much of the body of an error as is read. */
export const maxErrorBody = 256 * 1024;

export function lineTooLong(): ModelError {
  return new ModelError(
    "stream-malformed",
    `The provider sent a line of more than ${maxLine / 1024 / 1024} MiB.`,
  );
}

/**
 * Shows by its first bytes whether an answer is a stream of events. A page of a proxy or a login, or an answer in one
 * piece, comes with status 200 too, and reading it as a stream would only say that the stream broke off.
 */
export function createAnswerGuard(contentType: string) {
  const decoder = new TextDecoder();
  let start = "";
  // What is labelled as a stream is read as one.
  let isForeign: boolean | undefined =
    contentType === "" || /html|json$|json;|text\/plain|xml/i.test(contentType) ? undefined : false;
  const judge = (): boolean | undefined => {
    const first = start.trimStart().charAt(0);
    return first === "" ? undefined : first === "<" || first === "{" || first === "[";
  };
  return {
    /** False while the bytes are no part of a stream of events and must not be read as such; throws when it is clear. */
    take(bytes: Uint8Array): boolean {
      if (isForeign === false) return true;
      start += decoder.decode(bytes, { stream: true });
      isForeign ??= judge();
      if (isForeign === undefined) return false;
      if (!isForeign) return true;
      if (start.length >= keptOfBody) throw foreignAnswer(start, contentType);
      return false;
    },
    end(): void {
      if (isForeign === true) throw foreignAnswer(start, contentType);
    },
  };
}

function foreignAnswer(text: string, contentType: string): ModelError {
  const label = contentType === "" ? "" : ` (${contentType.slice(0, 100)})`;
  const beginning = htmlStart.test(text.trim()) ? ` It begins: ${beginningOf(text)}` : "";
  return new ModelError(
    isContextTooLong(messageInJson(text.trim()) ?? "") ? "context-too-long" : "unexpected-answer",
    `The provider answered 200 with something that is not a stream of events${label}: ${describeBody(text)}.${beginning}`.replace(
      /\.\.$/,
      ".",
    ),
    {
      advice: "Check the base URL, and check for a proxy or a login page between you and the provider.",
      status: 200,
      // The page of a wrong address is no proxy that is restarting: some seconds tell them apart.
      maxAttemptsUnreached: 5,
    },
  );
}

/** A `fetch` for packages that read answers themselves: bounded errors, bounded lines, and no pages taken for streams. */
export function guardFetch(transport: typeof globalThis.fetch): typeof globalThis.fetch {
  return async (input, init) => {
    const response = await transport(input, init);
    const { body, status, statusText, headers } = response;
    if (body === null) return response;
    const contentType = headers.get("content-type") ?? "";
    if (response.ok && !/^text\/|json|html|xml|^$/i.test(contentType)) return response;
    const guarded = body.pipeThrough(response.ok ? guardStream(contentType) : limitBytes(maxErrorBody));
    return new Response(guarded, { status, statusText, headers });
  };
}

function guardStream(contentType: string): TransformStream<Uint8Array, Uint8Array> {
  const guard = createAnswerGuard(contentType);
  const held: Uint8Array[] = [];
  let lineLength = 0;
  return new TransformStream({
    transform(chunk, controller) {
      const lastBreak = chunk.lastIndexOf(lineFeed);
      lineLength = lastBreak === -1 ? lineLength + chunk.length : chunk.length - lastBreak - 1;
      if (lineLength > maxLine) throw lineTooLong();
      held.push(chunk);
      if (!guard.take(chunk)) return;
      for (const one of held.splice(0)) controller.enqueue(one);
    },
    flush(controller) {
      guard.end();
      for (const one of held) controller.enqueue(one);
    },
  });
}

const lineFeed = 0x0a;

function limitBytes(limit: number): TransformStream<Uint8Array, Uint8Array> {
  let left = limit;
  return new TransformStream({
    transform(chunk, controller) {
      if (left <= 0) return;
      controller.enqueue(chunk.subarray(0, left));
      left -= chunk.length;
      if (left <= 0) controller.terminate();
    },
  });
}

/** More of an error than this helps neither a person nor a model, and every character of it is paid for. */
const longest = 1_000;

/** What a provider sent in place of an answer, in a few words: the title of a page, the message of an error, a beginning. */
export function describeBody(text: string): string {
  const trimmed = text.trim();
  if (trimmed === "") return "nothing";
  if (htmlStart.test(trimmed)) {
    const head = trimmed.slice(0, 16_384);
    const heading = /<title[^>]*>([^<]+)/i.exec(head)?.[1] ?? /<h1[^>]*>([^<]+)/i.exec(head)?.[1];
    const title = heading?.replace(/\s+/g, " ").trim().slice(0, 200);
    return `an HTML page of ${trimmed.length} characters${title === undefined || title === "" ? "" : ` titled ${JSON.stringify(title)}`}`;
  }
  return boundedText(messageInJson(trimmed) ?? trimmed);
}

/** The beginning of a text that is too long, with how long it is. */
function boundedText(text: string): string {
  if (text.length <= longest) return text;
  return `${text.slice(0, longest)}… (${text.length} characters in all)`;
}

const htmlStart = /^<(!doctype html|html|head|body|\?xml)/i;

/** The words of a page, as a person would see its first lines. */
function beginningOf(text: string): string {
  const words = text
    .slice(0, 16_384)
    .replace(/<(script|style|title)\b[^>]*>.*?<\/\1\s*>/gis, " ")
    .replace(/<[^>]*>?/g, " ")
    .replace(/\s+/g, " ")
    .trim();
  return JSON.stringify(words.length <= 100 ? words : `${words.slice(0, 100)}…`);
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
