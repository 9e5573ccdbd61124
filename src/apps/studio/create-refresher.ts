/** Runs a piece of work after changes, never twice at a time, and not more than about half of the time. */
export interface Refresher {
  /** Something has changed: the work runs soon, and once more if it runs already. */
  request(): void;
  close(): void;
}

/** Several writes of one step come together. */
const settleMs = 15;

export function createRefresher(
  work: () => Promise<void>,
  onError: (error: unknown) => void,
  leastMs = settleMs,
): Refresher {
  let timer: NodeJS.Timeout | undefined;
  let isRunning = false;
  let isWanted = false;
  let isClosed = false;
  let restMs = leastMs;

  async function run(): Promise<void> {
    timer = undefined;
    isRunning = true;
    isWanted = false;
    const start = performance.now();
    await work().catch(onError);
    restMs = Math.max(leastMs, performance.now() - start);
    isRunning = false;
    if (isWanted) plan();
  }

  function plan(): void {
    if (isClosed || timer !== undefined) return;
    timer = setTimeout(() => void run(), restMs);
    timer.unref();
  }

  return {
    request() {
      isWanted = true;
      if (!isRunning) plan();
    },
    close() {
      isClosed = true;
      clearTimeout(timer);
    },
  };
}
