import { join } from "node:path";
import { sleep } from "@retinue/base/foundation/abortable.ts";
import { takeOwnerLock } from "@retinue/base/storage/owner-lock.ts";

const firstWaitMs = 20;
const maxWaitMs = 250;
const timeoutMs = 60_000;

/** Git cannot list worktrees while another process adds or removes one, so processes that do take turns in a repository. */
export async function runAlone<Result>(
  commonDirectory: string,
  signal: AbortSignal,
  action: () => Promise<Result>,
): Promise<Result> {
  const file = join(commonDirectory, "retinue-worktrees");
  let waitMs = firstWaitMs;
  for (let waited = 0; waited < timeoutMs; waited += waitMs) {
    const answer = takeOwnerLock(file);
    if (answer.type === "taken") {
      try {
        return await action();
      } finally {
        answer.lock.release();
      }
    }
    await sleep(waitMs, signal);
    waitMs = Math.min(waitMs * 1.2, maxWaitMs);
  }
  throw new Error(`another process holds ${file}.lock; if no such process is running, remove that file`);
}
