import type { ModelEvent } from "../conversation/model-event.ts";
import type { RunEvent } from "../conversation/run-event.ts";
import type { Model, ModelRequest } from "../model/model.ts";
import { ModelFault } from "../model/model-fault.ts";

export type ModelAnswer = Extract<ModelEvent, { type: "message-ended" }>;

/** Asks the model once and passes on what it says while it speaks; the answer itself comes back when it is whole. */
export async function* takeModelTurn(
  model: Model,
  request: ModelRequest,
  signal: AbortSignal,
): AsyncGenerator<RunEvent, ModelAnswer> {
  for await (const event of model.stream(request, { signal })) {
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
