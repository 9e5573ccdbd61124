import type { ModelFallback, PermissionDenial, RunTotals } from "../conversation/run-event.ts";
import { addUsage, noUsage, type Usage } from "../conversation/usage.ts";

/** Sums of one run while it continues. */
export interface Tally {
  turns(): number;
  /** The last words of the run, whatever it did after them. */
  lastText(): string;
  addText(text: string): void;
  addTurn(usage: Usage, modelMs: number, cost: number | undefined): void;
  /** A model call that is no turn of the agent. */
  addAside(usage: Usage, modelMs: number, cost: number | undefined): void;
  addCalls(count: number, denials: readonly PermissionDenial[]): void;
  addFallback(fallback: ModelFallback): void;
  result(): {
    readonly totals: RunTotals;
    readonly denials: readonly PermissionDenial[];
    readonly fallbacks?: readonly ModelFallback[];
  };
}

export function createTally(now: () => number): Tally {
  const start = now();
  const denials: PermissionDenial[] = [];
  const fallbacks: ModelFallback[] = [];
  let usage = noUsage;
  let lastText = "";
  let turns = 0;
  let toolUses = 0;
  let modelMs = 0;
  let cost: number | undefined = 0;
  const addAside: Tally["addAside"] = (callUsage, callMs, callCost) => {
    usage = addUsage(usage, callUsage);
    modelMs += callMs;
    // One call of unknown price makes the sum unknown; a partial sum would be believed.
    cost = cost === undefined || callCost === undefined ? undefined : cost + callCost;
  };
  return {
    turns: () => turns,
    lastText: () => lastText,
    addText(text) {
      if (text.trim() !== "") lastText = text;
    },
    addTurn(turnUsage, turnMs, turnCost) {
      turns += 1;
      addAside(turnUsage, turnMs, turnCost);
    },
    addAside,
    addCalls(count, denied) {
      toolUses += count;
      denials.push(...denied);
    },
    addFallback: (fallback) => void fallbacks.push(fallback),
    result: () => ({
      totals: {
        usage,
        turns,
        toolUses,
        durationMs: now() - start,
        modelMs,
        costUsd: cost,
      },
      denials,
      ...(fallbacks.length === 0 ? {} : { fallbacks: [...fallbacks] }),
    }),
  };
}
