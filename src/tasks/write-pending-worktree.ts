import { mkdirSync, readdirSync, readFileSync, rmdirSync, rmSync } from "node:fs";
import { basename, join } from "node:path";
import { createWholeFile, replaceWholeFile } from "../storage/create-whole-file.ts";
import { formatPending, type PendingWorktree, parsePending } from "./pending-worktree.ts";

/** Where a repository holds the worktrees that are being made or removed. */
export function pendingFolder(commonDirectory: string): string {
  return join(commonDirectory, "retinue-worktrees");
}

/** On the disk itself before anything is made: what is made must not outlive its record. */
export function writePending(commonDirectory: string, pending: PendingWorktree): void {
  const folder = pendingFolder(commonDirectory);
  mkdirSync(folder, { recursive: true });
  const file = pendingFile(commonDirectory, pending.path);
  const text = formatPending(pending);
  if (createWholeFile(file, text, { durable: true }) === "exists")
    replaceWholeFile(file, text, { durable: true });
}

/** It is in use now, or gone. */
export function removePending(commonDirectory: string, { path }: Pick<PendingWorktree, "path">): void {
  const folder = pendingFolder(commonDirectory);
  rmSync(pendingFile(commonDirectory, path), { force: true });
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
