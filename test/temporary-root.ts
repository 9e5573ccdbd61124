import { spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const marker = "RETINUE_TEST_TEMPORARY_ROOT";

/**
 * A temporary directory for the whole run, removed with what was left in it. Its name is short: paths of sockets in it are limited.
 * ext4 passes over every inode that was deleted in the last minutes whenever it makes a file nearby, which takes longer than all
 * else where tests make and delete thousands. `+T` spreads the folders made here over the disk; other file systems need nothing.
 */
export default function setup(): void {
  if (process.platform !== "linux" || process.env[marker] !== undefined) return;
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "rt-")));
  // Like the one of the system: a database server, for instance, runs as another user.
  chmodSync(folder, 0o1777);
  spawnSync("chattr", ["+T", folder], { stdio: "ignore" });
  process.env[marker] = folder;
  process.env["TMPDIR"] = folder;
  // Not when the first project is torn down: others may still have a server in it.
  process.once("exit", () => rmSync(folder, { recursive: true, force: true, maxRetries: 3 }));
}
