import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { type CleanupReport, cleanUpTranscripts } from "../journal/cleanup.ts";
import type { Paths } from "../settings/paths.ts";
import { findWorktreeRepository } from "./find-worktree-repository.ts";
import { cleanUpCommands, type EndedCommand } from "./run-command-cleanup.ts";
import { cleanUpLocks } from "./run-lock-cleanup.ts";
import { type CleanedWorktrees, cleanUpWorktrees } from "./run-worktree-cleanup.ts";
import { createWorktreeGit } from "./run-worktree-git.ts";
import { recoverWorktrees } from "./run-worktree-recovery.ts";
import { pendingFolder } from "./write-pending-worktree.ts";

export interface Cleanup {
  /** Holds one folder of transcripts per project. */
  readonly projects: string;
  readonly projectRoot: string;
  readonly agentMemory: Paths["agentMemory"];
  readonly olderThanDays: number;
  /** Milliseconds since 1970. */
  readonly now: number;
  /** Only tells what would go. */
  readonly dryRun: boolean;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
  /** Somebody asked for it now, rather than it being done beside other work. */
  readonly concurrency?: boolean;
  /** The most sessions that are looked at. */
  readonly limit?: number;
}

export interface Cleaned {
  /** Sessions, with the transcripts, output files and control files of their children. */
  readonly sessions: CleanupReport;
  readonly worktrees: CleanedWorktrees;
  /** Locks of memories that a killed process has left. */
  readonly locks: readonly string[];
  /** Commands that outlived the process which had started them, and were ended. */
  readonly commands: readonly EndedCommand[];
}

/** Removes what sessions and children have left behind and nobody has touched for longer than the period. */
export async function cleanUp(cleanup: Cleanup): Promise<Cleaned> {
  const { olderThanDays, ...rest } = cleanup;
  // First, because they are written down beside the sessions.
  const commands = await cleanUpCommands(cleanup);
  const sessions = await cleanUpTranscripts({ ...rest, cleanupPeriodDays: olderThanDays });
  const worktrees = (await mayHaveWorktrees(cleanup.projectRoot))
    ? await cleanUpWorktrees({ ...rest, olderThanDays, repository: cleanup.projectRoot })
    : { removed: [], kept: [] };
  const locks = await cleanUpLocks({ memories: Object.values(cleanup.agentMemory), dryRun: cleanup.dryRun });
  return { sessions, worktrees, locks, commands };
}

/** Before a session goes on: worktrees in whose making or removal a process died are removed. Never rejects. */
export async function recoverProjectWorktrees(
  project: Pick<Cleanup, "projectRoot" | "environment" | "signal">,
): Promise<void> {
  if (!(await mayHaveWorktrees(project.projectRoot))) return;
  const git = createWorktreeGit(project);
  try {
    const answer = await findWorktreeRepository(git, project.projectRoot);
    if (answer.type === "found") await recoverWorktrees(git, answer.repository.commonDirectory);
  } catch {
    // Whoever makes the next one, or cleans up, hears why.
  }
}

/** Most repositories have none, and finding that out should not start git. */
async function mayHaveWorktrees(projectRoot: string): Promise<boolean> {
  const data = join(projectRoot, ".git");
  const folders = [join(data, "worktrees"), pendingFolder(data)];
  const answers = await Promise.all(
    folders.map((folder) => readdir(folder).catch((error: unknown) => error)),
  );
  return answers.some((names) => {
    if (Array.isArray(names)) return names.length > 0;
    // In a linked worktree `.git` is a file, and git itself has to say where its data is.
    return names instanceof Error && "code" in names && names.code === "ENOTDIR";
  });
}
