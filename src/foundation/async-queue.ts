/** Hands values from those who push to one who iterates. Pushing never waits; ending lets the reader drain what is left. */
export interface AsyncQueue<T> extends AsyncIterable<T> {
  push(value: T): void;
  end(): void;
}

export function createAsyncQueue<T>(): AsyncQueue<T> {
  const values: T[] = [];
  let ended = false;
  let wake: (() => void) | undefined;
  const notify = (): void => {
    wake?.();
    wake = undefined;
  };
  return {
    push(value) {
      if (ended) return;
      values.push(value);
      notify();
    },
    end() {
      ended = true;
      notify();
    },
    async *[Symbol.asyncIterator]() {
      while (true) {
        while (values.length > 0) yield values.shift() as T;
        if (ended) return;
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
  };
}
