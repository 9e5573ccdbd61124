import type { JsonRecord } from "@retinue/base/foundation/json-record.ts";
import {
  describeBody,
  isContextTooLong,
  ModelError,
  type ModelErrorCode,
  type ModelErrorOptions,
} from "../model-error.ts";
import { readQuotaReset } from "../read-quota-report.ts";
import { readRetryAfter } from "../read-retry-after.ts";
import { certificateError, unreachableError } from "../unreachable-error.ts";

export interface ErrorPlace {
  /** `provider/model`, for the message. */
  readonly model: string;
  /** Whether the answer had started. */
  readonly hasStarted: boolean;
}

/** Reads what a provider package threw, or put into its stream as an error, by shape: copies of its classes differ. */
export function toModelError(error: unknown, place: ErrorPlace): ModelError {
  if (error instanceof ModelError) return error;
  const known = knownError(error, place.model);
  if (known !== undefined) return known;
  const reported = numberOf(field(error, "statusCode")) ?? numberOf(field(error, "status"));
  // A status of success only says how far it got before it failed.
  const status = reported !== undefined && reported >= 300 ? reported : undefined;
  const code = codeOf(error, status, place.hasStarted);
  const url = textOrNothing(field(error, "url"));
  if (code === "connection-failed" && url !== undefined)
    return unreachableError(error, url, `the address of the server of ${place.model}`);
  const headers = field(error, "responseHeaders");
  const header = (name: string) => textOrNothing(field(headers, name));
  const retryAfterMs = readRetryAfter(header);
  const requestId = header("x-request-id") ?? header("request-id");
  const options: ModelErrorOptions = {
    status,
    retryAfterMs,
    ...(status === 429 ? { quotaResetsInMs: readQuotaReset(header) } : {}),
    requestId,
    ...adviceFor(code, place.model),
    cause: error,
  };
  return new ModelError(code, `${place.model}: ${textOf(error)}`, options);
}

/** Packages wrap what their transport threw, some more than once. */
function knownError(error: unknown, model: string): ModelError | undefined {
  let cause = field(error, "cause");
  for (let depth = 0; depth < 5 && cause !== undefined; depth += 1) {
    if (cause instanceof ModelError) return cause;
    const untrusted = certificateError(cause, model);
    if (untrusted !== undefined) return untrusted;
    cause = field(cause, "cause");
  }
  return undefined;
}

function codeOf(error: unknown, status: number | undefined, hasStarted: boolean): ModelErrorCode {
  const words = wordsOf(error);
  if (status !== undefined) {
    if (status === 413 || (sizeStatuses.has(status) && isContextTooLong(words))) return "context-too-long";
    if (status === 429) return words.includes("insufficient_quota") ? "unauthorized" : "rate-limited";
    if (status === 503 || status === 529) return "overloaded";
    if (status >= 500 || [408, 409, 425].includes(status)) return "server-error";
    if (status === 401 || status === 403) return "unauthorized";
    return status === 404 ? "not-found" : "invalid-request";
  }
  const name = field(error, "name");
  const named = typeof name === "string" ? codesByName.get(name) : undefined;
  if (named !== undefined) return named;
  if (name === "AI_InvalidResponseDataError") {
    return words.includes("finish reason") ? "stream-cut" : "stream-malformed";
  }
  if (connectionWords.test(words)) return hasStarted ? "stream-cut" : "connection-failed";
  if (name === "AI_APICallError") return hasStarted ? "stream-malformed" : "connection-failed";
  return codeOfWords(words) ?? "server-error";
}

const codesByName: ReadonlyMap<string, ModelErrorCode> = new Map([
  ["AI_LoadAPIKeyError", "unauthorized"],
  ["AI_LoadSettingError", "unauthorized"],
  ["AI_NoSuchModelError", "not-found"],
  ["AI_UnsupportedFunctionalityError", "invalid-request"],
  ["AI_InvalidPromptError", "invalid-request"],
  ["AI_InvalidArgumentError", "invalid-request"],
  ["AI_JSONParseError", "stream-malformed"],
  ["AI_TypeValidationError", "stream-malformed"],
  ["AI_EmptyResponseBodyError", "stream-cut"],
]);

/** Where a complaint about size can be meant; some gateways and servers for local models answer it with 422 or 500. */
const sizeStatuses: ReadonlySet<number> = new Set([400, 404, 422, 429, 500]);

/** Errors inside a stream have no status, only words. */
function codeOfWords(words: string): ModelErrorCode | undefined {
  if (isContextTooLong(words)) return "context-too-long";
  if (/rate.?limit|too many requests|resource_exhausted|throttl/.test(words)) return "rate-limited";
  if (/overload|unavailable|capacity/.test(words)) return "overloaded";
  if (/invalid_api_key|unauthorized|permission/.test(words)) return "unauthorized";
  if (/model_not_found|not found/.test(words)) return "not-found";
  return /invalid_request|invalid request/.test(words) ? "invalid-request" : undefined;
}

const connectionWords =
  /terminated|fetch failed|econn|epipe|enotfound|eai_again|etimedout|socket|network|other side closed|premature/;

/** Everything an error says about itself, in lower case: message, type, code, and the answer's body. */
function wordsOf(error: unknown): string {
  const cause = field(error, "cause");
  const sources = [
    error,
    field(error, "error"),
    field(error, "data"),
    field(field(error, "data"), "error"),
    cause,
  ];
  const words = sources.flatMap((source) => ["message", "type", "code"].map((key) => field(source, key)));
  return [...words, field(error, "responseBody"), typeof error === "string" ? error : ""]
    .filter((word) => typeof word === "string" || typeof word === "number")
    .join(" ")
    .slice(0, 4_000)
    .toLowerCase();
}

function textOf(error: unknown): string {
  if (typeof error === "string") return describeBody(error);
  const hides = field(error, "message") === "Failed to process successful response";
  const message =
    field(hides ? field(error, "cause") : error, "message") ?? field(field(error, "error"), "message");
  const text =
    typeof message === "string" && message !== "" ? message : (JSON.stringify(error) ?? String(error));
  return describeBody(text);
}

function adviceFor(code: ModelErrorCode, model: string): { advice?: string } {
  if (code === "connection-failed")
    return { advice: "Check that the server runs and that its address is right." };
  if (code === "unauthorized")
    return { advice: `Check that the key for ${model} is set, valid and has credit.` };
  return code === "not-found" ? { advice: "Check that the provider has a model of this name." } : {};
}

function field(value: unknown, key: string): unknown {
  // Errors are objects with inherited fields, so this asks any object.
  return typeof value === "object" && value !== null && key in value ? (value as JsonRecord)[key] : undefined;
}

function textOrNothing(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

function numberOf(value: unknown): number | undefined {
  if (value === null || value === undefined || value === "") return undefined;
  const number = Number(value);
  return Number.isFinite(number) && number >= 0 ? number : undefined;
}
