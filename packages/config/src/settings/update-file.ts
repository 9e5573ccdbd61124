// @io
import { randomBytes } from "node:crypto";
import { chmod, mkdir, open, readdir, readFile, realpath, rename, rm, rmdir, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";

export type FileUpdate =
  | { readonly type: "written" }
  | { readonly type: "unchanged" }
  | { readonly type: "refused"; readonly why: string };

/** What to write instead of the text that is there (undefined: no file yet), or why nothing may be written. */
export type FileChange = (
  text: string | undefined,
) => { readonly type: "write"; readonly text: string } | Exclude<FileUpdate, { readonly type: "written" }>;

export interface UpdateFileOptions {
  /** How long to wait for another writer. */
  readonly timeoutMs?: number | undefined;
  /** A lock older than this was left by a process that died. */
  readonly staleAfterMs?: number | undefined;
  /** Who may read the file from now on; as before when absent. */
  readonly mode?: number | undefined;
}

/**
 * Changes a text file so that no reader sees half of it and no writer's change is lost: one writer at a time holds
 * `<file>.lock`, and the new text replaces the old in one step. A link stays a link; its target is replaced.
 */
export async function updateFile(
  file: string,
  change: FileChange,
  options: UpdateFileOptions = {},
): Promise<FileUpdate> {
  const target = await realpath(file).catch(() => file);
  await mkdir(dirname(target), { recursive: true, mode: 0o700 });
  const lock = `${target}.lock`;
  if (
    !(await takeLock(lock, {
      timeoutMs: options.timeoutMs ?? 5000,
      staleAfterMs: options.staleAfterMs ?? 10_000,
    }))
  ) {
    return {
      type: "refused",
      why: `another program holds ${lock}; if no such program is running, remove that directory`,
    };
  }
  try {
    // What a writer left that died in the middle: the one that holds the lock is the only one to have drafts.
    const begin = `${basename(target)}.`;
    const names = await readdir(dirname(target)).catch(() => []);
    for (const name of names)
      if (name.startsWith(begin) && /^\d+\.[0-9a-f]{12}\.tmp$/.test(name.slice(begin.length)))
        await rm(join(dirname(target), name), { force: true }).catch(() => undefined);
    // Writers that know nothing of the lock are noticed by reading again just before the replacement.
    for (let attempt = 0; attempt < 5; attempt += 1) {
      const before = await readIfPresent(target);
      const wanted = change(before);
      if (wanted.type !== "write") return wanted;
      const temporary = `${target}.${process.pid}.${randomBytes(6).toString("hex")}.tmp`;
      try {
        const mode = options.mode ?? (await modeOf(target));
        await using handle = await open(temporary, "wx", mode);
        await handle.writeFile(wanted.text, "utf8");
        await handle.sync();
        await chmod(temporary, mode);
        if ((await readIfPresent(target)) === before) {
          await rename(temporary, target);
          return { type: "written" };
        }
      } finally {
        await rm(temporary, { force: true });
      }
    }
    return {
      type: "refused",
      why: `${target} was changed by another program each time it was about to be written`,
    };
  } finally {
    await rmdir(lock).catch(() => undefined);
  }
}

async function takeLock(
  lock: string,
  { timeoutMs, staleAfterMs }: { readonly timeoutMs: number; readonly staleAfterMs: number },
): Promise<boolean> {
  const end = Date.now() + timeoutMs;
  for (let pause = 5; ; pause = Math.min(pause * 2, 25)) {
    try {
      await mkdir(lock);
      return true;
    } catch (error) {
      if (!hasCode(error, "EEXIST")) throw error;
    }
    if (await isStale(lock, staleAfterMs)) await clearStaleLock(lock, staleAfterMs);
    else if (Date.now() >= end) return false;
    else await wait(pause);
  }
}

async function isStale(lock: string, staleAfterMs: number): Promise<boolean> {
  const status = await stat(lock).catch(() => undefined);
  return status !== undefined && Date.now() - status.mtimeMs > staleAfterMs;
}

/** Moved aside first, so that of two who see the same old lock only one removes it; a fresh one is put back. */
async function clearStaleLock(lock: string, staleAfterMs: number): Promise<void> {
  const aside = `${lock}.${process.pid}.${randomBytes(6).toString("hex")}`;
  const moved = await rename(lock, aside).then(
    () => true,
    () => false,
  );
  if (!moved) return;
  if (await isStale(aside, staleAfterMs)) await rm(aside, { recursive: true, force: true });
  else await rename(aside, lock).catch(() => rm(aside, { recursive: true, force: true }));
}

async function readIfPresent(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    if (hasCode(error, "ENOENT")) return undefined;
    throw error;
  }
}

/** The state of a person must not be readable to others. */
async function modeOf(file: string): Promise<number> {
  const status = await stat(file).catch(() => undefined);
  return status === undefined ? 0o600 : status.mode & 0o777;
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}
