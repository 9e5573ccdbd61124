// @io
import type { Stats } from "node:fs";
import { lstat, readdir, rm, rmdir } from "node:fs/promises";
import { join } from "node:path";
import { hasLiveOwner, type OwnerLock, takeOwnerLock } from "@retinue/base/storage/owner-lock.ts";
import { isSessionId } from "./session-files.ts";

export interface CleanupOptions {
  /** Holds one folder of transcripts per project. */
  readonly projects: string;
  readonly cleanupPeriodDays: number;
  /** Milliseconds since 1970. */
  readonly now: number;
  /** Dry run: reports what would be removed. */
  readonly dryRun?: boolean;
  /** The most sessions and leftovers that one call looks at. */
  readonly limit?: number;
  readonly signal?: AbortSignal;
}

export interface CleanupReport {
  /** Transcripts, or folders and files left behind by one, that were removed with everything that belongs to them. */
  readonly removed: readonly string[];
  /** Old enough, but written by a process that still runs. */
  readonly inUse: readonly string[];
  readonly failed: readonly { readonly path: string; readonly why: string }[];
  /** False when the limit or the signal ended the work early. */
  readonly isComplete: boolean;
}

/**
 * Removes sessions that were not written to for longer than the period. Looks only at names that sessions have, follows no
 * links, and takes the owner's lock first, so that a session that is resumed meanwhile stays.
 */
export async function cleanUpTranscripts(options: CleanupOptions): Promise<CleanupReport> {
  const { projects, now, cleanupPeriodDays, limit = 2000, signal } = options;
  const report = { removed: [] as string[], inUse: [] as string[], failed: [] as Failure[] };
  if (!Number.isFinite(cleanupPeriodDays) || cleanupPeriodDays < 0) return { ...report, isComplete: true };
  const before = now - cleanupPeriodDays * dayMs;
  let looked = 0;
  for (const project of await foldersIn(projects)) {
    const removedBefore = report.removed.length;
    for (const entry of groupEntries(await namesIn(project))) {
      if (looked >= limit || signal?.aborted === true) return { ...report, isComplete: false };
      looked += 1;
      await removeIfOld({ project, entry, before, dryRun: options.dryRun === true }, report);
    }
    if (report.removed.length > removedBefore && options.dryRun !== true)
      await rmdir(project).catch(() => undefined);
  }
  return { ...report, isComplete: true };
}

interface Failure {
  readonly path: string;
  readonly why: string;
}

interface Outcome {
  readonly removed: string[];
  readonly inUse: string[];
  readonly failed: Failure[];
}

/** Everything in a project's folder that belongs to one session, by its names. */
interface Entry {
  /** The file whose lock covers all of it. */
  readonly main: string;
  readonly folder?: string;
  readonly files: readonly string[];
}

const dayMs = 24 * 60 * 60 * 1000;

/** A session with its folder, a transcript of a child as old versions left it, or what a copy left that was cut off. */
function groupEntries(names: readonly string[]): readonly Entry[] {
  const present = new Set(names);
  const entries = new Map<string, Entry>();
  for (const name of names) {
    const base = name.replace(/\.jsonl(\.lock)?$/, "");
    const main = `${base}.jsonl`;
    if (isSessionId(base)) {
      const files = [main, `${main}.lock`].filter((file) => present.has(file));
      entries.set(base, { main, files, ...(present.has(base) ? { folder: base } : {}) });
    } else if (isLeftover(name)) entries.set(name, { main: name, files: [name] });
  }
  return [...entries.values()];
}

function isLeftover(name: string): boolean {
  const oldChild = /^agent-[A-Za-z0-9_-]{1,64}\.jsonl$/;
  const temporary = /^([0-9a-f-]{36})\.jsonl(\.lock)*\.[0-9a-f]{12}\.tmp$/i;
  return oldChild.test(name) || isSessionId(temporary.exec(name)?.[1] ?? "");
}

interface Candidate {
  readonly project: string;
  readonly entry: Entry;
  readonly before: number;
  readonly dryRun: boolean;
}

