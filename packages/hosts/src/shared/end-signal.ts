import { isRetinueError, RetinueError } from "@retinue/base/foundation/retinue-error.ts";

/** The signals that ask the process to end, and the exit codes that shells give them. */
export const endSignals = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129, SIGQUIT: 131 } as const;
export type EndSignal = keyof typeof endSignals;

/** Why everything is stopped; what is cut off by it can be resumed. */
export function interruptedBy(signal: EndSignal): RetinueError {
  return new RetinueError("interrupted", `Stopped by ${signal}.`, { cause: signal });
}

/** Which signal it was; undefined where a person left in another way, such as Ctrl+D at a question. */
export function signalOf(reason: unknown): EndSignal | undefined {
  const cause = isRetinueError(reason) ? reason.cause : undefined;
  return typeof cause === "string" && Object.hasOwn(endSignals, cause) ? (cause as EndSignal) : undefined;
}

export function exitCodeOf(reason: unknown): number {
  return endSignals[signalOf(reason) ?? "SIGINT"];
}
