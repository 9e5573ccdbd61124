// @io
import { createHash } from "node:crypto";
import { closeSync, constants, lstatSync, openSync, readFileSync, type Stats } from "node:fs";
import { lstat, readdir, readFile, readlink, stat } from "node:fs/promises";
import { join, relative } from "node:path";
import { setImmediate } from "node:timers/promises";
import { valuesOf } from "@retinue/gate/git/ask-repository.ts";
import type { ChangedFile } from "../../conversation/receipt.ts";
import { findWorktreeRepository } from "../../tasks/worktree/find-worktree-repository.ts";
import { createWorktreeGit, type WorktreeGit } from "../../tasks/worktree/worktree-git.ts";
import { writeSnapshotTree } from "../../tasks/worktree/write-snapshot-commit.ts";

/** A working tree at one moment. */
export interface TreeView {
  readonly kind: "git" | "files";
  /** For people and receipts: a git tree, or a hash over the contents of the changed files. */
  readonly digest: string;
  /** Changes with anything in the tree that is looked at; equal marks mean that nothing was edited in between. */
  readonly mark: string;
  /** Without git: what is in the tree, by path from the folder. */
  readonly entries?: Entries;
  /** Without git: there are more files than are looked at. */
  readonly isCut?: boolean;
}

/** What a path is, with its content as far as that is compared. */
type Entries = ReadonlyMap<string, string>;

export interface TreeQuestion {
  readonly directory: string;
  /** Files that tools have changed, absolute. */
  readonly changed: readonly string[];
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly trusted: boolean;
  readonly signal: AbortSignal;
  /** `files` where an earlier look has found no git, so that it is not looked for again. */
  readonly kind?: TreeView["kind"] | undefined;
  /** What differs from it is changed, by any process. */
  readonly base?: TreeView | undefined;
}

/** Looks at a working tree without touching it: through an index of its own in git, by its files elsewhere. */
export async function lookAtTree(question: TreeQuestion): Promise<TreeView> {
  const tree = question.kind === "files" ? undefined : await gitTree(question);
  if (tree !== undefined) return { kind: "git", digest: tree.text, mark: `${tree.text} ${tree.unseen}` };
  const { directory, base } = question;
  const entries = await listTree(directory);
  const changed = base?.entries === undefined ? [] : changedEntries(base.entries, entries);
  const states = changed.map(({ path }) => `${path}\0${entries.get(path) ?? "absent"}\0`);
  // Over the contents of files that tools have changed, and over what is known of the others.
  const hash = createHash("sha256");
  for (const path of [...new Set(question.changed)].sort()) {
    const content = await readFile(path).catch(() => undefined);
    hash.update(`${relative(directory, path)}\0${content === undefined ? "absent" : content.length}\0`);
    if (content !== undefined) hash.update(content);
  }
  for (const state of states) hash.update(state);
  const digest = hash.digest("hex");
  const isCut = entries.size >= maxEntries;
  return { kind: "files", digest, mark: `${digest} ${markOf(entries)}`, entries, isCut };
}

/** The files that differ between two views of a tree, by their path from the folder. */
export async function changedBetween(
  { directory, environment, trusted, signal }: Omit<TreeQuestion, "changed" | "kind" | "base">,
  before: TreeView,
  after: TreeView,
): Promise<readonly ChangedFile[] | undefined> {
  if (before.entries !== undefined && after.entries !== undefined)
    return changedEntries(before.entries, after.entries);
  if (before.kind !== "git" || after.kind !== "git") return undefined;
  if (before.digest === after.digest) return [];
  const git = createWorktreeGit({ trusted, environment, signal });
  const words = ["diff-tree", "-r", "--relative", "--name-status", "-z", "--no-renames"];
  const answer = await git(directory, [...words, before.digest, after.digest]);
  if (answer.type === "failed") return undefined;
  // A letter and a path in turn.
  const fields = answer.text.split("\0");
  return fields.flatMap((path, at) => (at % 2 === 1 ? { path, isNew: fields[at - 1] === "A" } : []));
}

async function gitTree({
  directory,
  environment,
  trusted,
  signal,
}: TreeQuestion): Promise<{ readonly text: string; readonly unseen: string } | undefined> {
  const git = createWorktreeGit({ trusted, environment, signal });
  const found = await findWorktreeRepository(git, directory);
  if (found.type === "refused") return undefined;
  const tree = await writeSnapshotTree(git, found.repository).catch(() => undefined);
  if (tree?.type !== "done") return undefined;
  return { text: tree.text, unseen: await markOfUnseen(git, found.repository.top) };
}

/**
 * What no tree of git has and what may yet be edited: the files of repositories inside this one, those that git is configured not
 * to look at, and, where it is configured not to look at that, what may be executed.
 */
