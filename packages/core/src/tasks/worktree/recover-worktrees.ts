// @io

import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { lstat, readdir, readFile, readlink, realpath, rm, rmdir, stat, writeFile } from "node:fs/promises";
import { basename, join, resolve } from "node:path";
import { sleep } from "@retinue/base/foundation/abortable.ts";
import { parseGitPointer } from "@retinue/base/foundation/parse-git-pointer.ts";
import { isOnThisMachine, isRunning } from "@retinue/base/storage/process-identity.ts";
import { runAlone } from "../run-alone.ts";
import type { PendingWorktree } from "./pending-worktree.ts";
import type { WorktreeGit } from "./worktree-git.ts";
import { contains } from "./worktree-plan.ts";
import { listPending, pendingFile, removePending, removeStaleTemporaries } from "./write-pending.ts";
import { makeIndexFolder, removeStaleIndexes } from "./write-snapshot-commit.ts";

export interface RecoveredWorktree {
  readonly path: string;
  readonly branch: string;
  /** Why it is still there; absent when it is gone. */
  readonly reason?: string;
}

/**
 * Removes worktrees in whose making or removal a process died: folder, branch and git's record of them, only those that were
 * written down here, and only where no work was done in them. Fixes what a killed git leaves that keeps git from continuing.
 */
export async function recoverWorktrees(
  git: WorktreeGit,
  commonDirectory: string,
  { dryRun = false }: { readonly dryRun?: boolean } = {},
): Promise<readonly RecoveredWorktree[]> {
  if (!dryRun) {
    await removeStaleIndexes(commonDirectory);
    removeStaleTemporaries(commonDirectory, Date.now());
  }
  const isDue =
    leftPending(commonDirectory).length > 0 || (await findEmptyPointers(commonDirectory)).length > 0;
  if (!isDue) return [];
  if (dryRun) return leftPending(commonDirectory).map(({ path, branch }) => ({ path, branch }));
  return runAlone(commonDirectory, git.signal, async () => {
    const recovered: RecoveredWorktree[] = [];
    for (const pending of leftPending(commonDirectory)) {
      const reason = await removeLeft(git, commonDirectory, pending);
      const { path, branch } = pending;
      recovered.push({ path, branch, reason });
    }
    await repairPointers(commonDirectory, git.signal);
    return recovered;
  });
}

/** Those whose process is gone. */
function leftPending(commonDirectory: string): readonly PendingWorktree[] {
  return listPending(commonDirectory).filter(({ owner }) => isOnThisMachine(owner) && !isRunning(owner));
}

/** Returns why it could not be removed. */
async function removeLeft(
  git: WorktreeGit,
  commonDirectory: string,
  pending: PendingWorktree,
): Promise<string | undefined> {
  const { path, branch, base } = pending;
  if (!(await isLeftAlone(pending, git.signal))) return "a process is still working in it";
  const administration = await findAdministration(commonDirectory, path);
  const found = await lstat(path).catch(() => undefined);
  if (found !== undefined) {
    if (!found.isDirectory() || (await realpath(path)) !== path)
      return "something else is in its place, so it was left alone";
    const why = await whyNotRemovable(git, commonDirectory, { pending, administration });
    if (why !== undefined) return why;
    await rm(path, { recursive: true, force: true });
  }
  if (administration !== undefined) await rm(administration, { recursive: true, force: true });
  await rmdir(join(commonDirectory, "worktrees")).catch(() => undefined);
  const reference = `refs/heads/${branch}`;
  // The branch is of this worktree alone, so no other process can hold its lock.
  await rm(join(commonDirectory, `${reference}.lock`), { force: true });
  // Git deletes the branch only while it still names the commit it began with.
  const words = [`--git-dir=${commonDirectory}`, "update-ref", "-d", reference, base];
  const answer = await git(commonDirectory, words, { isUnstoppable: true });
  if (answer.type === "failed" && (await hasBranch(git, commonDirectory, reference)))
    return `its branch could not be deleted (${answer.reason})`;
  removePending(commonDirectory, pending);
  return undefined;
}

