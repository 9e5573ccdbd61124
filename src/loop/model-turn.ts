import type { ModelEvent } from "../conversation/model-event.ts";
import type { RunEvent } from "../conversation/run-event.ts";
import { settledSoon } from "../foundation/abort.ts";
import type { Model, ModelRequest } from "../model/model.ts";
import { ModelFault } from "../model/model-fault.ts";

export type ModelAnswer = Extract<ModelEvent, { type: "message-ended" }>;

/** Asks the model once and passes on what it says while it speaks; the answer itself comes back when it is whole. */
export async function* takeModelTurn(
  model: Model,
  request: ModelRequest,
  signal: AbortSignal,
): AsyncGenerator<RunEvent, ModelAnswer> {
  for await (const event of unlessHanging(model.stream(request, { signal }), signal)) {
    signal.throwIfAborted();
    switch (event.type) {
      case "message-ended":
        return event;
      case "attempt-failed": {
        const { type: _type, ...retry } = event;
        yield { type: "model-retried", ...retry };
        break;
      }
      default:
        yield { type: "model-streamed", event };
    }
  }
  signal.throwIfAborted();
  throw new ModelFault("stream-cut", "The model's answer ended before it was complete.");
}

/** A model that does not end with its signal is left behind after this time. */
const graceMs = 2000;

/** Passes the events on, and does not wait for a model that ignores that it was stopped. */
async function* unlessHanging(
  events: AsyncIterable<ModelEvent>,
  signal: AbortSignal,
): AsyncGenerator<ModelEvent> {
  const iterator = events[Symbol.asyncIterator]();
  let isLeft = false;
  try {
    while (true) {
      const step = await settledSoon(iterator.next(), signal, graceMs);
      if (step.done === true) return;
      yield step.value;
    }
  } catch (error) {
    isLeft = true;
    throw error;
  } finally {
    const closing = iterator.return?.();
    closing?.catch(() => undefined);
    // One that hangs would not answer this either.
    if (!isLeft) await closing;
  }
}
