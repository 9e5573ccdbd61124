import type { RunEnding } from "../conversation/run-event.ts";
import { Fault, isFault } from "../foundation/fault.ts";
import { ModelFault } from "../model/model-fault.ts";

/** The limits that end a run with what it has. */
const limitReasons = [
  "max_turns",
  "max_budget",
  "max_total_tokens",
  "max_tool_calls",
  "max_time",
  "max_tokens",
  "loop",
] as const;
export type LimitReason = (typeof limitReasons)[number];

/** A limit that leaves nothing more, and what of it was left. */
export interface LimitReached {
  readonly reason: LimitReason;
  /** One sentence with the numbers. */
  readonly error: string;
}

export function limitFault({ reason, error }: LimitReached): Fault {
  return new Fault(reason, error);
}

/** Whether something was not done because a limit leaves nothing for it. */
export function isLimitFault(error: unknown): boolean {
  return isFault(error) && isLimit(error.code);
}

/** How a run ends that was stopped, or broken off by what was thrown: a limit hands in what there is. */
export function endingOfCause(
  cause: unknown,
  isStopped: boolean,
): Pick<RunEnding, "status" | "reason" | "error"> {
  const unnamed = isStopped ? "aborted" : "error";
  const reason = isFault(cause) ? cause.code : unnamed;
  const error = cause instanceof Error ? cause.message : String(cause);
  if (isLimit(reason)) return { status: "partial", reason, error };
  // A silent run is stopped, also where it did not heed its signal and had to be given up.
  const isSilent = reason === "stalled" && !(cause instanceof ModelFault);
  return isStopped || isSilent ? { status: "stopped", reason } : { status: "failed", reason, error };
}

function isLimit(reason: string): boolean {
  return limitReasons.some((known) => known === reason);
}
