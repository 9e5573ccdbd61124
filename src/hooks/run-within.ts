export type TimedResult<T> =
  | { readonly type: "done"; readonly value: T }
  | { readonly type: "timed-out" }
  | { readonly type: "stopped" };

/** Gives work a signal that ends with the caller's or at the limit, and does not wait for work that ignores it. */
export async function runWithin<T>(
  limitMs: number,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<TimedResult<T>> {
  if (signal.aborted) return { type: "stopped" };
  const controller = new AbortController();
  const cut = Promise.withResolvers<TimedResult<T>>();
  const end = (type: "timed-out" | "stopped"): void => {
    // First the answer, so that the work's own reaction to the abort cannot come before it.
    cut.resolve({ type });
    controller.abort();
  };
  const onAbort = (): void => end("stopped");
  const timer = setTimeout(() => end("timed-out"), limitMs);
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    const done = Promise.resolve(work(controller.signal)).then((value) => ({ type: "done", value }) as const);
    // A loser that rejects later has nobody left to hear it.
    done.catch(() => undefined);
    return await Promise.race([cut.promise, done]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", onAbort);
  }
}
