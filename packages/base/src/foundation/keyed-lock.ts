import { abortable } from "./abortable.ts";

/** Lets one action at a time run for each key, in the order they asked. */
export interface KeyedLock {
  hold<T>(key: string, signal: AbortSignal, action: () => Promise<T>): Promise<T>;
}

export function createKeyedLock(): KeyedLock {
  const tails = new Map<string, Promise<void>>();
  return {
    async hold(key, signal, action) {
      const before = tails.get(key) ?? Promise.resolve();
      const mine = Promise.withResolvers<void>();
      // One who gives up waiting must not let the next in before those ahead are done.
      const tail = before.then(() => mine.promise);
      tails.set(key, tail);
      void tail.then(() => {
        if (tails.get(key) === tail) tails.delete(key);
      });
      try {
        await abortable(before, signal);
        return await action();
      } finally {
        mine.resolve();
      }
    },
  };
}
