import { sleep } from "../foundation/abort.ts";

/**
 * Runs the work when it is asked for, and once more after a pause where it was asked for meanwhile: one at a time, however
 * often somebody asks. The work must not reject.
 */
export function runSpaced(
  work: () => Promise<void>,
  { pauseMs, signal }: { readonly pauseMs: number; readonly signal: AbortSignal },
): () => void {
  let isWanted = false;
  let isRunning = false;
  async function run(): Promise<void> {
    isRunning = true;
    while (isWanted && !signal.aborted) {
      isWanted = false;
      await work();
      await sleep(pauseMs, signal).catch(() => undefined);
    }
    isRunning = false;
  }
  return () => {
    isWanted = true;
    if (!isRunning) void run();
  };
}