async function hasBranch(git: WorktreeGit, commonDirectory: string, reference: string): Promise<boolean> {
  const words = [`--git-dir=${commonDirectory}`, "show-ref", "--verify", "--quiet", reference];
  return (await git(commonDirectory, words)).type === "done";
}

/** A git that was killed together with us is gone; one that was not continues to its end. */
const timeoutMs = 5_000;
const lookMs = 50;

async function isLeftAlone(pending: PendingWorktree, signal: AbortSignal): Promise<boolean> {
  for (let waited = 0; waited < timeoutMs; waited += lookMs) {
    if (findProcessesAt(pending).length === 0) return true;
    await sleep(lookMs, signal);
  }
  return findProcessesAt(pending).length === 0;
}

async function whyNotRemovable(
  git: WorktreeGit,
  commonDirectory: string,
  {
    pending,
    administration,
  }: { readonly pending: PendingWorktree; readonly administration: string | undefined },
): Promise<string | undefined> {
  const names = await readdir(pending.path);
  if (names.length === 0) return undefined;
  const link = await readText(join(pending.path, ".git"));
  const target = resolve(pending.path, parseGitPointer(link, "gitdir: ") ?? "");
  // Git makes its pointer and writes it in two steps, and deletes it somewhere among the files.
  if (link.trim() !== "" && target !== administration)
    return "something else is in its place, so it was left alone";
  return whyTouched(git, commonDirectory, pending);
}

/** What git keeps about the worktree at a path, also where it did not get to writing down the path. */
async function findAdministration(commonDirectory: string, path: string): Promise<string | undefined> {
  const folder = join(commonDirectory, "worktrees");
  const names = await readdir(folder).catch(() => []);
  for (const name of names) {
    const text = await readText(join(folder, name, "gitdir"));
    const link = parseGitPointer(text, "");
    const isNamed = text.trim() === "" && name.startsWith(basename(path));
    if (isNamed || (link !== undefined && resolve(folder, name, link) === join(path, ".git")))
      return join(folder, name);
  }
  return undefined;
}

/** Git makes this file and writes it in two steps; an empty one makes every later command about worktrees fail. */
async function findEmptyPointers(commonDirectory: string): Promise<readonly string[]> {
  const folder = join(commonDirectory, "worktrees");
  const names = await readdir(folder).catch(() => []);
  const sizes = await Promise.all(
    names.map(async (name) => {
      const file = join(folder, name, "commondir");
      const found = await stat(file).catch(() => undefined);
      return found?.isFile() === true && found.size === 0 ? [file] : [];
    }),
  );
  return sizes.flat();
}

/** A git that is at work fills the file within a moment. */
const writingMs = 1_000;

/** What git always writes there: the worktree's record is two folders below the repository's data. */
async function repairPointers(commonDirectory: string, signal: AbortSignal): Promise<void> {
  const [first] = await findEmptyPointers(commonDirectory);
  if (first === undefined) return;
  await sleep(writingMs, signal);
  for (const file of await findEmptyPointers(commonDirectory)) await writeFile(file, "../..\n");
}

async function readText(file: string): Promise<string> {
  return readFile(file, "utf8").catch(() => "");
}

/**
 * Other processes that are in the folder, or have it, what git keeps about it or its branch as a word of their command line.
 * Its name alone says nothing: a person may have given it, and it may be short. Where there is no /proc nothing can be found.
 */
function findProcessesAt({ path, branch }: PendingWorktree): readonly number[] {
  if (process.platform !== "linux") return [];
  const record = `/worktrees/${basename(path)}`;
  const isAtWork = (word: string): boolean =>
    word === path ||
    word.startsWith(`${path}/`) ||
    word === branch ||
    word === `refs/heads/${branch}` ||
    word.endsWith(record);
  return readdirSync("/proc")
    .filter((pid) => /^\d+$/.test(pid) && Number(pid) !== process.pid)
    .filter((pid) => isIn(pid, path) || commandOf(pid).split("\0").some(isAtWork))
    .map(Number);
}

