import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { hasLiveOwner, takeOwnerLock } from "../storage/owner-lock.ts";
import { locksFolder } from "../tools/write-in-turn.ts";

export interface LockCleanup {
  /** The folders in which agents keep their memories. */
  readonly memories: readonly string[];
  /** Only tells what would go. */
  readonly dryRun: boolean;
}

/** Removes the locks of memories whose process is gone, whatever their age: nobody holds them any more. */
export async function cleanUpLocks({ memories, dryRun }: LockCleanup): Promise<readonly string[]> {
  const removed: string[] = [];
  for (const folder of memories.map((memory) => join(memory, locksFolder))) {
    const names = await readdir(folder).catch(() => []);
    for (const name of names.filter((one) => /^[0-9a-f]{32}\.lock$/.test(one)).sort()) {
      const file = join(folder, name);
      if (isGone(file.slice(0, -".lock".length), dryRun)) removed.push(file);
    }
  }
  return removed;
}

/** Taking a lock whose owner is gone and giving it back leaves none; of several who do so, one gets it. */
function isGone(file: string, dryRun: boolean): boolean {
  try {
    if (hasLiveOwner(file)) return false;
    if (dryRun) return true;
    const answer = takeOwnerLock(file);
    if (answer.type === "held") return false;
    answer.lock.release();
    return true;
  } catch {
    // What cannot be read or written is left for the next time.
    return false;
  }
}
