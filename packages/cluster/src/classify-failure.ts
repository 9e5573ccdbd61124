import { isRetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { isConflict } from "./store.ts";

/**
 * Whose fault it is that an activation failed.
 *
 * | fault | means | what follows |
 * |---|---|---|
 * | `agent` | the agent cannot be carried out, here or elsewhere: its plan, its limits, its model's answer | it has failed |
 * | `conflict` | another worker owns the agent, or it was stopped | this worker lets go of it |
 * | `store` | the database cannot be reached or cannot write | tried again for as long as it takes |
 * | `host` | files, descriptors, memory or processes of this machine | released; the worker looks at its machine |
 * | `unknown` | anything else | released; after some claims the agent is a dead letter |
 *
 * Only what is listed as the agent's own is final. Everything else is `unknown`.
 */
export type FailureSource = "agent" | "conflict" | "store" | "host" | "unknown";

export function classifyFailure(error: unknown): FailureSource {
  // The error, its causes, and those of errors that are several.
  const found = new Set<unknown>();
  const add = (cause: unknown): void => {
    if (!(cause instanceof Error) || found.has(cause) || found.size > 100) return;
    found.add(cause);
    if (cause instanceof AggregateError) for (const each of cause.errors) add(each);
    add(cause.cause);
  };
  add(error);
  const chain = [...found];
  if (chain.some(isConflict)) return "conflict";
  if (chain.some(isOfStore)) return "store";
  // A full disk behind an error of a provider or a tool is still a full disk.
  if (chain.some((cause) => hostCodes.has(codeOf(cause)))) return "host";
  const [first] = chain;
  return isRetinueError(first) ? classifyCode(first.code) : "unknown";
}

/** The same for an error of which only the code is left, as in the ending of a run. */
export function classifyCode(code: string): FailureSource {
  if (code === "log-conflict") return "conflict";
  if (code.startsWith("store-")) return "store";
  if (hostCodes.has(code)) return "host";
  return agentCodes.has(code) ? "agent" : "unknown";
}

/**
 * SQLSTATEs that say nothing about the statement: connections, resources (full disk, memory, connections), locks, shutdown, input and
 * output of the server, its internal errors, deadlocks, and a server that has become a read-only one.
 */
const passingStates = /^(08|40|53|57|58|F0|XX|55P03|55006|25006|25P03)/;

/** An error of the server that may be gone when the same statement is tried again. */
export function isPassingState(state: string): boolean {
  return state.length === 5 && passingStates.test(state);
}

/** What no agent can cause either: no account, no database, no tables. */
const brokenStates = /^(28|3D|3F|42P01|42501|42703)/;

function isOfStore(error: unknown): boolean {
  const code = codeOf(error);
  if (isRetinueError(error)) return code.startsWith("store-");
  // Errors of the server have a severity; that distinguishes them from errno names of five letters, such as EPERM.
  const isOfServer = error instanceof Error && "severity" in error && code.length === 5;
  return isOfServer && (isPassingState(code) || brokenStates.test(code));
}

const hostCodes: ReadonlySet<string> = new Set([
  ..."ENOSPC EDQUOT EROFS EACCES EPERM EIO EMFILE ENFILE ENOMEM EAGAIN ENOTDIR EISDIR EEXIST ELOOP ENODEV ENXIO ESTALE".split(
    " ",
  ),
  ..."EBUSY ETXTBSY EFBIG ENOBUFS ENOLCK ENOTEMPTY EADDRNOTAVAIL ENETDOWN ERR_OUT_OF_MEMORY ERR_WORKER_OUT_OF_MEMORY".split(
    " ",
  ),
  // What `fileError` makes of them.
  ..."disk-full read-only-disk no-access not-a-file too-many-open-files file-too-large file-error cannot-write".split(
    " ",
  ),
]);

/** The codes of errors and endings that would be the same on every worker, and again tomorrow. */
const agentCodes: ReadonlySet<string> = new Set([
  // The plan, and what the caller asked for.
  ..."unreadable-plan plan-invalid plan-unreadable plan-carried-out not-portable not-supported misuse".split(
    " ",
  ),
  ..."invalid-option invalid-limits invalid-schema invalid-prompt invalid-definition invalid-rule invalid-tool wrong-option".split(
    " ",
  ),
  ..."unknown-agent agent-denied agent-refused model-denied model-fixed unclear-model unusable-tools unsupported-content".split(
    " ",
  ),
  // Limits.
  ..."max_turns max_budget max_total_tokens max_tool_calls max_time max_tokens loop".split(" "),
  ..."max_structured_output_retries invalid_output no_result context_full compact_blocked prompt_blocked".split(
    " ",
  ),
  // What the model or its provider has answered. A key or a connection that does not work may be this worker's alone.
  ..."refusal rate-limited overloaded server-error stream-cut stream-malformed stalled context-too-long".split(
    " ",
  ),
  ..."invalid-request not-found unexpected-answer script-mismatch".split(" "),
  // It was ended from outside.
  ..."stopped-by-user stopped_by_person question-declined".split(" "),
]);

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "";
}
