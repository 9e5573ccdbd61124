// @io
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { lockName } from "@retinue/config/lock/lock-file.ts";
import { createPaths } from "@retinue/config/settings/paths.ts";
import { lockedKey } from "@retinue/config/settings/trust-store.ts";
import type { LockPlace } from "./gather-parts.ts";

/** Whether a folder may have a lock, or may have had one when it was trusted; quick, for those that never had. */
export function mayHaveLock({ cwd, home, env: environment, platform }: LockPlace): boolean {
  if (hasLockAbove(cwd)) return true;
  try {
    const { stateFile } = createPaths({ cwd, home, environment, platform });
    return readFileSync(stateFile, "utf8").includes(lockedKey);
  } catch {
    return false;
  }
}

function hasLockAbove(folder: string): boolean {
  if (existsSync(join(folder, lockName))) return true;
  const parent = dirname(folder);
  return parent !== folder && hasLockAbove(parent);
}
