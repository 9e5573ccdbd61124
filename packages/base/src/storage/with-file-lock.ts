// @io
import { existsSync, mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { sleep } from "../foundation/abortable.ts";
import { RetinueError } from "../foundation/retinue-error.ts";
import { type OwnerLock, takeOwnerLock } from "./owner-lock.ts";

/** A lock without a readable owner, as other programs make them, counts as left behind after ten seconds. */
const timeoutMs = 20_000;
const maxPauseMs = 12;

/**
 * Runs an action while this process alone holds `<path>.lock`. The action must be synchronous and short: what it decides
 * and writes is one step for all processes. The lock of a process that died is taken over.
 */
export async function withFileLock<T>(path: string, action: (lock: OwnerLock) => T): Promise<T> {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const until = Date.now() + timeoutMs;
  for (let attempt = 1; ; attempt += 1) {
    // Mostly it is enough to see that the lock is still there; now and then its owner is looked at.
    const isTried = attempt % 8 === 1 || !existsSync(`${path}.lock`);
    const answer = isTried ? takeOwnerLock(path) : undefined;
    if (answer?.type === "taken") {
      try {
        return action(answer.lock);
      } finally {
        answer.lock.release();
      }
    }
    if (answer !== undefined && Date.now() > until) throw held(answer.lockFile, answer.by?.pid);
    // Uneven pauses, so that several who wait do not meet again and again.
    await sleep(Math.random() * Math.min(maxPauseMs, attempt * 2), never);
  }
}

const never = new AbortController().signal;

function held(file: string, pid: number | undefined): RetinueError {
  const owner = pid === undefined ? "another program" : `the process ${pid}`;
  return new RetinueError("file-locked", `${owner} has held ${file} for ${timeoutMs / 1000} s.`, {
    advice: "End that process, or remove the file if it no longer runs.",
  });
}
