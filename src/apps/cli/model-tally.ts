import type { RunEvent } from "../../conversation/run-event.ts";
import { addUsage, type Usage } from "../../conversation/usage.ts";

/** What was used of one model; the cost is absent when its price is not known. */
export interface ModelSum {
  readonly usage: Usage;
  readonly cost?: number;
}

export type ModelTally = ReadonlyMap<string, ModelSum>;

export function addSums(a: ModelSum, b: ModelSum): ModelSum {
  const cost = a.cost === undefined || b.cost === undefined ? {} : { cost: a.cost + b.cost };
  return { usage: addUsage(a.usage, b.usage), ...cost };
}

/** Counts the answers of child agents by their models, summaries of their conversations and lost ones among them. */
export function createModelTally() {
  let sums = new Map<string, ModelSum>();
  return {
    add(event: RunEvent): void {
      if (!isPaid(event)) return;
      const { model, usage, costUsd: cost } = event;
      const one: ModelSum = { usage, ...(cost === undefined ? {} : { cost }) };
      const before = sums.get(model);
      sums.set(model, before === undefined ? one : addSums(before, one));
    },
    /** What was counted since the last asking. */
    take(): ModelTally {
      const taken = sums;
      sums = new Map();
      return taken;
    },
  };
}

type PaidEvent = Extract<RunEvent, { type: "assistant-answered" | "context-compacted" | "answer-lost" }>;

function isPaid(event: RunEvent): event is PaidEvent {
  return ["assistant-answered", "context-compacted", "answer-lost"].includes(event.type);
}
