import type { RunLimits } from "../../../planning/run-limits.ts";
import type { Decided, RunPlan } from "../../../planning/run-plan.ts";
import type { ShownField } from "../views/fields-view.ts";

/** What a run and its tree may take, each with where the number came from. */
export function describeLimits({ limits = {}, treeLimits = {} }: RunPlan): readonly ShownField[] {
  return [...describe(limits, ""), ...describe(treeLimits, " for the whole tree")];
}

const seconds = (milliseconds: number): string => `at most ${milliseconds / 1000} s`;

const rows: readonly [key: keyof RunLimits, label: string, show: (value: number) => string][] = [
  ["timeMs", "time", seconds],
  ["tokens", "tokens", (value) => `at most ${value}`],
  ["cost", "money", (value) => `at most ${value} US dollars`],
  ["toolCalls", "tool calls", (value) => `at most ${value}`],
  ["toolTimeMs", "one tool call", seconds],
  ["silenceMs", "silence", (value) => `told after ${value / 1000} s, stopped after ${(2 * value) / 1000} s`],
  ["repeatedCalls", "repeated calls", (value) => `ends after ${value} equal calls without anything new`],
];

function describe(limits: RunLimits, whose: string): readonly ShownField[] {
  return rows.flatMap(([key, label, show]) => {
    const limit: Decided<number> | undefined = limits[key];
    return limit === undefined ? [] : [{ label, value: `${show(limit.value)}${whose}`, origin: limit.from }];
  });
}
