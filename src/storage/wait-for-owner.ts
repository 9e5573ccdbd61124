import { sleep } from "../foundation/abortable.ts";
import { fileSystemNow, lookAtLock } from "./owner-lock.ts";
import type { ProcessIdentity } from "./process-identity.ts";

export interface WaitForOwnerOptions {
  readonly signal: AbortSignal;
  /** Hears once that there is something to wait for, and for how long at most. */
  readonly onWait?: (wait: { readonly by?: ProcessIdentity; readonly maxMs: number }) => void;
}

const lookEveryMs = 500;

/**
 * Waits while no one can see from here whether the owner of a file lives: until it gives a sign of life, or has lost its
 * lock. Returns immediately for a file that is free, or certainly held.
 */
export async function waitForOwner(file: string, { signal, onWait }: WaitForOwnerOptions): Promise<void> {
  let firstChange: number | undefined;
  while (true) {
    const look = lookAtLock(file, { now: () => fileSystemNow(`${file}.lock`) });
    if (look.type === "free" || look.expiresInMs === undefined || look.changedAt === undefined) return;
    if (firstChange === undefined) {
      firstChange = look.changedAt;
      onWait?.({ maxMs: look.expiresInMs, ...(look.by === undefined ? {} : { by: look.by }) });
    }
    if (look.changedAt !== firstChange) return;
    await sleep(Math.min(look.expiresInMs + 1, lookEveryMs), signal);
  }
}
