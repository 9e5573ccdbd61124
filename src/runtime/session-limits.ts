import type { RunEnding } from "../conversation/run-event.ts";
import type { LoopInput } from "../loop/loop-ports.ts";
import type { RunPlan } from "../planning/run-plan.ts";

/** The turns of a plan over all runs of one prompt. What is shared with children is kept by the budget of the tree. */
export interface SessionLimits {
  /** What the next run may take, when the parts of the same prompt that ended before it took so much. */
  left(before: RunEnding | undefined): Pick<LoopInput, "maxTurns">;
  /** The limit that leaves nothing for another part of the same prompt. */
  reached(ending: RunEnding): "max_turns" | undefined;
  /** The ending, with a limit named as the caller set it. */
  explain(ending: RunEnding): RunEnding;
}

export function createLimits({ maxTurns }: Pick<RunPlan, "maxTurns">): SessionLimits {
  const limit = maxTurns?.value ?? Number.POSITIVE_INFINITY;
  return {
    left: (before) => ({ maxTurns: limit - (before?.totals.turns ?? 0) }),
    reached: (ending) => (ending.totals.turns >= limit ? "max_turns" : undefined),
    explain(ending) {
      if (ending.reason !== "max_turns" || maxTurns === undefined) return ending;
      return { ...ending, error: `The limit of ${turns(maxTurns.value)} was reached.` };
    },
  };
}

function turns(count: number): string {
  return count === 1 ? "1 turn" : `${count} turns`;
}
