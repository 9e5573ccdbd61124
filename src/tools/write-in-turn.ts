// @io
import { createHash } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { RetinueError } from "../foundation/retinue-error.ts";
import { takeOwnerLock } from "../storage/owner-lock.ts";
import { findRealPath } from "./find-real-path.ts";
import { isInside } from "./resolve-workspace-path.ts";

/** Lets one process at a time change a file, where several are expected to. Keys are real paths. */
export type WriteInTurn = <T>(path: string, signal: AbortSignal, change: () => Promise<T>) => Promise<T>;

export interface WriteInTurnOptions {
  /** The files below these folders are changed in turn; all others immediately. */
  readonly roots: readonly string[];
  /** Called before each change in one of them. */
  readonly prepare?: (path: string) => Promise<void>;
  readonly patienceMs?: number;
}

/** The folder of locks in each root. Agents cannot have this name. */
export const locksFolder = ".locks";

export function createWriteInTurn({ roots, prepare, patienceMs = 15_000 }: WriteInTurnOptions): WriteInTurn {
  return async (path, signal, change) => {
    const root = await findRoot(path, roots);
    if (root === undefined) return change();
    await prepare?.(path);
    const lock = await waitForLock(await makeLockFile(root, path), { path, signal, patienceMs });
    try {
      return await change();
    } finally {
      lock.release();
    }
  };
}

async function findRoot(path: string, roots: readonly string[]): Promise<string | undefined> {
  for (const root of roots) {
    const real = await findRealPath(root);
    if (isInside(path, [real])) return real;
  }
  return undefined;
}

/** Beside what it locks, so that all who can write there meet, whatever their own configuration. */
async function makeLockFile(root: string, path: string): Promise<string> {
  const folder = join(root, locksFolder);
  await mkdir(folder, { recursive: true });
  if ((await findRealPath(folder)) !== folder)
    throw new RetinueError("locks-elsewhere", `${folder} is a link, so nothing in ${root} is changed.`);
  await writeFile(join(folder, ".gitignore"), "*\n", { flag: "wx" }).catch(unlessThere);
  return join(folder, createHash("sha256").update(relative(root, path)).digest("hex").slice(0, 32));
}

function unlessThere(error: unknown): void {
  if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
}

async function waitForLock(
  file: string,
  {
    path,
    signal,
    patienceMs,
  }: { readonly path: string; readonly signal: AbortSignal; readonly patienceMs: number },
) {
  for (let waited = 0, delay = 4; ; delay = Math.min(delay * 2, 64)) {
    signal.throwIfAborted();
    const answer = takeOwnerLock(file);
    if (answer.type === "taken") return answer.lock;
    if (waited >= patienceMs) {
      const by = answer.by === undefined ? "another process" : `the process ${answer.by.pid}`;
      throw new RetinueError("file-busy", `${path} is being changed by ${by}; try again later.`);
    }
    await pause(delay, undefined, { signal });
    waited += delay;
  }
}
