// @io
import { fstatSync, lstatSync, readlinkSync, realpathSync } from "node:fs";

/**
 * Whether what a descriptor holds is at a real path, and was not reached by a link that was put there meanwhile, in its place or
 * above it. Linux reports what was opened; elsewhere the path is looked up again, which a link that comes and goes can outwit.
 */
export function isOpenedAt(descriptor: number, path: string): boolean {
  try {
    return readlinkSync(`/proc/self/fd/${descriptor}`) === path;
  } catch {
    try {
      const opened = fstatSync(descriptor, { bigint: true });
      const there = lstatSync(path, { bigint: true });
      return realpathSync.native(path) === path && opened.ino === there.ino && opened.dev === there.dev;
    } catch {
      return false;
    }
  }
}
