// @io
import { lstat, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { isOnThisMachine, isRunning } from "../../storage/process-identity.ts";
import { markFile, parseMark, type WorktreeMark } from "./worktree-mark.ts";

/** A worktree that Retinue made, and where git keeps what it knows of it. */
export interface OwnWorktree {
  readonly mark: WorktreeMark;
  readonly administration: string;
  readonly commonDirectory: string;
}

/** Those of a repository that bear a whole mark; nothing is said of the others. */
export async function findOwnWorktrees(commonDirectory: string): Promise<readonly OwnWorktree[]> {
  const folder = join(commonDirectory, "worktrees");
  const names = await readdir(folder).catch(() => []);
  const found = await Promise.all(
    names.sort().map(async (name) => {
      const administration = join(folder, name);
      const mark = await readMark(administration);
      return mark === undefined ? [] : [{ mark, administration, commonDirectory }];
    }),
  );
  return found.flat();
}

export async function readMark(administration: string): Promise<WorktreeMark | undefined> {
  return parseMark(await readFile(join(administration, markFile), "utf8").catch(() => ""));
}

/** Why somebody may be at work in it, or undefined. */
export function whyInUse({ ended, owner }: WorktreeMark): string | undefined {
  if (ended !== undefined) return undefined;
  if (!isOnThisMachine(owner)) return "its agent was started on another machine and may still be running";
  return isRunning(owner) ? "the process that made it is still running" : undefined;
}

/** What shows a folder from another one in its place. */
export async function folderNumber(path: string): Promise<string | undefined> {
  const found = await lstat(path, { bigint: true }).catch(() => undefined);
  return found?.isDirectory() === true ? String(found.ino) : undefined;
}
