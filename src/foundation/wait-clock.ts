/** Time as those who wait need it; one source for all, so that tests can let hours pass immediately. */
export interface WaitClock {
  /** Milliseconds that only ever grow. */
  now(): number;
  /** Rejects with the signal's reason when it is aborted. */
  sleep(milliseconds: number, signal: AbortSignal): Promise<void>;
}
