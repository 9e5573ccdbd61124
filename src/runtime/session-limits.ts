import type { RunEnding } from "../conversation/run-event.ts";
import type { LoopInput } from "../loop/loop-ports.ts";
import type { RunPlan } from "../planning/run-plan.ts";

/** The limits of a plan over all its runs: turns count for each prompt, money for the whole session. */
export interface SessionLimits {
  /** What the next run may take, when the parts of the same prompt that ended before it took so much. */
  left(before: RunEnding | undefined): Pick<LoopInput, "maxTurns" | "maxCost">;
  /** The limit that leaves nothing for another part of the same prompt. */
  reached(ending: RunEnding): "max_turns" | "max_budget" | undefined;
  spend(cost: number | undefined): void;
  /** The ending, with a limit named as the caller set it. */
  explain(ending: RunEnding): RunEnding;
}

export function createLimits({
  maxTurns,
  maxBudget,
}: Pick<RunPlan, "maxTurns" | "maxBudget">): SessionLimits {
  const mostTurns = maxTurns?.value ?? Number.POSITIVE_INFINITY;
  // Where a price is not known the sum stays as it is; the plan has noted that the budget cannot be kept.
  let spent = 0;
  return {
    left: (before) => ({
      maxTurns: mostTurns - (before?.totals.turns ?? 0),
      ...(maxBudget === undefined ? {} : { maxCost: maxBudget.value - spent }),
    }),
    reached(ending) {
      if (ending.totals.turns >= mostTurns) return "max_turns";
      return maxBudget !== undefined && spent >= maxBudget.value ? "max_budget" : undefined;
    },
    spend(cost = 0) {
      spent += cost;
    },
    explain(ending) {
      if (ending.reason === "max_turns" && maxTurns !== undefined) {
        return { ...ending, error: `The limit of ${turns(maxTurns.value)} was reached.` };
      }
      if (ending.reason !== "max_budget" || maxBudget === undefined) return ending;
      return { ...ending, error: `The budget of ${maxBudget.value} US dollars is used up.` };
    },
  };
}

function turns(count: number): string {
  return count === 1 ? "1 turn" : `${count} turns`;
}
