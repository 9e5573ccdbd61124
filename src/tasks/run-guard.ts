import type { Stopwatch } from "../foundation/stopwatch.ts";
import type { LimitReached } from "../loop/limit-reached.ts";
import type { LoopLimits } from "../loop/loop-ports.ts";
import type { Model } from "../model/model.ts";
import type { RunLimits } from "../planning/run-limits.ts";
import type { TreeBudget } from "./budget.ts";
import { withBudget } from "./budgeted-model.ts";
import { createLoopLimits } from "./loop-limits.ts";

/** Keeps the limits of one agent wherever it spends something. */
export interface RunGuard {
  readonly stopwatch: Stopwatch;
  /** The model, with every call of it paid from this agent's budget. */
  readonly pay: (model: Model) => Model;
  readonly limits: LoopLimits;
}

export interface RunGuardOptions {
  readonly limits: RunLimits | undefined;
  readonly tree: TreeBudget;
  readonly stopwatch: Stopwatch;
}

export function createRunGuard({ limits, tree, stopwatch }: RunGuardOptions): RunGuard {
  const budget = tree.agent(limits);
  let shortened: LimitReached | undefined;
  return {
    stopwatch,
    pay: (model) =>
      withBudget(model, {
        budget,
        whileWaiting: stopwatch.hold,
        onReserved(limit) {
          shortened = limit;
        },
      }),
    limits: createLoopLimits({
      budget,
      shortened: () => shortened,
      toolTimeMs: limits?.toolTimeMs?.value,
      maxRepeats: limits?.repeatedCalls?.value,
      stopwatch,
    }),
  };
}
