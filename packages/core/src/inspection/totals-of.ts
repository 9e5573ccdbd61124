import { addUsage, noUsage } from "../conversation/usage.ts";
import type { InspectedTotals, Span, Step } from "./inspection.ts";
import { unionMs } from "./run-clock.ts";

/** Sums in the order of the steps, so that a cost is to the last digit the one the run itself has counted. */
export function totalsOf(steps: readonly Step[], runs: readonly Span[]): InspectedTotals {
  const calls = steps.filter((step) => step.type === "call");
  const durationMs = unionMs(runs);
  const modelMs = Math.min(
    durationMs,
    unionMs(steps.flatMap((step) => (step.type === "call" ? [] : spanOf(step)))),
  );
  const toolMs = Math.min(durationMs, unionMs(calls.flatMap(spanOf)));
  return withCost({
    ...money(steps),
    turns: steps.filter(({ type }) => type === "turn").length,
    toolUses: calls.length,
    durationMs,
    modelMs,
    toolMs,
    otherMs: Math.max(0, durationMs - modelMs - toolMs),
    failedCalls: calls.filter(({ outcome }) => outcome === "failed").length,
    refusedCalls: calls.filter(({ outcome }) => outcome === "refused").length,
    questions: calls.filter(({ asked, tool }) => asked === true || tool === "AskUserQuestion").length,
    retries: steps.filter(({ type }) => type === "retry").length,
    compactions: steps.filter(({ type }) => type === "compaction").length,
  });
}

export function addTotals(a: InspectedTotals, b: InspectedTotals): InspectedTotals {
  return withCost({
    turns: a.turns + b.turns,
    toolUses: a.toolUses + b.toolUses,
    usage: addUsage(a.usage, b.usage),
    pricedCost: a.pricedCost + b.pricedCost,
    unpriced: a.unpriced + b.unpriced,
    listPriced: a.listPriced + b.listPriced,
    durationMs: a.durationMs + b.durationMs,
    modelMs: a.modelMs + b.modelMs,
    toolMs: a.toolMs + b.toolMs,
    otherMs: a.otherMs + b.otherMs,
    failedCalls: a.failedCalls + b.failedCalls,
    refusedCalls: a.refusedCalls + b.refusedCalls,
    questions: a.questions + b.questions,
    retries: a.retries + b.retries,
    compactions: a.compactions + b.compactions,
  });
}

export const noTotals: InspectedTotals = totalsOf([], []);

/** The time a step took, where the lines show. */
export function spanOf(step: Step): readonly Span[] {
  if (step.at === undefined || !("durationMs" in step) || step.durationMs === undefined) return [];
  return [{ from: step.at, to: step.at + step.durationMs }];
}

function money(
  steps: readonly Step[],
): Pick<InspectedTotals, "usage" | "pricedCost" | "unpriced" | "listPriced"> {
  let usage = noUsage;
  let pricedCost = 0;
  let unpriced = 0;
  let listPriced = 0;
  for (const step of steps) {
    if (step.type !== "turn" && step.type !== "compaction" && step.type !== "lost") continue;
    usage = addUsage(usage, step.usage);
    pricedCost += step.costUsd ?? 0;
    if (step.costFrom === "unknown") unpriced += 1;
    if (step.costFrom === "catalog") listPriced += 1;
  }
  return { usage, pricedCost, unpriced, listPriced };
}

/** One answer of unknown price makes the sum unknown; a partial sum would be believed. */
function withCost(totals: Omit<InspectedTotals, "costUsd">): InspectedTotals {
  return totals.unpriced === 0 ? { ...totals, costUsd: totals.pricedCost } : totals;
}
