/** Keeps everything that was pushed, so that each reader gets all of it from the start, however late it comes. */
export interface ReplayLog<T> extends AsyncIterable<T> {
  /** Gives back its place, for `forget`. */
  push(value: T): number;
  /** Lets go of what late readers can do without; readers that have not reached it yet still get it. */
  forget(places: readonly number[]): void;
  /** Ends every reader once it has read what is there; with an error, by throwing it. */
  end(failure?: { readonly error: unknown }): void;
}

export function createReplayLog<T extends object>(): ReplayLog<T> {
  const values: (T | undefined)[] = [];
  const readers = new Set<{ next: number }>();
  const waiting = new Set<() => void>();
  let ended: { readonly failure?: { readonly error: unknown } | undefined } | undefined;
  function wakeAll(): void {
    const wakes = [...waiting];
    waiting.clear();
    for (const wake of wakes) wake();
  }
  return {
    push(value) {
      if (ended !== undefined) return -1;
      values.push(value);
      wakeAll();
      return values.length - 1;
    },
    forget(places) {
      const passed = Math.min(values.length, ...[...readers].map(({ next }) => next));
      for (const place of places) if (place < passed) values[place] = undefined;
    },
    end(failure) {
      ended ??= { failure };
      wakeAll();
    },
    [Symbol.asyncIterator]() {
      const reader = { next: 0 };
      readers.add(reader);
      let isLeft = false;
      let leave: (() => void) | undefined;
      // Not a generator: its `return` would wait for a pending `next`, which may wait for long.
      return {
        async next() {
          while (true) {
            if (isLeft) return { done: true, value: undefined };
            if (reader.next < values.length) {
              const value = values[reader.next++];
              if (value === undefined) continue;
              return { done: false, value };
            }
            if (ended !== undefined) {
              isLeft = true;
              readers.delete(reader);
              if (ended.failure !== undefined) throw ended.failure.error;
              continue;
            }
            await new Promise<void>((resolve) => {
              leave = resolve;
              waiting.add(resolve);
            });
          }
        },
        async return() {
          isLeft = true;
          readers.delete(reader);
          if (leave !== undefined) waiting.delete(leave);
          leave?.();
          return { done: true, value: undefined };
        },
      };
    },
  };
}