function isIn(pid: string, folder: string): boolean {
  try {
    return contains(folder, readlinkSync(`/proc/${pid}/cwd`));
  } catch {
    return false;
  }
}

function commandOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8");
  } catch {
    return "";
  }
}

/**
 * Why a folder that was being filled or removed when its process died holds more than was put there: files may be missing or
 * broken off in the middle, but not be other ones. Of one that was being removed, everything that was there before may go: it had
 * been looked at then. Undefined when nothing in it is the work of a person or an agent.
 */
async function whyTouched(
  git: WorktreeGit,
  commonDirectory: string,
  pending: PendingWorktree,
): Promise<string | undefined> {
  const folder = await makeIndexFolder(commonDirectory);
  try {
    const variables = { GIT_INDEX_FILE: join(folder, "index") };
    const inIt = (words: readonly string[], input?: string) =>
      git(pending.path, [`--git-dir=${commonDirectory}`, `--work-tree=${pending.path}`, ...words], {
        variables,
        input,
      });
    const index = await inIt(["read-tree", pending.base]);
    if (index.type === "failed") return `its initial state could not be read (${index.reason})`;
    // A fresh index knows no file's times, so every file would count as changed. Fails where one really is.
    await inIt(["update-index", "-q", "--refresh"]);
    const changed = await inIt(["diff-files", "--name-only", "-z", "--diff-filter=MT"]);
    if (changed.type === "failed") return `its state could not be read (${changed.reason})`;
    if (changed.text !== "") {
      const whole = join(folder, "whole");
      const written = await inIt(["checkout-index", "-z", "--stdin", `--prefix=${whole}/`], changed.text);
      if (written.type === "failed") return `its initial state could not be read (${written.reason})`;
      for (const file of namesOf(changed.text))
        if (!(await isBeginning(join(pending.path, file), join(whole, file))))
          return `${file} in it was changed`;
    }
    const others = await inIt(["ls-files", "--others", "-z"]);
    if (others.type === "failed") return `its files could not be listed (${others.reason})`;
    const began = await stat(pendingFile(commonDirectory, pending.path));
    const isExpected = (file: string): Promise<boolean> =>
      pending.stage === "adding"
        ? isBroughtAlong(file, pending)
        : isOlder(join(pending.path, file), began.mtimeMs);
    for (const file of namesOf(others.text))
      if (!(await isExpected(file))) return `${file} in it was not created when the agent started`;
    return undefined;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function namesOf(text: string): readonly string[] {
  return text.split("\0").filter((name) => name !== "");
}

/** Whether a file is one that was being written when the kill came: as far as it goes, it is what the whole file begins with. */
async function isBeginning(file: string, wholeFile: string): Promise<boolean> {
  const found = await Promise.all([file, wholeFile].map((one) => lstat(one).catch(() => undefined)));
  if (!found.every((one) => one?.isFile() === true)) return false;
  const [part, whole] = await Promise.all(
    [file, wholeFile].map((one) => readFile(one).catch(() => undefined)),
  );
  return part !== undefined && whole?.subarray(0, part.length).equals(part) === true;
}

async function isOlder(file: string, than: number): Promise<boolean> {
  const found = await lstat(file).catch(() => undefined);
  return found === undefined || found.ctimeMs <= than;
}

/** Links and copies of files that git ignores, as they are made when a worktree is filled. */
async function isBroughtAlong(file: string, { path, top, links }: PendingWorktree): Promise<boolean> {
  const [own, source] = [join(path, file), join(top, file)];
  const found = await lstat(own).catch(() => undefined);
  if (found === undefined) return true;
  if (found.isSymbolicLink()) {
    const target = await readlink(own);
    return links.includes(file)
      ? target === source
      : (await lstat(source).catch(() => undefined))?.isSymbolicLink() === true;
  }
  return isBeginning(own, source);
}