async function removeIfOld(candidate: Candidate, report: Outcome): Promise<void> {
  const { project, entry, before } = candidate;
  const named = entry.files.find((file) => file === entry.main) ?? entry.folder ?? entry.main;
  const path = join(project, named);
  try {
    // Most sessions are young, which their transcript alone shows.
    if ((await modifiedOf(join(project, entry.main), "file")) >= before) return;
    if (!((await newestOf(candidate)) < before)) return;
    const transcripts = [join(project, entry.main), ...(await childTranscripts(candidate))];
    const locks = candidate.dryRun ? unlessOwned(transcripts) : takeLocks(transcripts);
    if (locks === undefined) {
      report.inUse.push(path);
      return;
    }
    try {
      // The session may have been continued and closed again between the look and the lock.
      if (!((await newestOf(candidate)) < before)) return;
      if (!candidate.dryRun) await removeEntry(candidate);
      report.removed.push(path);
    } finally {
      for (const lock of locks) lock.release();
    }
  } catch (error) {
    report.failed.push({ path, why: error instanceof Error ? error.message : String(error) });
  }
}

/** Reporting what would be removed leaves no trace, so no lock is taken. */
function unlessOwned(files: readonly string[]): readonly OwnerLock[] | undefined {
  return files.some((file) => hasLiveOwner(file)) ? undefined : [];
}

/** All of the locks or none. */
function takeLocks(files: readonly string[]): readonly OwnerLock[] | undefined {
  const locks: OwnerLock[] = [];
  for (const file of files) {
    const answer = takeOwnerLock(file);
    if (answer.type === "taken") {
      locks.push(answer.lock);
      continue;
    }
    for (const lock of locks) lock.release();
    return undefined;
  }
  return locks;
}

/** When anything of the session was last written, locks aside; something that is no plain file or folder counts as new. */
async function newestOf({ project, entry }: Candidate): Promise<number> {
  const files = entry.files.filter((file) => !file.endsWith(".lock"));
  const own = await Promise.all(files.map((file) => modifiedOf(join(project, file), "file")));
  if (entry.folder === undefined) return Math.max(0, ...own);
  const folder = join(project, entry.folder);
  if ((await modifiedOf(folder, "folder")) === Number.POSITIVE_INFINITY) return Number.POSITIVE_INFINITY;
  const parts = await Promise.all(ownFolders.map((name) => filesBelow(join(folder, name))));
  const inner = await Promise.all(parts.flat().map((file) => modifiedOf(file, "file")));
  return Math.max(0, ...own, ...inner);
}

const ownFolders = ["subagents", "tool-results", "requests", "tasks", "control", "commands"];

async function modifiedOf(path: string, kind: "file" | "folder"): Promise<number> {
  const status = await lstat(path).catch(() => undefined);
  if (status === undefined) return 0;
  return isKind(status, kind) ? status.mtimeMs : Number.POSITIVE_INFINITY;
}

function isKind(status: Stats, kind: "file" | "folder"): boolean {
  return kind === "file" ? status.isFile() : status.isDirectory();
}

async function filesBelow(folder: string): Promise<readonly string[]> {
  const entries = await readdir(folder, { withFileTypes: true, recursive: true }).catch(() => []);
  return entries
    .filter((entry) => entry.isFile() && !entry.name.endsWith(".lock"))
    .map((entry) => join(entry.parentPath, entry.name));
}

async function childTranscripts({ project, entry }: Candidate): Promise<readonly string[]> {
  if (entry.folder === undefined) return [];
  const files = await filesBelow(join(project, entry.folder, "subagents"));
  return files.filter((file) => file.endsWith(".jsonl"));
}

/** What a person put into the session's folder stays, and the folder with it. */
async function removeEntry({ project, entry }: Candidate): Promise<void> {
  if (entry.folder !== undefined) {
    const folder = join(project, entry.folder);
    for (const name of ownFolders) await rm(join(folder, name), { recursive: true, force: true });
    await rm(join(folder, "archived.json"), { force: true });
    await rmdir(folder).catch(() => undefined);
  }
  for (const file of entry.files) if (!file.endsWith(".lock")) await rm(join(project, file), { force: true });
}

async function foldersIn(directory: string): Promise<readonly string[]> {
  const entries = await readdir(directory, { withFileTypes: true }).catch(() => []);
  return entries.filter((entry) => entry.isDirectory()).map((entry) => join(directory, entry.name));
}

async function namesIn(directory: string): Promise<readonly string[]> {
  return readdir(directory).catch(() => []);
}
