import { isRecord } from "@retinue/base/foundation/json-record.ts";
import { createHttpFetch, readProxies } from "../create-http-fetch.ts";
import { apiVersion } from "./create-anthropic-model.ts";

/** What Anthropic's API, or the gateway in its place, says to a key when it is asked for its models. */
export type AccountModels =
  | {
      readonly type: "listed";
      readonly host: string;
      readonly ids: readonly string[];
      readonly isWhole: boolean;
    }
  | { readonly type: "refused"; readonly host: string; readonly status: number }
  /** Nothing is known about the key: no connection, no answer in time, or no list of models at this place. */
  | {
      readonly type: "unknown";
      readonly host: string;
      readonly why: string;
      /** False: nothing has answered. */
      readonly isReachable: boolean;
    };

const defaultBaseUrl = "https://api.anthropic.com";
const limitMs = 3_000;

/** Asks for the models that a key can use; costs nothing and sends nothing but the key. */
export async function listAccountModels(
  environment: Readonly<Record<string, string | undefined>>,
  signal?: AbortSignal,
): Promise<AccountModels | undefined> {
  const token = environment["ANTHROPIC_AUTH_TOKEN"]?.trim();
  const key = environment["ANTHROPIC_API_KEY"]?.trim();
  // As requests for answers have it, so that what is reported here is true of them.
  const credential = token || key;
  if (credential === undefined || credential === "") return undefined;
  const base = environment["ANTHROPIC_BASE_URL"]?.trim() || defaultBaseUrl;
  const host = URL.canParse(base) ? new URL(base).host : base;
  const limit = AbortSignal.timeout(limitMs);
  using http = createHttpFetch(readProxies(environment));
  try {
    const response = await http.fetch(`${base.replace(/\/+$/, "")}/v1/models?limit=1000`, {
      headers: {
        accept: "application/json",
        "anthropic-version": apiVersion,
        authorization: `Bearer ${credential}`,
      },
      signal: signal === undefined ? limit : AbortSignal.any([limit, signal]),
    });
    const { status } = response;
    if (status === 401 || status === 403) return { type: "refused", host, status };
    const body: unknown = response.ok ? JSON.parse(await response.text()) : undefined;
    if (!isRecord(body) || !Array.isArray(body["data"]))
      return { type: "unknown", host, why: `it has no list of models (status ${status})`, isReachable: true };
    const ids = body["data"].flatMap((entry: unknown) =>
      isRecord(entry) && typeof entry["id"] === "string" ? [entry["id"]] : [],
    );
    return { type: "listed", host, ids, isWhole: body["has_more"] !== true };
  } catch (error) {
    const why = limit.aborted
      ? `no answer within ${limitMs / 1000} s`
      : `cannot be reached (${codeOf(error)})`;
    return { type: "unknown", host, why, isReachable: false };
  }
}

/** The code of a connection that failed, or its message where it has none. */
function codeOf(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  if (!(cause instanceof Error)) return String(cause);
  return "code" in cause && typeof cause.code === "string" ? cause.code : cause.message;
}
