import { RetinueError } from "../foundation/retinue-error.ts";
import type { Stopwatch } from "../foundation/stopwatch.ts";
import type { LimitReached } from "../loop/limit-reached.ts";
import type { LoopLimits } from "../loop/loop-ports.ts";
import type { AgentBudget } from "./budget.ts";

export interface LoopLimitOptions {
  readonly budget: AgentBudget;
  readonly shortened: () => LimitReached | undefined;
  /** One tool call may take so long, by the run's own time. */
  readonly toolTimeMs: number | undefined;
  /** Absent: the loop's own default. */
  readonly maxRepeats: number | undefined;
  readonly stopwatch: Stopwatch;
}

/** What a loop must heed besides its turns. */
export function createLoopLimits(options: LoopLimitOptions): LoopLimits {
  const { budget, shortened, toolTimeMs, maxRepeats, stopwatch } = options;
  return {
    ...(maxRepeats === undefined ? {} : { maxRepeats }),
    takeCalls: budget.takeCalls,
    shortened,
    ...(toolTimeMs === undefined
      ? {}
      : {
          limitCall({ tool }, signal) {
            // A child has limits of its own, and its parent waits for it.
            if (tool.effect === "spawn") return { signal, [Symbol.dispose]: () => undefined };
            const late = new AbortController();
            const over = new AbortController();
            const deadline = stopwatch.elapsed() + toolTimeMs;
            stopwatch
              .reach(() => deadline, over.signal)
              .then(
                () => late.abort(lateError(tool.name, toolTimeMs)),
                () => undefined,
              );
            return {
              signal: AbortSignal.any([signal, late.signal]),
              [Symbol.dispose]: () => over.abort(new RetinueError("call-over", "The call is over.")),
            };
          },
        }),
  };
}

function lateError(tool: string, limitMs: number): RetinueError {
  return new RetinueError(
    "tool-timeout",
    `${tool} did not end within ${limitMs / 1000} s, the limit for one call, and was stopped; it may have had part of its effect.`,
    { advice: "Do less in one call, or start long work in the background." },
  );
}
