/**
 * Lets concurrent callers share one read. A caller never gets a read that began before it asked, so it always sees what
 * was written before: all that ask while one is under way share the one that follows it.
 */
export function shareReads<Value>(read: () => Promise<Value>): () => Promise<Value> {
  let running: Promise<Value> | undefined;
  let next: Promise<Value> | undefined;

  function start(): Promise<Value> {
    next = undefined;
    const current = read();
    running = current;
    const end = (): void => {
      if (running === current) running = undefined;
    };
    current.then(end, end);
    return current;
  }

  return () => {
    if (running === undefined) return start();
    next ??= running.then(start, start);
    return next;
  };
}
