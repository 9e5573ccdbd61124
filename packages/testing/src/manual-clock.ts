import type { WaitClock } from "@retinue/base/foundation/abortable.ts";
import { checkArgument, checks } from "@retinue/base/foundation/check-arguments.ts";

/** A clock that is paused until it is advanced. */
export interface ManualClock extends WaitClock {
  /** Lets time pass; those that slept until then are woken in order, and what they do is done before the next one wakes. */
  advance(milliseconds: number): Promise<void>;
  /** How many sleep now. */
  sleeping(): number;
}

interface Sleeper {
  readonly at: number;
  readonly wake: () => void;
}

export function createManualClock(start = 0): ManualClock {
  checkArgument("The first argument of createManualClock()", checks.number, start);
  const sleepers = new Set<Sleeper>();
  let time = start;
  return {
    now: () => time,
    sleeping: () => sleepers.size,
    sleep: (milliseconds, signal) =>
      new Promise((resolve, reject) => {
        if (signal.aborted) return reject(signal.reason);
        const leave = (): void => {
          sleepers.delete(sleeper);
          reject(signal.reason);
        };
        const sleeper: Sleeper = {
          at: time + milliseconds,
          wake() {
            sleepers.delete(sleeper);
            signal.removeEventListener("abort", leave);
            resolve();
          },
        };
        sleepers.add(sleeper);
        signal.addEventListener("abort", leave, { once: true });
      }),
    async advance(milliseconds) {
      const end = time + milliseconds;
      await settled();
      while (true) {
        const [first] = [...sleepers].filter(({ at }) => at <= end).sort((a, b) => a.at - b.at);
        if (first === undefined) break;
        time = Math.max(time, first.at);
        first.wake();
        await settled();
      }
      time = end;
      await settled();
    },
  };
}

/** Work that waits for nothing but other work of this process is done after a few rounds of the event loop. */
async function settled(): Promise<void> {
  for (let round = 0; round < 5; round += 1) await new Promise<void>((resolve) => setImmediate(resolve));
}
