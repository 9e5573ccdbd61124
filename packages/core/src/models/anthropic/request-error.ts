import { isRecord, type JsonRecord, parseJsonRecord } from "@retinue/base/foundation/json-record.ts";
import {
  describeBody,
  isContextTooLong,
  ModelError,
  type ModelErrorCode,
  type ModelErrorOptions,
  type ProviderAnswer,
} from "../model-error.ts";
import { readQuotaReset } from "../read-quota-report.ts";
import { type HeaderReader, readRetryAfter } from "../read-retry-after.ts";
import { certificateError, deepestCause, messageOf, unreachableError } from "../unreachable-error.ts";

/** What kept a request from being sent at all: an address or a header that cannot be used. */
export function requestError(error: unknown, baseUrl: string): ModelError {
  if (error instanceof ModelError) return error;
  return new ModelError(
    "invalid-request",
    `The request could not be sent to ${baseUrl}: ${messageOf(error)}`,
    {
      advice: "Check the base URL (ANTHROPIC_BASE_URL), the key, and the headers that settings add.",
      cause: error,
    },
  );
}

/** An `error` event inside a stream whose status was 200. */
export function streamEventError(event: JsonRecord, requestId?: string): ModelError {
  const body = isRecord(event["error"]) ? event["error"] : {};
  const type = typeof body["type"] === "string" ? body["type"] : "";
  const message = typeof body["message"] === "string" ? body["message"] : JSON.stringify(event);
  const status = statusOfType.get(type) ?? 500;
  return errorOf({ status, type, message }, { status, requestId });
}

/** An answer that broke off while it was being read. */
export function streamError(error: unknown, requestId?: string): ModelError {
  if (error instanceof ModelError) return error;
  return new ModelError("stream-cut", `The provider's answer broke off: ${messageOf(error)}`, {
    cause: error,
    requestId,
  });
}

export function stalledError(what: string, cause?: unknown): ModelError {
  return new ModelError("stalled", `The provider ${what}.`, {
    advice: "This is usually temporary; a longer limit helps with very long prompts.",
    ...(cause === undefined ? {} : { cause }),
  });
}

/** An answer with an error status and this body; `host` names who gave it. */
export function statusError(
  { status, text, host }: { readonly status: number; readonly text: string; readonly host?: string },
  header: HeaderReader,
): ModelError {
  const body = parseJsonRecord(text) ?? {};
  const inner = isRecord(body["error"]) ? body["error"] : body;
  const type = typeof inner["type"] === "string" ? inner["type"] : "";
  const detail = inner["message"];
  const message =
    text === "" ? "status code (no body)" : describeBody(typeof detail === "string" ? detail : text);
  const requestId = header("request-id") ?? textAt(body, "request_id");
  const retryAfterMs = readRetryAfter(header);
  return errorOf(
    { status, type, message, host },
    {
      status,
      requestId,
      retryAfterMs,
      ...(status === 429 ? { quotaResetsInMs: readQuotaReset(header) } : {}),
    },
  );
}

function errorOf(
  { host = "The provider", ...error }: ProviderAnswer & { readonly host?: string | undefined },
  options: ModelErrorOptions,
): ModelError {
  const code = codeOf(error);
  const kind = error.type === "" ? "" : ` (${error.type})`;
  const advice = adviceFor(code);
  return new ModelError(code, `${host} answered ${error.status}${kind}: ${error.message}`, {
    ...options,
    answer: error,
    ...(advice === undefined ? {} : { advice }),
  });
}

function codeOf({ status, type, message }: ProviderAnswer): ModelErrorCode {
  if (status === 413 || (sizeStatuses.has(status) && isContextTooLong(message))) return "context-too-long";
  if (type === "overloaded_error" || status === 529) return "overloaded";
  if (status === 429) return "rate-limited";
  if (status === 401 || status === 403) return "unauthorized";
  if (status === 404) return "not-found";
  if ([408, 409, 425].includes(status) || status >= 500) return "server-error";
  return "invalid-request";
}

/** Where a complaint about size can be meant; some gateways and servers for local models answer it with 422 or 500. */
const sizeStatuses: ReadonlySet<number> = new Set([400, 422, 500]);

function adviceFor(code: ModelErrorCode): string | undefined {
  switch (code) {
    case "unauthorized":
      return "Check ANTHROPIC_API_KEY (or ANTHROPIC_AUTH_TOKEN, or the apiKeyHelper of your settings) and the permissions of the key.";
    case "not-found":
      return "Check the model's name (--model, ANTHROPIC_MODEL, settings, the agent's model field) and that your key may use it.";
    case "context-too-long":
      return "Shorten the conversation (compact it) or choose a model with a larger window.";
    case "rate-limited":
      return "Wait, lower the number of agents that run at the same time, or raise the limit with the provider.";
    default:
      return undefined;
  }
}

/** The status each kind of error has when it is not inside a stream. */
const statusOfType: ReadonlyMap<string, number> = new Map([
  ["invalid_request_error", 400],
  ["authentication_error", 401],
  ["billing_error", 402],
  ["permission_error", 403],
  ["not_found_error", 404],
  ["request_too_large", 413],
  ["rate_limit_error", 429],
  ["api_error", 500],
  ["timeout_error", 504],
  ["overloaded_error", 529],
]);

/** What the transport threw before an answer began. */
export function connectionError(error: unknown, baseUrl: string): ModelError {
  if (error instanceof ModelError) return error;
  const cause = deepestCause(error);
  if (/timed? ?out/i.test(`${error} ${cause}`)) return stalledError("did not answer in time", error);
  return (
    certificateError(cause, baseUrl) ?? unreachableError(error, baseUrl, "ANTHROPIC_BASE_URL if it is set")
  );
}

function textAt(record: JsonRecord, key: string): string | undefined {
  const value = record[key];
  return typeof value === "string" ? value : undefined;
}
