/** Keeps everything that was pushed, so that each reader gets all of it from the start, however late it comes. */
export interface ReplayLog<T> extends AsyncIterable<T> {
  push(value: T): void;
  /** Ends every reader once it has read what is there; with an error, by throwing it. */
  end(failure?: { readonly error: unknown }): void;
}

export function createReplayLog<T>(): ReplayLog<T> {
  const values: T[] = [];
  const waiting = new Set<() => void>();
  let ended: { readonly failure?: { readonly error: unknown } | undefined } | undefined;
  function wakeAll(): void {
    const wakes = [...waiting];
    waiting.clear();
    for (const wake of wakes) wake();
  }
  return {
    push(value) {
      if (ended !== undefined) return;
      values.push(value);
      wakeAll();
    },
    end(failure) {
      ended ??= { failure };
      wakeAll();
    },
    [Symbol.asyncIterator]() {
      let next = 0;
      let isLeft = false;
      let leave: (() => void) | undefined;
      // Not a generator: its `return` would wait for a pending `next`, which may wait for long.
      return {
        async next() {
          while (true) {
            if (isLeft) return { done: true, value: undefined };
            if (next < values.length) return { done: false, value: values[next++] as T };
            if (ended !== undefined) {
              isLeft = true;
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
          if (leave !== undefined) waiting.delete(leave);
          leave?.();
          return { done: true, value: undefined };
        },
      };
    },
  };
}
