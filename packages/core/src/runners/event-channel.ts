import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { RunEvent } from "../conversation/run-event.ts";

/** Takes events at any time and hands them on one by one. */
export interface EventChannel extends AsyncIterable<RunEvent> {
  /** Resolves once the taker has asked for the one behind it, and so has recorded it. */
  push(event: RunEvent): Promise<void>;
  /** The taker gets what is left. */
  end(): void;
  /** The taker gets what is left, and then this error. */
  fail(error: unknown): void;
}

/** Pieces of text are joined, so that only a flood of other events comes so far. */
const maxWaiting = 20_000;

export function createEventChannel(): EventChannel {
  const waiting: { event: RunEvent; readonly taken: () => void }[] = [];
  let isOver = false;
  let failure: { readonly error: unknown } | undefined;
  let wake: (() => void) | undefined;
  const notify = (): void => {
    wake?.();
    wake = undefined;
  };
  const fail = (error: unknown): void => {
    failure ??= { error };
    isOver = true;
    notify();
  };
  return {
    push(event) {
      if (isOver) return Promise.resolve();
      const last = waiting.at(-1);
      const joined = last === undefined ? undefined : joinPieces(last.event, event);
      if (last !== undefined && joined !== undefined) {
        last.event = joined;
        return Promise.resolve();
      }
      if (waiting.length >= maxWaiting) {
        fail(
          new RetinueError("runner-flooded", "It reported more than could be recorded, so it was stopped."),
        );
        return Promise.resolve();
      }
      return new Promise((taken) => {
        waiting.push({ event, taken });
        notify();
      });
    },
    end() {
      isOver = true;
      notify();
    },
    fail,
    async *[Symbol.asyncIterator]() {
      try {
        while (true) {
          for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
            yield next.event;
            next.taken();
          }
          if (failure !== undefined) throw failure.error;
          if (isOver) return;
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
        }
      } finally {
        isOver = true;
        for (const { taken } of waiting.splice(0)) taken();
      }
    },
  };
}

/** Two pieces of the same text that were not read yet, as one. */
function joinPieces(before: RunEvent, after: RunEvent): RunEvent | undefined {
  if (before.type !== "model-streamed" || after.type !== "model-streamed") return undefined;
  const [one, other] = [before.event, after.event];
  if (one.type === "request-waiting" && other.type === "request-waiting") return before;
  if (one.type === "text-delta" && other.type === "text-delta")
    return { ...before, event: { ...one, text: one.text + other.text } };
  if (one.type === "thinking-delta" && other.type === "thinking-delta")
    return { ...before, event: { ...one, text: one.text + other.text } };
  return undefined;
}
