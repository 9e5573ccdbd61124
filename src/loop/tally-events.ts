import { textOf } from "../conversation/message.ts";
import type { RunEnding, RunEvent } from "../conversation/run-event.ts";
import { endingOfCause } from "./limit-reached.ts";
import { createTally } from "./tally.ts";

/** Adds up a run from outside, for the case that it has to be given up and cannot report its own ending. */
export interface EventTally {
  hear(event: RunEvent): void;
  /** The ending of a run that was broken off by this, in the same shape as any other. */
  endedBy(cause: unknown): RunEnding;
}

export function tallyEvents(now: () => number): EventTally {
  const tally = createTally(now);
  return {
    hear(event) {
      switch (event.type) {
        case "assistant-answered":
          tally.addTurn(event.usage, event.durationMs ?? 0, event.cost);
          tally.addText(textOf(event.message));
          break;
        case "answer-lost":
        case "context-compacted":
          tally.addAside(event.usage, 0, event.cost);
          break;
        case "call-finished": {
          const { call, denied } = event;
          tally.addCalls(1, denied === undefined ? [] : [{ call, reason: denied }]);
        }
      }
    },
    endedBy: (cause) => ({ ...endingOfCause(cause, false), text: tally.lastText(), ...tally.result() }),
  };
}
