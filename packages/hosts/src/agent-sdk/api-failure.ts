import type { RunEnding } from "@retinue/core/conversation/run-event.ts";

/** The categories under which programs know failures of a provider, by the code of the error. */
const categories: ReadonlyMap<string, string> = new Map([
  ["unauthorized", "authentication_failed"],
  ["no-credentials", "authentication_failed"],
  ["rate-limited", "rate_limit"],
  ["overloaded", "overloaded"],
  ["server-error", "server_error"],
  ["connection-failed", "server_error"],
  ["stalled", "server_error"],
  ["stream-cut", "server_error"],
  ["stream-malformed", "server_error"],
  ["unexpected-answer", "server_error"],
  ["invalid-request", "invalid_request"],
  ["context-too-long", "invalid_request"],
  ["prompt_too_large", "invalid_request"],
  ["not-found", "model_not_found"],
  ["untrusted-certificate", "unknown"],
  ["script-mismatch", "invalid_request"],
]);

const statuses: ReadonlyMap<string, number> = new Map([
  ["unauthorized", 401],
  ["rate-limited", 429],
  ["overloaded", 529],
  ["server-error", 500],
  ["invalid-request", 400],
  ["context-too-long", 400],
  ["prompt_too_large", 400],
  ["not-found", 404],
]);

export function errorCategory(code: string): string {
  return categories.get(code) ?? "unknown";
}

/** Whether a run ended because the provider failed. */
export function isProviderFailure(code: string): boolean {
  return categories.has(code);
}

export function isApiFailure({ status, reason }: RunEnding): boolean {
  return status === "failed" && isProviderFailure(reason);
}

/** The category of a failure that ended a run; that of one that is retried is more precise. */
export function finalCategory(code: string): string {
  if (code === "invalid-request") return "unknown";
  return code === "overloaded" ? "server_error" : errorCategory(code);
}

/** What programs receive about a failure of the provider, or about an answer that is none. */
export interface ApiFailure {
  readonly category: string;
  readonly status: number | null;
  /** The one name of an answer that was cut. */
  readonly cut?: "max_output_tokens";
  /** The provider's name of the error, where it gave one. */
  readonly type?: string;
  readonly text: string;
}

/** Undefined where the run ended otherwise. */
export function apiFailureOf(ending: RunEnding): ApiFailure | undefined {
  if (!isApiFailure(ending)) return undefined;
  const { provider, reason, error = "" } = ending;
  const status = provider?.status ?? statuses.get(reason) ?? null;
  const type = provider?.type === undefined || provider.type === "" ? {} : { type: provider.type };
  const message = provider?.message ?? error;
  const isUnpaid = /credit balance|billing/i.test(message) && reason !== "rate-limited";
  const category = isUnpaid ? "billing_error" : finalCategory(reason);
  const text = `${leadOf(reason, isUnpaid)}API Error: ${status === null ? "" : `${status} `}${message}`;
  return { category, status, ...type, text };
}

/** Also an answer that the model refused to give or that broke off for good. */
export function answerFailureOf(ending: RunEnding): ApiFailure | undefined {
  if (ending.reason === "refusal")
    return {
      category: "invalid_request",
      status: null,
      text: "API Error: The model declined to answer this request. Rephrase it, or choose another model.",
    };
  if (ending.reason === "max_tokens" || ending.reason === "model_context_window_exceeded")
    return {
      category: "max_output_tokens",
      cut: "max_output_tokens",
      status: null,
      text: "API Error: The answer broke off at the limit of output tokens, also when it was continued. CLAUDE_CODE_MAX_OUTPUT_TOKENS raises the limit.",
    };
  return apiFailureOf(ending);
}

function leadOf(reason: string, isUnpaid: boolean): string {
  return isUnpaid ? "Credit balance is too low. " : (leads.get(reason) ?? "");
}

/** Programs recognize these failures by the beginning of the text. */
const leads: ReadonlyMap<string, string> = new Map([
  ["no-credentials", "Not logged in. "],
  ["not-found", "There's an issue with the selected model: it may not exist, or you have no access to it. "],
  ["unauthorized", "Failed to authenticate. "],
  ["context-too-long", "Prompt is too long. "],
  ["prompt_too_large", "Prompt is too long. "],
]);
