import type { CoolDown, WaitClock } from "./cool-down.ts";
import type { Model, ModelEvent } from "./model.ts";
import { ModelError } from "./model-error.ts";
import type { GatePass, RequestGate } from "./request-gate.ts";

export interface RetryOptions {
  readonly coolDown: CoolDown;
  /** Holds back requests a provider would refuse; absent means none is held back. */
  readonly gate?: RequestGate;
  readonly clock: WaitClock;
  /** At least 0 and less than 1. */
  readonly random: () => number;
  /** The first one included. */
  readonly maxAttempts: number;
  /** The most that all pauses of one request may take together. */
  readonly maxWaitMs?: number;
  /** How often a request that waits for its turn says so. */
  readonly signOfLifeMs?: number;
}

/**
 * The same model, made patient: a error that may pass is answered by asking again. That is safe in the middle of an
 * answer too, because no one acts on an answer before its `message-ended`, and after that event nothing is repeated.
 */
export function withRetry(model: Model, options: RetryOptions): Model {
  const { coolDown, clock, maxAttempts, maxWaitMs = tenMinutes } = options;
  return {
    facts: model.facts,
    async *stream(request, { signal }) {
      let waited = 0;
      for (let attempt = 1; ; attempt += 1) {
        const pass = yield* sayingThatItWaits(enterWhenCool(options, signal), options.signOfLifeMs);
        let isAnswered = false;
        try {
          for await (const event of model.stream(request, { signal })) {
            isAnswered ||= event.type === "message-ended";
            // What the taker does with the answer takes no one's place.
            if (isAnswered) pass?.leave("answered");
            yield event;
          }
          return;
        } catch (error) {
          pass?.leave(error instanceof ModelError && refusals.has(error.code) ? "refused" : "failed");
          signal.throwIfAborted();
          if (isAnswered) return;
          if (!(error instanceof ModelError) || !error.mayPass) throw error;
          const delayMs = delayBefore(attempt, error, options.random);
          waited += delayMs;
          if (waited > maxWaitMs) throw waitTooLong(error, maxWaitMs);
          if (refusals.has(error.code)) coolDown.refused(error.retryAfterMs ?? Math.min(delayMs, shortPause));
          if (attempt >= maxAttempts) throw error;
          yield failure(error, { attempt, maxAttempts, delayMs });
          await clock.sleep(delayMs, signal);
        } finally {
          pass?.leave("failed");
        }
      }
    },
  };
}

/** The one that reads it must know when it is worth coming back. */
function waitTooLong(failure: ModelError, maxWaitMs: number): ModelError {
  const { code, message, status, retryAfterMs, requestId, cause } = failure;
  if (retryAfterMs === undefined) return failure;
  const asked = `It asks to wait ${inWords(retryAfterMs)}, and a request waits at most ${inWords(maxWaitMs)} in all.`;
  return new ModelError(code, `${message} ${asked}`, {
    retryAfterMs,
    cause,
    ...(status === undefined ? {} : { status }),
    ...(requestId === undefined ? {} : { requestId }),
    advice: `Try again in ${inWords(retryAfterMs)}, or choose another model.`,
  });
}

function inWords(milliseconds: number): string {
  const seconds = Math.ceil(milliseconds / 1000);
  if (seconds < 120) return `${seconds} s`;
  const minutes = Math.ceil(seconds / 60);
  return minutes < 120 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** A refusal that came while others waited at the gate holds them back too. */
async function enterWhenCool(
  { coolDown, gate, clock }: RetryOptions,
  signal: AbortSignal,
): Promise<GatePass | undefined> {
  while (true) {
    await coolDown.wait(signal);
    const known = coolDown.until();
    const pass = await gate?.enter(signal);
    const until = coolDown.until();
    if (until <= known || until <= clock.now()) return pass;
    pass?.leave("failed");
  }
}

/** Often enough for the shortest silence that is worth reporting. */
const signOfLifeMs = 20_000;

async function* sayingThatItWaits(
  entering: Promise<GatePass | undefined>,
  everyMs = signOfLifeMs,
): AsyncGenerator<ModelEvent, GatePass | undefined> {
  const stillWaiting = Symbol("still waiting");
  let isInside = false;
  try {
    while (true) {
      const nap = Promise.withResolvers<typeof stillWaiting>();
      const timer = setTimeout(() => nap.resolve(stillWaiting), everyMs);
      try {
        const first = await Promise.race([entering, nap.promise]);
        if (first !== stillWaiting) {
          isInside = true;
          return first;
        }
      } finally {
        clearTimeout(timer);
      }
      yield { type: "request-waiting" };
    }
  } finally {
    // The one that leaves while waiting must not keep the place that comes later.
    if (!isInside)
      entering.then(
        (pass) => pass?.leave("failed"),
        () => undefined,
      );
  }
}

const tenMinutes = 600_000;
/** How long others are held back when the provider did not say for how long. */
const shortPause = 2000;
const refusals: ReadonlySet<string> = new Set(["rate-limited", "overloaded"]);

/** What the provider asked for and a little more, or a random part of a time that doubles with each attempt. */
export function delayBefore(attempt: number, failure: ModelError, random: () => number): number {
  const { retryAfterMs } = failure;
  if (retryAfterMs !== undefined)
    return Math.ceil(retryAfterMs + random() * Math.max(250, retryAfterMs * 0.1));
  return Math.ceil(random() * Math.min(32_000, 500 * 2 ** (attempt - 1)));
}

/** Reads CLAUDE_CODE_MAX_RETRIES, which counts the attempts after the first: ten unless said, never more than fifteen. */
export function readMaxAttempts(maxRetries: string | undefined): number {
  const said = maxRetries === undefined || maxRetries.trim() === "" ? Number.NaN : Number(maxRetries);
  return 1 + (Number.isInteger(said) && said >= 0 ? Math.min(said, 15) : 10);
}

function failure(
  failure: ModelError,
  counts: { readonly attempt: number; readonly maxAttempts: number; readonly delayMs: number },
): ModelEvent {
  return {
    type: "attempt-failed",
    ...counts,
    code: failure.code,
    ...(failure.status === undefined ? {} : { status: failure.status }),
    message: failure.message,
  };
}
