// @io
import { rmSync } from "node:fs";

/**
 * Removes a file or folder of ours, and says whether it is gone. Where the disk has become read-only or the folder was closed
 * to this user, what is left must not turn work that is done into a failure.
 */
export function removeIfPossible(path: string): boolean {
  try {
    rmSync(path, { force: true, recursive: true });
    return true;
  } catch {
    return false;
  }
}
