import { estimateRequestTokens } from "../conversation/estimate-request-tokens.ts";
import type { ModelEvent } from "../conversation/message.ts";
import type { ModelFallback, RunEvent } from "../conversation/run-event.ts";
import { costOf } from "../conversation/usage.ts";
import { type AttemptUsage, createAttemptUsage } from "../models/attempt-usage.ts";
import type { Model, ModelRequest } from "../models/model.ts";
import { ModelError } from "../models/model-error.ts";

export type ModelAnswer = Extract<ModelEvent, { type: "message-ended" }>;
export type LostAnswer = Extract<RunEvent, { type: "answer-lost" }>;

export interface TurnOrder {
  readonly model: Model;
  readonly request: ModelRequest;
  readonly signal: AbortSignal;
  /** Receives what answers took that broke off. */
  readonly onLost: (lost: LostAnswer) => void;
  /** Called when another model is asked in place of the chosen one. */
  readonly onFallback?: ((fallback: ModelFallback) => void) | undefined;
}

/** Asks the model once and passes on what it says while it speaks; the answer itself comes back when it is whole. */
export async function* takeModelTurn(order: TurnOrder): AsyncGenerator<RunEvent, ModelAnswer> {
  const { model, request, signal } = order;
  const attempt = createAttemptUsage(() => estimateRequestTokens(request));
  // Reads the events, and does not wait for a model that ignores that it was stopped.
  const events = model.stream(request, { signal });
  const iterator = events[Symbol.asyncIterator]();
  let giveUp: (reason: unknown) => void = () => undefined;
  let timer: NodeJS.Timeout | undefined;
  let hasFailed = false;
  const leaveSoon = (): void => {
    timer = setTimeout(() => giveUp(signal.reason), graceMs);
  };
  if (signal.aborted) leaveSoon();
  else signal.addEventListener("abort", leaveSoon, { once: true });
  const reader = {
    next: () =>
      new Promise<IteratorResult<ModelEvent>>((resolve, reject) => {
        giveUp = (reason) => {
          hasFailed = true;
          reject(reason);
        };
        iterator.next().then(resolve, giveUp);
      }),
    async close(): Promise<void> {
      signal.removeEventListener("abort", leaveSoon);
      clearTimeout(timer);
      const closing = iterator.return?.();
      closing?.catch(() => undefined);
      // One that hangs would not answer this either.
      if (!hasFailed) await closing;
    },
  };
  try {
    while (true) {
      const step = await reader.next();
      if (step.done === true) break;
      const event = step.value;
      attempt.onEvent(event);
      signal.throwIfAborted();
      switch (event.type) {
        case "message-ended":
          return event;
        case "attempt-failed": {
          const { type: _type, ...retry } = event;
          yield* lose(attempt, order);
          yield { type: "model-retried", ...retry };
          break;
        }
        case "fell-back": {
          const { type: _type, ...fallback } = event;
          yield* lose(attempt, order);
          order.onFallback?.(fallback);
          yield { type: "model-fell-back", ...fallback };
          break;
        }
        case "quota-waiting":
        case "quota-renewed":
          yield event;
          break;
        default:
          yield { type: "model-streamed", event };
      }
    }
    signal.throwIfAborted();
    throw new ModelError(
      "stream-cut",
      "The model's answer ended before it was complete: its stream had no event message-ended.",
    );
  } catch (error) {
    yield* lose(attempt, order);
    throw error;
  } finally {
    await reader.close();
  }
}

function lose(attempt: AttemptUsage, { model, onLost }: TurnOrder): readonly LostAnswer[] {
  const usage = attempt.take();
  if (usage === undefined) return [];
  const { id, price } = model.facts;
  const cost = price === undefined ? {} : { costUsd: costOf(usage, price) };
  const lost: LostAnswer = { type: "answer-lost", model: id, usage, ...cost };
  onLost(lost);
  return [lost];
}

/** A model that does not end with its signal is left behind after this time. */
const graceMs = 2000;
