import type { RunEvent } from "../../conversation/run-event.ts";
import type { MergeQueue } from "../../protocol/merge-step.ts";
import type { IntegrateOption, MergeHandle, MergeOptions } from "./merge-options.ts";

/** The outcome of bringing the changes of children back at the end of a run. */
export interface Integrated {
  /** The queue as it is at the end. */
  readonly merge?: MergeQueue;
  /** Why there was no merge. */
  readonly mergeError?: string;
}

/** Lets a run through, and merges behind it what its children have left; a run that did not end well merges nothing. */
export function createIntegration(asked: IntegrateOption | undefined): {
  around(
    events: AsyncIterable<RunEvent>,
    merge: (options: MergeOptions) => MergeHandle,
    signal: AbortSignal,
  ): AsyncGenerator<RunEvent, void>;
  outcome(): Integrated;
} {
  let outcome: Integrated = {};
  return {
    async *around(events, merge, signal) {
      let isGood = false;
      for await (const event of events) {
        if (event.type === "run-ended")
          isGood = event.ending.status === "completed" || event.ending.status === "partial";
        yield event;
      }
      if (asked === undefined || asked === false || !isGood || signal.aborted) return;
      const options = asked === true ? {} : asked;
      outcome = await merge({ ...options, signal }).result.then(
        (queue) => ({ merge: queue }),
        (error: unknown) => ({ mergeError: error instanceof Error ? error.message : String(error) }),
      );
    },
    outcome: () => outcome,
  };
}
