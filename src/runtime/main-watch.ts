import type { Stopwatch } from "../foundation/stopwatch.ts";
import type { RunWatch } from "../loop/watch-run.ts";
import type { RunPlan } from "../planning/run-plan.ts";
import type { RuntimeContext } from "./session-world.ts";

/** The main agent is not watched for silence: whoever started it sees that, and its children speak for themselves. */
export function mainWatch(
  { limits, treeLimits }: RunPlan,
  {
    world,
    stopwatch,
    treeTime,
  }: { readonly world: RuntimeContext; readonly stopwatch: Stopwatch; readonly treeTime: Stopwatch },
): RunWatch {
  const own = limits?.timeMs === undefined ? {} : { timeMs: limits.timeMs.value };
  const tree = treeLimits?.timeMs;
  return {
    clock: world.clock,
    stopwatch,
    ...own,
    ...(tree === undefined ? {} : { tree: { stopwatch: treeTime, timeMs: tree.value } }),
  };
}
