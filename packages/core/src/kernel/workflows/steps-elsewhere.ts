import type { RunEnding } from "../../conversation/run-event.ts";
import { contextTokens } from "../../conversation/usage.ts";
import type { ChildPlan } from "../../planning/agent-plan.ts";
import type { StepShape } from "../../workflows/content-key.ts";

/** A step as another process can carry it out. */
export interface PlannedStep {
  readonly plan: ChildPlan;
  /** The form of its result, where its script asks for one. */
  readonly output?: Readonly<Record<string, unknown>> | undefined;
}

/**
 * Carries the steps of a run out in other processes. The script begins anew in each process that takes the run, so whatever is
 * asked here must get the same answers from all of them.
 */
export interface StepsElsewhere {
  readonly runId: string;
  /** How the agent of a step has ended, without starting it. */
  ended(agentId: string): RunEnding | undefined;
  /** Starts it unless it was started, and gives its end; never settles where that comes after this process. */
  run(step: PlannedStep, signal: AbortSignal): Promise<RunEnding>;
  /** What decided the shape of such steps first holds for the run, whatever else the next process has. */
  readonly shapes: {
    find(options: string): StepShape | undefined;
    keep(options: string, shape: StepShape): Promise<void>;
  };
}

/** What a run elsewhere took, as a step shows it. */
export function figuresOfEnding({ totals }: RunEnding) {
  const { usage, toolUses, costUsd } = totals;
  return {
    tokens: contextTokens(usage) + usage.outputTokens,
    outputTokens: usage.outputTokens,
    toolUses,
    ...(costUsd === undefined ? {} : { costUsd }),
  };
}
