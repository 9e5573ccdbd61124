import type { RunEnding, RunEvent } from "../conversation/run-event.ts";
import { sleep } from "../foundation/abortable.ts";
import { endingOfCause } from "../loop/limit-reached.ts";
import type { TaskState } from "./task-state.ts";

/** A child that does not end with its signal is given up after this time. */
const patienceMs = 4500;

/** Resolves some time after a stop was asked for; never, and without a timer left, once the child has settled. */
export async function givenUp(stopped: AbortSignal, settled: AbortSignal): Promise<void> {
  const never = new Promise<void>(() => undefined);
  await new Promise<void>((resolve) => {
    if (stopped.aborted) resolve();
    else stopped.addEventListener("abort", () => resolve(), { once: true, signal: settled });
  });
  await sleep(patienceMs, settled).catch(() => never);
}

/** The ending of a child that could not tell its own: in the same shape as any other, from what was seen of it. */
export function endedBy(
  error: unknown,
  { state, signal }: { readonly state: TaskState; readonly signal: AbortSignal },
  at: number,
): RunEvent {
  const { usage, turns, toolUses, cost, startedAt, lastText } = state;
  const ending: RunEnding = {
    ...endingOfCause(signal.aborted ? signal.reason : error, signal.aborted),
    text: lastText,
    denials: [],
    totals: {
      usage,
      turns,
      toolUses,
      durationMs: at - startedAt,
      modelMs: 0,
      ...(cost === undefined ? {} : { cost }),
    },
  };
  return { type: "run-ended", ending };
}
