// @io
import { mkdirSync, readdirSync, readFileSync, rmdirSync, rmSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import { replaceWholeFile } from "@retinue/base/storage/create-whole-file.ts";
import { hasLiveOwner, hasLockFile, takeOwnerLock } from "@retinue/base/storage/owner-lock.ts";
import { isOnThisMachine, isRunning, readIdentity } from "@retinue/base/storage/process-identity.ts";
import { formatPending, type PendingWorktree, parsePending } from "./pending-worktree.ts";

/** Where a repository holds the worktrees that are being made or removed. */
export function pendingFolder(commonDirectory: string): string {
  return join(commonDirectory, "retinue-worktrees");
}

/** On the disk itself before anything is made: what is made must not outlive its record. */
export function writePending(commonDirectory: string, pending: PendingWorktree): void {
  const folder = pendingFolder(commonDirectory);
  const file = pendingFile(commonDirectory, pending.path);
  for (let attempt = 1; ; attempt += 1) {
    try {
      mkdirSync(folder, { recursive: true });
      replaceWholeFile(file, formatPending(pending), { durable: true });
      return;
    } catch (error) {
      // The process that removes the last record removes the folder, perhaps right after it was made here.
      if (attempt === attempts) throw error;
    }
  }
}

const attempts = 5;

/** It is in use now, or gone. */
export function removePending(commonDirectory: string, { path }: Pick<PendingWorktree, "path">): void {
  const folder = pendingFolder(commonDirectory);
  rmSync(pendingFile(commonDirectory, path), { force: true });
  removeIfEmpty(folder);
}

function removeIfEmpty(folder: string): void {
  try {
    rmdirSync(folder);
  } catch {
    // Others are on their way.
  }
}

export function listPending(commonDirectory: string): readonly PendingWorktree[] {
  const folder = pendingFolder(commonDirectory);
  return namesIn(folder)
    .filter((name) => name.endsWith(".json"))
    .sort()
    .flatMap((name) => {
      const pending = parsePending(readText(join(folder, name)));
      return pending === undefined || basename(pending.path) !== name.slice(0, -".json".length)
        ? []
        : [pending];
    });
}

/** Removes files that processes which are gone were about to put in their place: records, and locks of the repository. */
export function removeStaleTemporaries(commonDirectory: string, now: number): void {
  const folder = pendingFolder(commonDirectory);
  const beside = namesIn(commonDirectory).filter((name) =>
    /^retinue-worktrees(\.lock)+\.\w+\.tmp$/.test(name),
  );
  const inside = namesIn(folder).filter((name) => name.endsWith(".tmp"));
  const files = [
    ...beside.map((name) => join(commonDirectory, name)),
    ...inside.map((name) => join(folder, name)),
  ];
  for (const file of files) if (isStale(file, now)) rmSync(file, { force: true });
  removeIfEmpty(folder);
  const guard = join(commonDirectory, "retinue-worktrees.lock");
  if (!hasLockFile(guard) || hasLiveOwner(guard)) return;
  const answer = takeOwnerLock(guard);
  if (answer.type === "taken") answer.lock.release();
}

/** One without a readable owner is one that is being written, for this long. */
const writingMs = 10_000;

function isStale(file: string, now: number): boolean {
  const text = readText(file);
  const owner = readIdentity(text) ?? parsePending(text)?.owner;
  if (owner !== undefined) return isOnThisMachine(owner) && !isRunning(owner);
  const found = statSync(file, { throwIfNoEntry: false });
  return found !== undefined && now - found.mtimeMs > writingMs;
}

export function pendingFile(commonDirectory: string, path: string): string {
  return join(pendingFolder(commonDirectory), `${basename(path)}.json`);
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function readText(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
