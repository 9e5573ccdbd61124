import { createAsyncQueue } from "../loop/call-tools.ts";

/** Notifies many listeners of what happens, live. A listener that comes late gets what follows. */
export interface Feed<T> {
  /** The listeners now; where there are none, nothing has to be published. */
  readonly listeners: { readonly size: number };
  publish(value: T): void;
  end(): void;
  /** Ends with the feed; leaving the loop early drops the subscription. */
  subscribe(): AsyncIterableIterator<T>;
  /** Calls back immediately, in order with what else the publisher does, until the returned function is called. */
  listen(listener: (value: T) => void): () => void;
}

export function createFeed<T>(): Feed<T> {
  const queues = new Set<Pick<ReturnType<typeof createAsyncQueue<T>>, "push" | "end">>();
  let ended = false;
  return {
    listeners: queues,
    publish(value) {
      for (const queue of queues) queue.push(value);
    },
    end() {
      ended = true;
      for (const queue of queues) queue.end();
    },
    listen(push) {
      const listener = { push, end: () => undefined };
      queues.add(listener);
      return () => void queues.delete(listener);
    },
    subscribe() {
      const queue = createAsyncQueue<T>();
      if (ended) queue.end();
      else queues.add(queue);
      const values = queue[Symbol.asyncIterator]();
      let isLeft = false;
      // Not a generator: its `finally` would not run for a listener that leaves before it has started.
      return {
        async next() {
          if (isLeft) return { done: true, value: undefined };
          const step = await values.next();
          if (step.done === true) queues.delete(queue);
          return step;
        },
        async return() {
          isLeft = true;
          queues.delete(queue);
          queue.end();
          return { done: true, value: undefined };
        },
        [Symbol.asyncIterator]() {
          return this;
        },
      };
    },
  };
}
