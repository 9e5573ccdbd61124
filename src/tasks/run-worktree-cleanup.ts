import { findOwnWorktrees, type OwnWorktree, whyInUse } from "./find-own-worktrees.ts";
import { findWorktreeRepository } from "./find-worktree-repository.ts";
import { createWorktreeGit, type WorktreeGit } from "./run-worktree-git.ts";
import { recoverWorktrees } from "./run-worktree-recovery.ts";
import { removeUnchanged } from "./run-worktree-removal.ts";
import type { WorktreeMark } from "./worktree-mark.ts";

export interface WorktreeCleanup {
  /** Any folder of the repository. */
  readonly repository: string;
  /** Milliseconds since 1970. */
  readonly now: number;
  readonly olderThanDays: number;
  /** Somebody asked for it now: unchanged ones that a dead process left go whatever their age. */
  readonly concurrency?: boolean;
  /** Only tells what would be removed. */
  readonly dryRun: boolean;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
}

export interface CleanedWorktrees {
  readonly removed: readonly WorktreeNote[];
  readonly kept: readonly WorktreeNote[];
  /** Why nothing could be looked at. */
  readonly diagnostic?: string;
}

export interface WorktreeNote {
  readonly path: string;
  readonly branch: string;
  readonly reason: string;
}

const dayMs = 24 * 60 * 60 * 1000;

/** Removes worktrees that Retinue made, that nobody works in and nobody has changed. Worktrees of others are not even listed. */
export async function cleanUpWorktrees(cleanup: WorktreeCleanup): Promise<CleanedWorktrees> {
  const git = createWorktreeGit(cleanup);
  const answer = await findWorktreeRepository(git, cleanup.repository).catch((error: unknown) => {
    return { type: "refused" as const, reason: String(error) };
  });
  if (answer.type === "refused") return { removed: [], kept: [], diagnostic: answer.reason };
  const removed: WorktreeNote[] = [];
  const kept: WorktreeNote[] = [];
  const { commonDirectory } = answer.repository;
  for (const { path, branch, reason } of await recoverWorktrees(git, commonDirectory, cleanup)) {
    if (reason !== undefined) kept.push({ path, branch, reason });
    else removed.push({ path, branch, reason: "its process ended while it was made or removed" });
  }
  const known = new Set([...removed, ...kept].map(({ path }) => path));
  for (const own of await findOwnWorktrees(commonDirectory)) {
    if (known.has(own.mark.path)) continue;
    if (cleanup.signal.aborted) return { removed, kept, diagnostic: "it was stopped" };
    const reason = whyTooEarly(own.mark, cleanup) ?? (await removeOne(git, own, cleanup));
    const note = { path: own.mark.path, branch: own.mark.branch };
    if (reason === undefined) removed.push({ ...note, reason: "nothing was changed in it" });
    else kept.push({ ...note, reason });
  }
  return { removed, kept };
}

function whyTooEarly(
  mark: WorktreeMark,
  { now, olderThanDays, concurrency }: WorktreeCleanup,
): string | undefined {
  const inUse = whyInUse(mark);
  if (inUse !== undefined) return inUse;
  if (concurrency === true && mark.ended === undefined) return undefined;
  const isOld = now - (mark.ended ?? mark.started) >= olderThanDays * dayMs;
  return isOld ? undefined : `it is younger than ${olderThanDays} days`;
}

async function removeOne(
  git: WorktreeGit,
  own: OwnWorktree,
  { dryRun }: WorktreeCleanup,
): Promise<string | undefined> {
  try {
    const removal = await removeUnchanged(git, own, { dryRun, unlessInUse: true });
    return removal.type === "removed" ? undefined : removal.reason;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
