import { escapeControlTags } from "../conversation/escape-control-tags.ts";
import { isRecord } from "../foundation/json-record.ts";
import { isRetinueError } from "../foundation/retinue-error.ts";
import { boundedText } from "./listed-tool.ts";

/** What became of one request to a server. */
export type CallEnd =
  | { readonly type: "answered"; readonly result: unknown }
  /** The server refused it before doing anything, as it no longer knows the session: it may be sent again. */
  | { readonly type: "session-lost"; readonly reason: string }
  | { readonly type: "failed"; readonly reason: string };

export interface FailedRequest {
  readonly server: string;
  readonly error: unknown;
  /** What is known of the end of the connection, when it has ended. */
  readonly ending?: string;
  readonly isClosed: boolean;
  readonly limitMs: number;
}

/** Says in words why a request has no answer. */
export function describeFailure(failed: FailedRequest): Exclude<CallEnd, { type: "answered" }> {
  const { server, error, ending = "", isClosed, limitMs } = failed;
  const name = `The MCP server ${JSON.stringify(server)}`;
  const status = statusOf(error);
  const message = escapeControlTags(boundedText(messageOf(error), 1_000));
  if (status === 404 || (status === 400 && /session/i.test(message))) {
    return { type: "session-lost", reason: `${name} no longer knows this session: ${message}` };
  }
  if (isClosed) {
    const how = ending === "" ? "" : `: ${ending}`;
    return {
      type: "failed",
      reason: `${name} ended before it answered${how}. The call may have had part of its effect; it was not repeated. The next call starts the server again.`,
    };
  }
  if (codeOf(error) === "REQUEST_TIMEOUT") {
    return {
      type: "failed",
      reason: `${name} did not answer within ${limitMs / 1000} s, and was asked to stop. The call may have had part of its effect.`,
    };
  }
  if (status === 401 || status === 403) {
    return {
      type: "failed",
      reason: `${name} refused the request (HTTP ${status}): ${message}. Check the headers or the key in its configuration.`,
    };
  }
  const what = error instanceof TypeError ? "could not be reached" : "answered with an error";
  return { type: "failed", reason: `${name} ${what}: ${message}` };
}

/** Why a server could not be reached, for people. */
export function describeStart(error: unknown, ending: string): string {
  const known = new Map([
    ["ENOENT", "its command was not found, or its working directory does not exist"],
    ["EACCES", "its command may not be executed"],
    ["REQUEST_TIMEOUT", "it did not answer in time"],
  ]);
  const reason =
    known.get(String(codeOf(error) ?? "")) ?? escapeControlTags(boundedText(messageOf(error), 500));
  return ending === "" ? reason : `${reason}; ${ending}`;
}

/** Whether a server has refused the old handshake, as one that only speaks newer protocol versions does. */
export function refusesHandshake(error: unknown): boolean {
  const code = codeOf(error);
  if (code === -32022 || code === -32601 || code === -32004) return true;
  return statusOf(error) === 400 && /protocol|version|-32022/i.test(messageOf(error));
}

export function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  // What fetch says is in the cause; "fetch failed" helps no one.
  const cause = error.cause instanceof Error ? ` (${causeText(error.cause)})` : "";
  const advice = isRetinueError(error) && error.advice !== undefined ? ` ${error.advice}` : "";
  return `${error.message}${cause}${advice}`;
}

function causeText(cause: Error): string {
  const code = codeOf(cause);
  return cause.message === "" ? String(code ?? cause.name) : cause.message;
}

function codeOf(error: unknown): unknown {
  return isRecord(error) ? error["code"] : undefined;
}

function statusOf(error: unknown): number | undefined {
  const status = isRecord(error) ? error["status"] : undefined;
  return typeof status === "number" ? status : undefined;
}
