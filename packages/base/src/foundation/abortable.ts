import { isRetinueError } from "./retinue-error.ts";

/** Resolves with the promise, or rejects with the signal's reason as soon as it is aborted; leaves no listener behind. */
export async function abortable<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted();
  let onAbort: (() => void) | undefined;
  const aborted = new Promise<never>((_resolve, reject) => {
    onAbort = () => reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    if (onAbort !== undefined) signal.removeEventListener("abort", onAbort);
    // If it loses, a later rejection must not count as unhandled.
    promise.catch(() => undefined);
  }
}

/** Waits, or rejects with the signal's reason; the timer is gone either way. */
export async function sleep(milliseconds: number, signal: AbortSignal): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const waited = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, milliseconds);
  });
  try {
    await abortable(waited, signal);
  } finally {
    clearTimeout(timer);
  }
}

/** Resolves with the promise; after an abort it gets a little time to end by itself, then the signal's reason is thrown. */
export async function settledSoon<T>(promise: Promise<T>, signal: AbortSignal, graceMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  let onAbort: (() => void) | undefined;
  const givenUp = new Promise<never>((_resolve, reject) => {
    onAbort = () => {
      timer = setTimeout(() => reject(signal.reason), graceMs);
    };
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
  });
  try {
    return await Promise.race([promise, givenUp]);
  } finally {
    if (onAbort !== undefined) signal.removeEventListener("abort", onAbort);
    clearTimeout(timer);
    promise.catch(() => undefined);
  }
}

/** Time as waiting code needs it; one source for all, so that tests can let hours pass immediately. */
export interface WaitClock {
  /** Milliseconds that only ever grow. */
  now(): number;
  /** Rejects with the signal's reason when it is aborted. */
  sleep(milliseconds: number, signal: AbortSignal): Promise<void>;
}

/** Why a signal was aborted, as one word. */
export function abortCode({ reason }: AbortSignal): string {
  return isRetinueError(reason) ? reason.code : "aborted";
}
