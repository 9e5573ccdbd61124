import type { RunEvent } from "../conversation/run-event.ts";
import { createStopwatch } from "../foundation/stopwatch.ts";
import { type SilenceLimit, watchRun } from "../loop/watch-run.ts";
import type { ChildPlan } from "../planning/plan-run.ts";
import type { ChildClocks } from "./child-host.ts";
import type { TaskControl } from "./task-manager.ts";

export interface WatchedChild {
  readonly plan: Pick<ChildPlan, "limits">;
  readonly clocks: ChildClocks | undefined;
  readonly line: TaskControl;
  readonly run: (line: TaskControl, signal: AbortSignal) => AsyncIterable<RunEvent>;
}

/** A child's run under its clocks; its time begins now, so waiting for a place has cost it nothing. */
export function watchChild(
  { plan, clocks, line, run }: WatchedChild,
  signal: AbortSignal,
): AsyncIterable<RunEvent> {
  if (clocks === undefined) return run(line, signal);
  const { limits } = plan;
  const stopwatch = createStopwatch(clocks.clock, clocks.tree);
  const { treeTimeMs } = clocks;
  return watchRun(
    (stop) => run({ ...line, stopwatch }, stop),
    {
      clock: clocks.clock,
      stopwatch,
      ...(limits?.timeMs === undefined ? {} : { timeMs: limits.timeMs.value }),
      silence: () => silenceOf(limits?.silenceMs?.value, line, clocks),
      ...(treeTimeMs === undefined ? {} : { tree: { stopwatch: clocks.tree, timeMs: treeTimeMs } }),
    },
    signal,
  );
}

/** A child that nobody set a limit for gets one once nobody watches it any more. */
function silenceOf(
  own: number | undefined,
  line: TaskControl,
  { backgroundStopMs = 0 }: ChildClocks,
): SilenceLimit | undefined {
  if (own !== undefined) return { reportMs: own, stopMs: own * 2 };
  if (line.attended() || backgroundStopMs === 0) return undefined;
  return { reportMs: backgroundStopMs / 2, stopMs: backgroundStopMs };
}