async function markOfUnseen(git: WorktreeGit, top: string): Promise<string> {
  const [listed, facts] = await Promise.all([
    git(top, ["ls-files", "-z", "-v", "-s", "--cached", "--others", "--exclude-standard"]),
    git.ask(top),
  ]);
  if (listed.type !== "done") return "";
  const lines = listed.text.split("\0");
  const entries = lines.map((line) => unseenEntry.exec(line)?.groups ?? {});
  const unseen = entries.flatMap(({ tag = "H", mode, path }) =>
    path !== undefined && (mode === submoduleMode || /[a-zS]/.test(tag)) ? [path] : [],
  );
  const untracked = lines.flatMap((line) => (line.startsWith("? ") ? [line.slice(2)] : []));
  const inner = untracked.filter((path) => path.endsWith("/"));
  const all = [...new Set([...unseen, ...inner])].map((path) => join(top, path)).sort();
  const marks = await Promise.all(all.map(async (path) => `${path} ${markOf(await listTree(path))}`));
  if (ignoresModes.test(valuesOf(facts, "core.filemode").at(-1) ?? "true")) {
    const files = [...entries.flatMap(({ path }) => path ?? []), ...untracked];
    marks.push(...(await Promise.all(files.map((path) => modeOf(join(top, path))))));
  }
  return marks.length === 0 ? "" : createHash("sha256").update(marks.join("\0")).digest("hex");
}

/** The ways in which git writes that something is off. */
const ignoresModes = /^(?:false|no|off|0*)$/i;

async function modeOf(path: string): Promise<string> {
  return `${path} ${(await lstat(path).catch(() => undefined))?.mode}`;
}

/** A line of `git ls-files -v -s` about a file that git tracks, where `? ` begins the others: a small letter is a file assumed to be unchanged, `S` one that is not in the working tree. */
const unseenEntry = /^(?<tag>\S) (?<mode>\d+) \S+ \d\t(?<path>[\s\S]+)$/;
const submoduleMode = "160000";

/** Of a folder without git. */
const maxEntries = 200_000;
/** Contents up to this size, and so many in all, are compared; of others size and time. */
const maxContent = 256 * 1024;
const maxContents = 64 * 1024 * 1024;
const skipped: ReadonlySet<string> = new Set([".git", "node_modules"]);

/** A file, or what is in a folder as far as it is no larger than what is looked at. */
async function listTree(top: string): Promise<Entries> {
  const entries = new Map<string, string>();
  const folders: string[] = [];
  let left = maxContents;
  let seen = 0;
  const addAll = async (paths: readonly string[]): Promise<void> => {
    seen += paths.length;
    const found = paths.map((path) => ({ path, status: statusNow(path) }));
    const reading = found.map(({ path, status }): Promise<string | undefined> | string | undefined => {
      if (status?.isDirectory() === true) folders.push(path);
      if (status?.isSymbolicLink() === true) return readlink(path).then(digestOf, () => undefined);
      // In this order, so that the same files are read every time.
      if (status?.isFile() !== true || status.size > maxContent || status.size > left) return undefined;
      left -= status.size;
      return status.size > smallFile ? readFile(path).then(digestOf, () => undefined) : digestNow(path);
    });
    const digests = await Promise.all(reading);
    for (const [at, { path, status }] of found.entries()) {
      if (status === undefined || !(status.isFile() || status.isSymbolicLink())) continue;
      const { mode, size, mtimeMs, ctimeMs } = status;
      // A time of change cannot be set back, as that of the content can.
      entries.set(relative(top, path), `${mode} ${size} ${digests[at] ?? `${mtimeMs} ${ctimeMs}`}`);
    }
  };
  // The folder itself may be reached by a link.
  const start = await stat(top).catch(() => undefined);
  if (start?.isDirectory() === true) folders.push(top);
  else await addAll([top]);
  for (let folder = folders.shift(); folder !== undefined && seen < maxEntries; folder = folders.shift()) {
    const all = await readdir(folder).catch(() => []);
    const names = all.filter((name) => !skipped.has(name)).sort();
    for (let at = 0; at < names.length && seen < maxEntries; at += concurrency) {
      await addAll(names.slice(at, at + concurrency).map((name) => join(folder, name)));
      // Everything else in this process continues in between.
      await setImmediate();
    }
  }
  return entries;
}

/** Files that are read at the same time. */
const concurrency = 64;
/** A file up to this size is read without the thread pool, which costs more than it. */
const smallFile = 16 * 1024;

function statusNow(path: string): Stats | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}

/** Opened so that one that has become a pipe meanwhile holds nothing up. */
function digestNow(path: string): string | undefined {
  let file: number | undefined;
  try {
    file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    return digestOf(readFileSync(file));
  } catch {
    return undefined;
  } finally {
    if (file !== undefined) closeSync(file);
  }
}

function digestOf(content: string | Buffer): string {
  return createHash("sha256").update(content).digest("base64");
}

function markOf(entries: Entries): string {
  const hash = createHash("sha256");
  for (const [path, state] of entries) hash.update(`${path}\0${state}\0`);
  return hash.digest("hex");
}

function changedEntries(before: Entries, after: Entries): readonly ChangedFile[] {
  const paths = new Set([...before.keys(), ...after.keys()]);
  return [...paths]
    .filter((path) => before.get(path) !== after.get(path))
    .sort()
    .map((path) => ({ path, isNew: !before.has(path) }));
}
