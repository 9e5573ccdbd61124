import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { freemem, tmpdir } from "node:os";
import { join } from "node:path";

const marker = "RETINUE_TEST_TEMPORARY_ROOT";

/**
 * A temporary directory for the whole run, removed with what was left in it. Its name is short: paths of sockets in it are limited.
 * Where this user may mount one, it is a file system in memory: tests make and delete thousands of files, and wait for the disk.
 * On disk, ext4 passes over every inode that was deleted in the last minutes whenever it makes a file nearby. `+T` spreads the
 * folders made here over the disk; other file systems need nothing.
 */
export default function setup(): void {
  if (process.platform !== "linux" || process.env[marker] !== undefined) return;
  unmountStale();
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "rt-")));
  const isMounted = freemem() >= memoryNeeded && run("mount", "-t", "tmpfs", source(process.pid), folder);
  // Like the one of the system: a database server, for instance, runs as another user.
  chmodSync(folder, 0o1777);
  if (!isMounted) run("chattr", "+T", folder);
  process.env[marker] = folder;
  process.env["TMPDIR"] = folder;
  // Not when the first project is torn down: others may still have a server in it.
  process.once("exit", () => {
    if (isMounted) run("umount", "--lazy", folder);
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  });
}

/** Enough for the files of tests and for the programs they start. */
const memoryNeeded = 6 * 1024 ** 3;

/** What a file system in memory is listed as, so that one whose run was killed can be told from one in use. */
function source(pid: number): string {
  return `retinue-tests-${pid}`;
}

function unmountStale(): void {
  const lines = readFileSync("/proc/self/mounts", "utf8").split("\n");
  for (const line of lines) {
    const [, pid, folder = ""] = /^retinue-tests-(\d+) (\S+) tmpfs /.exec(line) ?? [];
    if (pid === undefined || existsSync(`/proc/${pid}`)) continue;
    run("umount", "--lazy", folder);
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Whether a program ended well. */
function run(program: string, ...words: readonly string[]): boolean {
  return spawnSync(program, words, { stdio: "ignore" }).status === 0;
}
