// @io
import { readFileSync, rmSync, writeFileSync } from "node:fs";

/** Where other processes see that a child waits for a place; the number orders those of one session. */
export function queueMarkFile(transcript: string): string {
  return transcript.replace(/\.jsonl$/, ".queued");
}

export interface QueueMark {
  enterQueue(): void;
  leaveQueue(): void;
}

/** The mark is for people who look; a disk that takes none does not keep the child from its place. */
export function openQueueMark(file: string, nextNumber: () => number): QueueMark {
  let isSet = false;
  return {
    enterQueue() {
      try {
        writeFileSync(file, `${nextNumber()}\n`, { mode: 0o600 });
        isSet = true;
      } catch {
        isSet = false;
      }
    },
    leaveQueue() {
      if (isSet) rmSync(file, { force: true });
      isSet = false;
    },
  };
}

/** The number of a child that waits; undefined for one that does not. */
export function loadQueueNumber(file: string): number | undefined {
  try {
    const number = Number(readFileSync(file, "utf8").trim());
    return Number.isSafeInteger(number) && number > 0 ? number : undefined;
  } catch {
    return undefined;
  }
}
