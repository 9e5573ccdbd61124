/** Numbered events in one order, for readers that are there and for later ones. */
export interface EventLog<Event extends NumberedEvent> {
  push(event: Event): void;
  /** Calls back with each event as it happens, or with those of some types; the returned function ends it. */
  listen(listener: (event: Event) => void, types?: ReadonlySet<Event["type"]>): () => void;
  /** From this number on, or as far back as is kept, and then what comes; ends with the log. */
  read(from?: number): AsyncIterableIterator<Event>;
  end(): void;
}

interface NumberedEvent {
  readonly seq: number;
  readonly type: string;
}

/** How many events are kept for readers that come later. */
const kept = 4096;

export function createEventLog<Event extends NumberedEvent>(): EventLog<Event> {
  const events: Event[] = [];
  const listeners = new Set<{
    readonly take: (event: Event) => void;
    readonly types: ReadonlySet<string> | undefined;
  }>();
  const readers = new Set<{ next: number }>();
  let wakeups: (() => void)[] = [];
  let lastSeq = 0;
  let isEnded = false;
  const wake = (): void => {
    const waiting = wakeups;
    wakeups = [];
    for (const each of waiting) each();
  };

  function trim(): void {
    if (events.length < 2 * kept) return;
    const slowest = Math.min(...[...readers].map(({ next }) => next), events[events.length - kept]?.seq ?? 0);
    const passed = events.findIndex(({ seq }) => seq >= slowest);
    if (passed > 0) events.splice(0, passed);
  }

  return {
    push(event) {
      if (isEnded) return;
      lastSeq = event.seq;
      events.push(event);
      trim();
      for (const { take, types } of listeners) if (types === undefined || types.has(event.type)) take(event);
      if (wakeups.length > 0) wake();
    },
    listen(take, types) {
      const listener = { take, types };
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    read(from = lastSeq + 1) {
      const reader = { next: from };
      readers.add(reader);
      // Not a generator: its `return` would wait for a pending `next`, which may wait for long.
      return {
        async next() {
          while (readers.has(reader)) {
            const [first] = events;
            const at = first === undefined ? 0 : Math.max(0, reader.next - first.seq);
            const event = events[at];
            if (event !== undefined) {
              reader.next = event.seq + 1;
              return { done: false, value: event };
            }
            if (isEnded) break;
            await new Promise<void>((resolve) => {
              wakeups.push(resolve);
            });
          }
          readers.delete(reader);
          return { done: true, value: undefined };
        },
        async return() {
          readers.delete(reader);
          wake();
          return { done: true, value: undefined };
        },
        [Symbol.asyncIterator]() {
          return this;
        },
      };
    },
    end() {
      isEnded = true;
      wake();
    },
  };
}
