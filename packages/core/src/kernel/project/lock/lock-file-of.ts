import { join } from "node:path";
import { lockName } from "@retinue/config/lock/lock-file.ts";
import { findRepositoryRoot, realFolder } from "@retinue/config/settings/trust-store.ts";

/** Where the lock of a folder is, whether there is one or not. */
export async function lockFileOf(cwd: string): Promise<string> {
  return join((await findRepositoryRoot(cwd)) ?? (await realFolder(cwd)), lockName);
}
