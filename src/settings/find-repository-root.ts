// @io
import { lstat, readFile, realpath } from "node:fs/promises";
import { dirname, isAbsolute, join, resolve } from "node:path";

/** The folder at or above this one that holds a `.git` directory or file. Starts no program. */
export async function findRepositoryRoot(folder: string): Promise<string | undefined> {
  let at = await realFolder(folder);
  while (!(await isRepositoryRoot(at))) {
    const parent = dirname(at);
    if (parent === at) return undefined;
    at = parent;
  }
  return at;
}

export async function isRepositoryRoot(folder: string): Promise<boolean> {
  const entry = await lstat(join(folder, ".git")).catch(() => undefined);
  return entry !== undefined;
}

/** The path with all links followed; as given (but absolute) when it does not exist. */
export async function realFolder(folder: string): Promise<string> {
  return realpath(folder).catch(() => resolve(folder));
}

/**
 * The main repository of a linked worktree, or undefined. Only where that repository names this worktree in turn: a
 * `.git` file alone can be written by anybody.
 */
export async function findWorktreeOwner(root: string): Promise<string | undefined> {
  const linkFile = join(root, ".git");
  const link = await readPointer(linkFile, "gitdir:");
  if (link === undefined) return undefined;
  const administration = await realFolder(isAbsolute(link) ? link : resolve(root, link));
  const back = await readPointer(join(administration, "gitdir"), "");
  if (back === undefined) return undefined;
  const named = isAbsolute(back) ? back : resolve(administration, back);
  if ((await realFolder(named)) !== (await realFolder(linkFile))) return undefined;
  const worktrees = dirname(administration);
  const repository = dirname(worktrees);
  const regular =
    worktrees === join(repository, "worktrees") && repository === join(dirname(repository), ".git");
  return regular ? dirname(repository) : undefined;
}

async function readPointer(file: string, sign: string): Promise<string | undefined> {
  const entry = await lstat(file).catch(() => undefined);
  if (entry === undefined || !entry.isFile() || entry.size > 8192) return undefined;
  const text = (await readFile(file, "utf8").catch(() => "")).trim();
  const path = text.startsWith(sign) ? text.slice(sign.length).trim() : "";
  return path === "" || path.includes("\n") || path.includes("\0") ? undefined : path;
}
