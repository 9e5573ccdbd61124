import { findOwnWorktrees, type OwnWorktree, whyInUse } from "./find-own-worktrees.ts";
import { findWorktreeRepository } from "./find-worktree-repository.ts";
import { createWorktreeGit, type WorktreeGit } from "./run-worktree-git.ts";
import { removeUnchanged } from "./run-worktree-removal.ts";
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
  for (const own of await findOwnWorktrees(answer.repository.commonDirectory)) {
    if (cleanup.signal.aborted) return { removed, kept, problem: "it was stopped" };
    const because = whyTooEarly(own.mark, cleanup) ?? (await removeOne(git, own, cleanup));
    const note = { path: own.mark.path, branch: own.mark.branch };
    if (because === undefined) removed.push({ ...note, because: "nothing was changed in it" });
    else kept.push({ ...note, because });
  }
  return { removed, kept };
}

function whyTooEarly(mark: WorktreeMark, { now, olderThanDays }: WorktreeCleanup): string | undefined {
  const inUse = whyInUse(mark);
  if (inUse !== undefined) return inUse;
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
