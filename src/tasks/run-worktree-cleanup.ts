import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { isOnThisMachine, isRunning } from "../storage/process-identity.ts";
import { findWorktreeRepository } from "./find-worktree-repository.ts";
import { createWorktreeGit, type WorktreeGit } from "./run-worktree-git.ts";
import { type OwnWorktree, readMark, removeUnchanged } from "./run-worktree-removal.ts";
import type { WorktreeMark } from "./worktree-mark.ts";

export interface WorktreeCleanup {
  /** Any folder of the repository. */
  readonly repository: string;
  /** Milliseconds since 1970. */
  readonly now: number;
  readonly olderThanDays: number;
  /** Only tells what would be removed. */
  readonly dryRun: boolean;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
}

export interface CleanedWorktrees {
  readonly removed: readonly WorktreeNote[];
  readonly kept: readonly WorktreeNote[];
  /** Why nothing could be looked at. */
  readonly problem?: string;
}

export interface WorktreeNote {
  readonly path: string;
  readonly branch: string;
  readonly because: string;
}

const dayMs = 24 * 60 * 60 * 1000;

/** Removes worktrees that Retinue made, that nobody works in and nobody has changed. Worktrees of others are not even listed. */
export async function cleanUpWorktrees(cleanup: WorktreeCleanup): Promise<CleanedWorktrees> {
  const git = createWorktreeGit(cleanup);
  const answer = await findWorktreeRepository(git, cleanup.repository).catch((error: unknown) => {
    return { type: "refused" as const, because: String(error) };
  });
  if (answer.type === "refused") return { removed: [], kept: [], problem: answer.because };
  const removed: WorktreeNote[] = [];
  const kept: WorktreeNote[] = [];
  for (const own of await findOwn(answer.repository.commonDirectory)) {
    if (cleanup.signal.aborted) return { removed, kept, problem: "it was stopped" };
    const because = whyTooEarly(own.mark, cleanup) ?? (await removeOne(git, own, cleanup));
    const note = { path: own.mark.path, branch: own.mark.branch };
    if (because === undefined) removed.push({ ...note, because: "nothing was changed in it" });
    else kept.push({ ...note, because });
  }
  return { removed, kept };
}

async function findOwn(commonDirectory: string): Promise<readonly OwnWorktree[]> {
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

function whyTooEarly(mark: WorktreeMark, { now, olderThanDays }: WorktreeCleanup): string | undefined {
  if (mark.ended === undefined) {
    if (!isOnThisMachine(mark.owner))
      return "its agent was started on another machine and may still be running";
    if (isRunning(mark.owner)) return "the process that made it is still running";
  }
  const isOld = now - (mark.ended ?? mark.started) >= olderThanDays * dayMs;
  return isOld ? undefined : `it is younger than ${olderThanDays} days`;
}

async function removeOne(
  git: WorktreeGit,
  own: OwnWorktree,
  { dryRun }: WorktreeCleanup,
): Promise<string | undefined> {
  try {
    const removal = await removeUnchanged(git, own, { dryRun });
    return removal.type === "removed" ? undefined : removal.because;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
