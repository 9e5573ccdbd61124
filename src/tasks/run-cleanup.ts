import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { type CleanupReport, cleanUpTranscripts } from "../journal/cleanup.ts";
import type { Paths } from "../settings/paths.ts";
import { removeTemporaries } from "../storage/temporary-notes.ts";
import { cleanUpLocks } from "./run-lock-cleanup.ts";
import { type CleanedWorktrees, cleanUpWorktrees } from "./run-worktree-cleanup.ts";

export interface Cleanup {
  /** Holds one folder of transcripts per project. */
  readonly projects: string;
  readonly projectRoot: string;
  readonly agentMemory: Paths["agentMemory"];
  readonly temporaryNotes: string;
  readonly olderThanDays: number;
  /** Milliseconds since 1970. */
  readonly now: number;
  /** Only tells what would go. */
  readonly dryRun: boolean;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
  /** The most sessions that are looked at. */
  readonly limit?: number;
}

export interface Cleaned {
  /** Sessions, with the transcripts, output files and control files of their children. */
  readonly sessions: CleanupReport;
  readonly worktrees: CleanedWorktrees;
  /** Locks of memories that a killed process has left. */
  readonly locks: readonly string[];
  /** Files that were half written beside the user's own when their process died. */
  readonly temporaries: readonly string[];
}

/** Removes what sessions and children have left behind and nobody has touched for longer than the period. */
export async function cleanUp(cleanup: Cleanup): Promise<Cleaned> {
  const { olderThanDays, ...rest } = cleanup;
  const sessions = await cleanUpTranscripts({ ...rest, cleanupPeriodDays: olderThanDays });
  const worktrees = (await mayHaveWorktrees(cleanup.projectRoot))
    ? await cleanUpWorktrees({ ...rest, olderThanDays, repository: cleanup.projectRoot })
    : { removed: [], kept: [] };
  const locks = await cleanUpLocks({ memories: Object.values(cleanup.agentMemory), dryRun: cleanup.dryRun });
  const temporaries = removeTemporaries(cleanup.temporaryNotes, cleanup);
  return { sessions, worktrees, locks, temporaries };
}

/** Most repositories have none, and finding that out should not start git. */
async function mayHaveWorktrees(projectRoot: string): Promise<boolean> {
  // In a linked worktree `.git` is a file, and git itself has to say where its data is.
  const names = await readdir(join(projectRoot, ".git", "worktrees")).catch((error: unknown) => error);
  if (Array.isArray(names)) return names.length > 0;
  return names instanceof Error && "code" in names && names.code === "ENOTDIR";
}
