import { ModelError } from "./model-error.ts";
import { createStallWatch, type StallLimits } from "./stall-watch.ts";

export interface StreamWatch extends Disposable {
  /** Given to whatever talks to the provider; aborted with the caller's signal, when a limit is passed, and at the end. */
  readonly signal: AbortSignal;
  /** Waits for the work, but not longer than the caller's signal and the limits allow. */
  wait<T>(work: PromiseLike<T>): Promise<T>;
  /** Says that a piece of the answer arrived. */
  heardAnswer(): void;
}

/** Watches over one answer whose source may not heed its signal, so that no wait for it goes on for ever. */
export function watchStream(outer: AbortSignal, limits: StallLimits, modelName: string): StreamWatch {
  const inner = new AbortController();
  let failure: { readonly error: unknown } | undefined;
  let interrupt: ((error: unknown) => void) | undefined;
  const stop = (error: unknown) => {
    failure ??= { error };
    inner.abort(error);
    interrupt?.(failure.error);
  };
  const onAbort = () => stop(outer.reason);
  outer.addEventListener("abort", onAbort, { once: true });
  const stall = createStallWatch(limits, () => {
    stop(new ModelError("stalled", `${modelName} ${stall.stalled ?? "stalled"}.`));
  });
  return {
    signal: inner.signal,
    async wait(work) {
      stall.wait();
      try {
        return await new Promise((resolve, reject) => {
          interrupt = reject;
          work.then(resolve, reject);
          if (failure !== undefined) reject(failure.error);
        });
      } finally {
        stall.rest();
      }
    },
    heardAnswer: () => stall.heardAnswer(),
    [Symbol.dispose]() {
      stall[Symbol.dispose]();
      outer.removeEventListener("abort", onAbort);
      stop(new DOMException("The answer is over.", "AbortError"));
    },
  };
}
