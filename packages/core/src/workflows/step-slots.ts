import type { WaitClock } from "@retinue/base/foundation/abortable.ts";
import { abortable } from "@retinue/base/foundation/abortable.ts";

/** How many steps work concurrently, and which of them wait for the first of their kind. */
export interface StepSlots {
  /** Resolves when there is a place, in the order of the calls. */
  enter(signal: AbortSignal): Promise<Disposable>;
  /**
   * The first step of a shape goes ahead; the others wait until it has its first answer, so that the provider has the common
   * beginning of their requests in its cache. Returns what the first one calls.
   */
  warmUp(shape: string, signal: AbortSignal): Promise<() => void>;
}

/** Longer is not waited for the first of a shape. */
const warmUpMs = 5_000;

export function createStepSlots(most: number, clock: WaitClock): StepSlots {
  let free = most;
  const waiting: (() => void)[] = [];
  const warm = new Map<string, Promise<void>>();
  const leave = (): void => {
    const next = waiting.shift();
    if (next === undefined) free += 1;
    else next();
  };
  return {
    async enter(signal) {
      signal.throwIfAborted();
      if (free > 0) free -= 1;
      else {
        const place = Promise.withResolvers<void>();
        waiting.push(place.resolve);
        try {
          await abortable(place.promise, signal);
        } catch (error) {
          const at = waiting.indexOf(place.resolve);
          if (at === -1) leave();
          else waiting.splice(at, 1);
          throw error;
        }
      }
      let isHeld = true;
      return {
        [Symbol.dispose]() {
          if (isHeld) leave();
          isHeld = false;
        },
      };
    },
    async warmUp(shape, signal) {
      const first = warm.get(shape);
      if (first === undefined) {
        const answered = Promise.withResolvers<void>();
        warm.set(shape, answered.promise);
        return answered.resolve;
      }
      const late = new AbortController();
      try {
        const limit = clock.sleep(warmUpMs, AbortSignal.any([signal, late.signal])).catch(() => undefined);
        await abortable(Promise.race([first, limit]), signal);
      } finally {
        late.abort();
      }
      return () => undefined;
    },
  };
}

/** As many as the machine bears, and never one alone. */
export function defaultSlots(cores: number): number {
  return Math.max(2, Math.min(16, cores - 2));
}
