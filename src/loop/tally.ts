import type { PermissionDenial, RunTotals } from "../conversation/run-event.ts";
import { addUsage, noUsage, type Usage } from "../conversation/usage.ts";

/** Sums of one run while it goes on. */
export interface Tally {
  turns(): number;
  /** So far, in US dollars; undefined when a price is not known. */
  cost(): number | undefined;
  addTurn(usage: Usage, modelMs: number, cost: number | undefined): void;
  addCalls(count: number, denials: readonly PermissionDenial[]): void;
  result(): { readonly totals: RunTotals; readonly denials: readonly PermissionDenial[] };
}

export function createTally(now: () => number): Tally {
  const start = now();
  const denials: PermissionDenial[] = [];
  let usage = noUsage;
  let turns = 0;
  let toolUses = 0;
  let modelMs = 0;
  let cost: number | undefined = 0;
  return {
    turns: () => turns,
    cost: () => cost,
    addTurn(turnUsage, turnMs, turnCost) {
      turns += 1;
      usage = addUsage(usage, turnUsage);
      modelMs += turnMs;
      // One call of unknown price makes the sum unknown; a partial sum would be believed.
      cost = cost === undefined || turnCost === undefined ? undefined : cost + turnCost;
    },
    addCalls(count, denied) {
      toolUses += count;
      denials.push(...denied);
    },
    result: () => ({
      totals: {
        usage,
        turns,
        toolUses,
        durationMs: now() - start,
        modelMs,
        ...(cost === undefined ? {} : { cost }),
      },
      denials,
    }),
  };
}
