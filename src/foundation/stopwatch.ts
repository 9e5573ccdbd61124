import { abortable } from "./abortable.ts";

/** Measures the time in which work continues: it is paused before the start, after the stop, and while it is held. */
export interface Stopwatch {
  /** Milliseconds it has run so far. */
  elapsed(): number;
  /** Counted: it runs until as many stops have come. */
  start(): void;
  stop(): void;
  /** Is still until the wait is over, such as one for a person. */
  hold<T>(wait: () => Promise<T>): Promise<T>;
  /** Resolves when it has run as long as the deadline says, which is asked for anew now and then. */
  reach(deadline: () => number, signal: AbortSignal): Promise<void>;
}

/** A deadline may change while it is waited for, so it is looked at again this often. */
const lookAgainMs = 30_000;

/** While it runs, the parent is started too: a parent of several runs whenever one of them does. */
export function createStopwatch(clock: WaitClock, parent?: Pick<Stopwatch, "start" | "stop">): Stopwatch {
  const sleepers = createSleepers();
  let starts = 0;
  let holds = 0;
  let ran = 0;
  let since: number | undefined;

  function settle(): void {
    const runs = starts > 0 && holds === 0;
    if (runs && since === undefined) {
      since = clock.now();
      parent?.start();
      sleepers.wakeAll();
    } else if (!runs && since !== undefined) {
      ran += clock.now() - since;
      since = undefined;
      parent?.stop();
    }
  }

  const elapsed = (): number => ran + (since === undefined ? 0 : clock.now() - since);

  return {
    elapsed,
    start() {
      starts += 1;
      settle();
    },
    stop() {
      starts = Math.max(0, starts - 1);
      settle();
    },
    async hold(wait) {
      holds += 1;
      settle();
      try {
        return await wait();
      } finally {
        holds -= 1;
        settle();
      }
    },
    async reach(deadline, signal) {
      while (true) {
        signal.throwIfAborted();
        const left = deadline() - elapsed();
        if (left <= 0) return;
        if (since === undefined) await sleepers.sleep(signal);
        else await clock.sleep(Math.min(left, lookAgainMs), signal);
      }
    },
  };
}

function createSleepers() {
  const wakers = new Set<() => void>();
  return {
    wakeAll(): void {
      for (const wake of wakers) wake();
      wakers.clear();
    },
    async sleep(signal: AbortSignal): Promise<void> {
      const woken = Promise.withResolvers<void>();
      wakers.add(woken.resolve);
      try {
        await abortable(woken.promise, signal);
      } finally {
        wakers.delete(woken.resolve);
      }
    },
  };
}

/** Time as those who wait need it; one source for all, so that tests can let hours pass immediately. */
export interface WaitClock {
  /** Milliseconds that only ever grow. */
  now(): number;
  /** Rejects with the signal's reason when it is aborted. */
  sleep(milliseconds: number, signal: AbortSignal): Promise<void>;
}
