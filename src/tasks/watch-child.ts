import type { RunEvent } from "../conversation/run-event.ts";
import { createStopwatch, type Stopwatch } from "../foundation/stopwatch.ts";
import type { WaitClock } from "../foundation/wait-clock.ts";
import { type SilenceLimit, watchRun } from "../loop/watch-run.ts";
import type { ChildPlan } from "../planning/plan-run.ts";
import type { TaskControl } from "./task-manager.ts";

/** The time by which children are limited. */
export interface ChildClocks {
  readonly clock: WaitClock;
  /** Runs while any agent of the session works. */
  readonly tree: Stopwatch;
  readonly treeTimeMs?: number;
  /** When a silent child that was moved to the background is stopped; 0 never. */
  readonly backgroundStopMs?: number;
}

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

/** A child without a limit of its own gets one once no one watches it any more. */
function silenceOf(
  own: number | undefined,
  line: TaskControl,
  { backgroundStopMs = 0 }: ChildClocks,
): SilenceLimit | undefined {
  if (own !== undefined) return { reportMs: own, stopMs: own * 2 };
  if (line.attended() || backgroundStopMs === 0) return undefined;
  return { reportMs: backgroundStopMs / 2, stopMs: backgroundStopMs };
}
