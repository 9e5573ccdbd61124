// @io
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { removeTemporaries } from "@retinue/base/storage/create-temporary-notes.ts";
import { hasLiveOwner, takeOwnerLock } from "@retinue/base/storage/owner-lock.ts";
import type { Paths } from "@retinue/config/settings/paths.ts";
import { type CleanupReport, cleanUpTranscripts } from "../journal/clean-up-transcripts.ts";
import { isSessionId, sessionFiles } from "../journal/session-files.ts";
import { recoverCommands } from "../tools/command/recover-commands.ts";
import { locksFolder } from "../tools/file-ledger.ts";
import {
  findOwnWorktrees,
  type OwnWorktree,
  removeUnchanged,
  whyInUse,
} from "./worktree/find-own-worktrees.ts";
import { findWorktreeRepository } from "./worktree/find-worktree-repository.ts";
import { recoverWorktrees } from "./worktree/recover-worktrees.ts";
import { createWorktreeGit, type WorktreeGit } from "./worktree/worktree-git.ts";
import type { WorktreeMark } from "./worktree/worktree-mark.ts";
import { pendingFolder } from "./worktree/write-pending.ts";

export interface WorktreeCleanup {
  /** Any folder of the repository. */
  readonly repository: string;
  /** Milliseconds since 1970. */
  readonly now: number;
  readonly olderThanDays: number;
  /** A person asked for it: unchanged ones that a dead process left go whatever their age. */
  readonly requested?: boolean;
  /** Dry run: reports what would be removed. */
  readonly dryRun: boolean;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly trusted: boolean;
  readonly signal: AbortSignal;
}

interface CleanedWorktrees {
  readonly removed: readonly WorktreeNote[];
  readonly kept: readonly WorktreeNote[];
  /** Why nothing could be looked at. */
  readonly diagnostic?: string;
}

interface WorktreeNote {
  readonly path: string;
  readonly branch: string;
  readonly reason: string;
}

const dayMs = 24 * 60 * 60 * 1000;

/** Removes worktrees that Retinue made, that are unused and unchanged. Worktrees of others are not even listed. */
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
    else removed.push({ path, branch, reason: "its process ended while it was being created or removed" });
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
  { now, olderThanDays, requested }: WorktreeCleanup,
): string | undefined {
  const inUse = whyInUse(mark);
  if (inUse !== undefined) return inUse;
  if (requested === true && mark.ended === undefined) return undefined;
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

interface CommandCleanup {
  /** Holds one folder of transcripts per project. */
  readonly projects: string;
  /** Dry run: reports what would be ended. */
  readonly dryRun: boolean;
  readonly signal: AbortSignal;
}

/** A command that still ran although the process that had started it was gone. */
interface EndedCommand {
  readonly sessionId: string;
  readonly agentId: string;
  /** The number of its process group. */
  readonly group: number;
  readonly command: string;
}

/** Ends the commands of all sessions whose process is gone. */
async function cleanUpCommands({ projects, dryRun, signal }: CommandCleanup) {
  const ended: EndedCommand[] = [];
  for (const project of await namesIn(projects)) {
    for (const sessionId of (await namesIn(join(projects, project))).filter(isSessionId)) {
      if (signal.aborted) return ended;
      const { commands } = sessionFiles(join(projects, project), sessionId);
      const recovered = await recoverCommands({ folder: commands, dryRun });
      for (const { agentId, leader, command } of recovered.ended)
        ended.push({ sessionId, agentId, group: leader.pid, command });
    }
  }
  return ended;
}

async function namesIn(directory: string): Promise<readonly string[]> {
  return readdir(directory).catch(() => []);
}

export interface Cleanup {
  /** Holds one folder of transcripts per project. */
  readonly projects: string;
  readonly projectRoot: string;
  readonly agentMemory: Paths["agentMemory"];
  readonly temporaryNotes: string;
  readonly olderThanDays: number;
  /** Milliseconds since 1970. */
  readonly now: number;
  /** Dry run: reports what would be removed. */
  readonly dryRun: boolean;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Whether a person trusts the repository, so that its filters may run. */
  readonly trusted: boolean;
  readonly signal: AbortSignal;
  /** A person asked for it, rather than it being done beside other work. */
  readonly requested?: boolean;
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
  /** Files that were half written beside the user's own when their process died. */
  readonly temporaries: readonly string[];
}

/** Removes what sessions and children have left behind and that was not touched for longer than the period. */
export async function cleanUp(cleanup: Cleanup): Promise<Cleaned> {
  const { olderThanDays, ...rest } = cleanup;
  // First, because they are written down beside the sessions.
  const commands = await cleanUpCommands(cleanup);
  const sessions = await cleanUpTranscripts({ ...rest, cleanupPeriodDays: olderThanDays });
  const worktrees = (await mayHaveWorktrees(cleanup.projectRoot))
    ? await cleanUpWorktrees({ ...rest, olderThanDays, repository: cleanup.projectRoot })
    : { removed: [], kept: [] };
  // Removes the locks of memories whose process is gone, whatever their age: they are not held any more.
  const memories = Object.values(cleanup.agentMemory);
  const locks = [];
  for (const folder of memories.map((memory) => join(memory, locksFolder))) {
    const names = await readdir(folder).catch(() => []);
    for (const name of names.filter((one) => /^[0-9a-f]{32}\.lock$/.test(one)).sort()) {
      const file = join(folder, name);
      if (isGone(file.slice(0, -".lock".length), cleanup.dryRun)) locks.push(file);
    }
  }
  const temporaries = removeTemporaries(cleanup.temporaryNotes, cleanup);
  return { sessions, worktrees, locks, commands, temporaries };
}

/** Before a session continues: worktrees in whose making or removal a process died are removed. Never rejects. */
export async function recoverProjectWorktrees(
  project: Pick<Cleanup, "projectRoot" | "environment" | "trusted" | "signal">,
): Promise<void> {
  if (!(await mayHaveWorktrees(project.projectRoot))) return;
  const git = createWorktreeGit(project);
  try {
    const answer = await findWorktreeRepository(git, project.projectRoot);
    if (answer.type === "found") await recoverWorktrees(git, answer.repository.commonDirectory);
  } catch {
    // The next caller that makes one, or cleans up, is shown why.
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

/** Taking a lock whose owner is gone and giving it back leaves none; of several who do so, one gets it. */
function isGone(file: string, dryRun: boolean): boolean {
  try {
    if (hasLiveOwner(file)) return false;
    if (dryRun) return true;
    const answer = takeOwnerLock(file);
    if (answer.type === "held") return false;
    answer.lock.release();
    return true;
  } catch {
    // What cannot be read or written is left for the next time.
    return false;
  }
}
