import type { RunEnding } from "../conversation/run-event.ts";
import { isRetinueError, RetinueError } from "../foundation/retinue-error.ts";
import { ModelError } from "../model/model-error.ts";

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

export function limitError({ reason, error }: LimitReached): RetinueError {
  return new RetinueError(reason, error);
}

/** Whether something was not done because a limit leaves nothing for it. */
export function isLimitError(error: unknown): boolean {
  return isRetinueError(error) && isLimit(error.code);
}

/** How a run ends that was stopped, or broken off by what was thrown: a limit hands in what there is. */
export function endingOfCause(
  cause: unknown,
  isStopped: boolean,
): Pick<RunEnding, "status" | "reason" | "error" | "advice" | "provider"> {
  const unnamed = isStopped ? "aborted" : "error";
  const reason = isRetinueError(cause) ? cause.code : unnamed;
  const error = cause instanceof Error ? cause.message : String(cause);
  const advice = isRetinueError(cause) && cause.advice !== undefined ? { advice: cause.advice } : {};
  if (isLimit(reason)) return { status: "partial", reason, error, ...advice };
  // A silent run is stopped, also where it did not respect its signal and had to be given up.
  const isSilent = reason === "stalled" && !(cause instanceof ModelError);
  if (isStopped || isSilent) return { status: "stopped", reason };
  const provider =
    cause instanceof ModelError && cause.answer !== undefined ? { provider: cause.answer } : {};
  return { status: "failed", reason, error, ...advice, ...provider };
}

function isLimit(reason: string): boolean {
  return limitReasons.some((known) => known === reason);
}
