// @io
/** Runs a piece of work after changes, never twice at a time, and not more than about a third of the time. */
export interface Refresher {
  /** Something has changed: the work runs soon, and once more if it runs already. */
  request(): void;
  close(): void;
}

/** Several writes of one step come together. */
const settleMs = 15;
/** Of the time that the work took, so that it takes at most a third of all time. */
const restShare = 2;

export function createRefresher(
  work: () => Promise<void>,
  onError: (error: unknown) => void,
  leastMs = settleMs,
): Refresher {
  let timer: NodeJS.Timeout | undefined;
  let isRunning = false;
  let isWanted = false;
  let isClosed = false;
  let restUntil = 0;

  async function run(): Promise<void> {
    timer = undefined;
    isRunning = true;
    isWanted = false;
    const start = performance.now();
    await work().catch(onError);
    const end = performance.now();
    restUntil = end + Math.max(leastMs, restShare * (end - start));
    isRunning = false;
    if (isWanted) plan();
  }

  function plan(): void {
    if (isClosed || timer !== undefined) return;
    // After a quiet time a change is looked at soon; of many that follow each other several are taken together.
    timer = setTimeout(() => void run(), Math.max(leastMs, restUntil - performance.now()));
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
