// @io
import { lstat, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { shellWord } from "@retinue/base/foundation/shell-word.ts";
import { whyInUse, whyNotOurs } from "../../tasks/worktree/find-own-worktrees.ts";
import {
  findWorktreeRepository,
  type WorktreeRepository,
} from "../../tasks/worktree/find-worktree-repository.ts";
import {
  type GitAnswer,
  type GitOptions,
  oneLine,
  type WorktreeGit,
} from "../../tasks/worktree/worktree-git.ts";
import { listPending } from "../../tasks/worktree/write-pending.ts";
import { writeSnapshotCommit } from "../../tasks/worktree/write-snapshot-commit.ts";
import { findBase, type KeptBranch } from "./find-kept-branches.ts";
import { findLoss } from "./find-loss.ts";

/** What a child has changed, all of it committed. */
export interface TakenChanges {
  readonly base: string;
  readonly tip: string;
  /** Both names of what was renamed. */
  readonly files: readonly string[];
}

export type Taking =
  | ({ readonly type: "taken" } & TakenChanges)
  | {
      readonly type: "left";
      readonly because: "submodule" | "unusable" | "not-ended";
      readonly reason: string;
    };

export interface MergeRepository {
  readonly git: WorktreeGit;
  readonly repository: WorktreeRepository;
}

/** Commits what is not committed in the child's worktree onto its branch, and says what it has changed since it began. */
export async function takeChanges(
  { git, repository }: MergeRepository,
  kept: KeptBranch,
  { dryRun }: { readonly dryRun: boolean },
): Promise<Taking> {
  const tip = await tipOf({ git, repository }, kept, dryRun);
  if (tip.type === "left") return tip;
  const base = await findBase({ git, repository }, kept);
  if (base === undefined) return unusable(`it is unknown which commit ${kept.branch} started from`);
  const { main } = repository;
  const raw = await git(main, [
    "diff-tree",
    "-r",
    "-z",
    "--no-renames",
    "--raw",
    "--full-index",
    base,
    tip.commit,
  ]);
  if (raw.type === "failed") return unusable(`its changes could not be read (${raw.reason})`);
  const entries = readRaw(raw.text);
  const submodule = entries.find(({ modes }) => modes.includes("160000"));
  if (submodule !== undefined)
    return {
      type: "left",
      because: "submodule",
      reason: `it changes the submodule ${submodule.path}, and submodules have to be merged by hand`,
    };
  return { type: "taken", base, tip: tip.commit, files: entries.map(({ path }) => path) };
}

function unusable(reason: string): Taking & { readonly type: "left" } {
  return { type: "left", because: "unusable", reason };
}

type Tip = { readonly type: "tip"; readonly commit: string } | (Taking & { readonly type: "left" });

async function tipOf(place: MergeRepository, kept: KeptBranch, dryRun: boolean): Promise<Tip> {
  const { git, repository } = place;
  const { branch, worktree } = kept;
  const reference = `refs/heads/${branch}`;
  const branchTip = oneLine(
    await git(repository.main, ["rev-parse", "--verify", "--quiet", `${reference}^{commit}`]),
  );
  if (branchTip === undefined || branchTip === "")
    return unusable(`the branch ${branch} does not point to a commit`);
  if (worktree === undefined) return { type: "tip", commit: branchTip };
  const { mark, administration } = worktree;
  const inUse = whyInUse(mark);
  if (inUse !== undefined) return { type: "left", because: "not-ended", reason: inUse };
  if (listPending(repository.commonDirectory).some(({ path }) => path === mark.path))
    return unusable(
      `its worktree ${mark.path} is being made or removed; \`retinue clean\` finishes what was interrupted`,
    );
  const strange = await whyNotOurs(worktree);
  if (strange !== undefined) return unusable(`its worktree cannot be used: ${strange.reason}`);
  const found = await findWorktreeRepository(git, mark.path);
  if (found.type === "refused") return unusable(`its worktree cannot be read: ${found.reason}`);
  const listed = await git(mark.path, ["ls-files", "-z", "-v", "-s"]);
  if (listed.type === "failed") return unusable(listed.reason);
  const entries = listed.text.split("\0");
  if (entries.some((entry) => unmergedEntry.test(entry)))
    return unusable(`a merge in its worktree ${mark.path} is not finished; finish or abort it there`);
  for (const state of ["rebase-merge", "rebase-apply", "BISECT_LOG"])
    if ((await stat(join(administration, state)).catch(() => undefined)) !== undefined)
      return unusable(
        `a rebase or bisect in its worktree ${mark.path} is not finished; finish or abort it there`,
      );
  const hidden = await hiddenEdit(git, mark.path, entries);
  if (hidden !== undefined)
    return unusable(
      `${hidden} in its worktree is edited, but git is configured to ignore changes to it; \`git -C ${shellWord(mark.path)} update-index --no-assume-unchanged --no-skip-worktree -- ${shellWord(hidden)}\` shows it to git`,
    );
  const { head } = found.repository;
  if (head !== branchTip && !(await isAncestor(place, branchTip, head)))
    return unusable(`its branch ${branch} and what is checked out in ${mark.path} have diverged`);
  const snapshot = await writeSnapshotCommit(git, found.repository, firstLine(kept.description));
  if (snapshot.type === "failed") return unusable(`its changes could not be committed (${snapshot.reason})`);
  const commit = oneLine(snapshot) ?? head;
  if (dryRun) return { type: "tip", commit };
  const act = (...words: string[]) => git(mark.path, words, { isUnstoppable: true });
  if (commit !== head) {
    const words = ["update-ref", "-m", "retinue merge: uncommitted changes", "HEAD", commit, head];
    const moved = await act(...words);
    if (moved.type === "failed") return unusable(`its changes could not be committed (${moved.reason})`);
  }
  // The files are what was committed, and the index follows, also where it did not come to that the last time.
  const isStaged =
    (await git(mark.path, ["diff-index", "--cached", "--quiet", commit, "--"])).type === "failed";
  if (isStaged) await act("reset", "--quiet");
  // What was checked out may be another branch; the child's own has everything from now on.
  if (commit !== branchTip) {
    const own = oneLine(await git(repository.main, ["rev-parse", "--verify", "--quiet", reference]));
    if (own !== commit) await git(repository.main, ["update-ref", reference, commit, branchTip], unstoppable);
  }
  return { type: "tip", commit };
}

/** Of `git ls-files -v -s`, one that has a side of a merge. */
const unmergedEntry = /^\S \d+ [0-9a-f]+ [123]\t/;

/** A file that no commit would have, because git was configured to take it for unchanged, and that is not as it was. */
async function hiddenEdit(
  git: WorktreeGit,
  top: string,
  entries: readonly string[],
): Promise<string | undefined> {
  for (const entry of entries) {
    const [, blob = "", path = ""] = /^[a-zS] \d+ ([0-9a-f]+) \d\t(.+)$/s.exec(entry) ?? [];
    if (path === "" || (await lstat(join(top, path)).catch(() => undefined)) === undefined) continue;
    const now = oneLine(await git(top, ["hash-object", "--no-filters", "--", path]));
    if (now !== blob) return path;
  }
  return undefined;
}

const unstoppable: GitOptions = { isUnstoppable: true };

export interface RawEntry {
  readonly modes: readonly string[];
  readonly path: string;
  /** Mode and content, so that equal texts mean equal changes. */
  readonly after: string;
}

/** The output of `diff-tree --raw -z --no-renames`. */
function readRaw(text: string): readonly RawEntry[] {
  const fields = text.split("\0");
  return fields.flatMap((field, at): RawEntry[] => {
    const facts = /^:(\d{6}) (\d{6}) [0-9a-f]+ ([0-9a-f]+) [A-Z]\d*$/.exec(field);
    const path = fields[at + 1];
    if (facts === null || path === undefined || path === "") return [];
    const [, before = "", after = "", content = ""] = facts;
    return [{ modes: [before, after], path, after: `${after} ${content}` }];
  });
}

export async function isAncestor(
  { git, repository }: MergeRepository,
  older: string,
  newer: string,
): Promise<boolean> {
  return (await git(repository.main, ["merge-base", "--is-ancestor", older, newer])).type === "done";
}

export async function isCommit({ git, repository }: MergeRepository, commit: string): Promise<boolean> {
  return (await git(repository.main, ["cat-file", "-e", `${commit}^{commit}`])).type === "done";
}

/** The commit of a branch; undefined where there is none. */
export async function commitOf(
  { git, repository }: MergeRepository,
  branch: string,
): Promise<string | undefined> {
  const found = oneLine(
    await git(repository.main, ["rev-parse", "--verify", "--quiet", `refs/heads/${branch}^{commit}`]),
  );
  return found === "" ? undefined : found;
}

/** The working trees that have a branch checked out. */
export async function checkedOutIn(
  { git, repository }: MergeRepository,
  branch: string,
): Promise<readonly string[]> {
  const list = await git(repository.main, ["worktree", "list", "--porcelain", "-z"]);
  if (list.type === "failed") throw new Error(list.reason);
  return list.text
    .split("\0\0")
    .map((entry) => entry.split("\0"))
    .filter((lines) => lines.includes(`branch refs/heads/${branch}`))
    .map(([first = ""]) => first.slice("worktree ".length));
}

/** Moves a branch of ours from one commit to another, and only from that one. */
export async function moveBranch(
  { git, repository }: MergeRepository,
  branch: string,
  { from, to }: { readonly from: string; readonly to: string },
): Promise<void> {
  const words = ["update-ref", "-m", "retinue merge", `refs/heads/${branch}`, to, from];
  const moved = await git(repository.main, words, unstoppable);
  if (moved.type === "failed") throw new Error(`${branch} could not be moved (${moved.reason})`);
}

/** A working tree for trying changes out; what is in it is thrown away again and again. */
export interface Scratch {
  readonly path: string;
  readonly git: WorktreeGit;
}

/** Brings a scratch tree to a commit exactly, apart from what git ignores. */
export async function resetScratch({ git, path }: Scratch, commit: string): Promise<void> {
  must(await git(path, ["reset", "--hard", "--quiet", commit]));
  must(await git(path, ["clean", "-ffdq"]));
}

function must(answer: GitAnswer): string {
  if (answer.type === "failed") throw new Error(answer.reason);
  return oneLine(answer) ?? "";
}

/** A range of commits whose changes are put on top of another one, as one. */
export interface ChangeRange {
  readonly base: string;
  readonly tip: string;
}

export type PickOutcome =
  | { readonly type: "picked"; readonly tree: string }
  | {
      readonly type: "conflict";
      readonly files: readonly ConflictedFile[];
      /** What git has put together of the other files. */
      readonly settled: readonly RawEntry[];
    }
  | { readonly type: "failed"; readonly reason: string };

export interface ConflictedFile {
  readonly path: string;
  readonly kind:
    | "both changed it"
    | "both added it"
    | "deleted here, changed by the agent"
    | "changed here, deleted by the agent"
    | "renamed differently";
  /** The text with conflict markers, where it has some, so that it is resolved by editing. */
  readonly marked?: string;
  /** Its contents: what both began with, what is there now, and what the agent has; absent where there is none. */
  readonly sides: { readonly base?: string; readonly here?: string; readonly theirs?: string };
}

/** Puts all changes of a range on top of what is checked out in the scratch tree. */
export async function pickRange({ git, path }: Scratch, { base, tip }: ChangeRange): Promise<PickOutcome> {
  const squashed = await git(path, ["commit-tree", "--no-gpg-sign", "-p", base, "-F", "-", `${tip}^{tree}`], {
    input: "changes\n",
    variables: ourIdentity,
  });
  if (squashed.type === "failed") return squashed;
  const settings = "merge.conflictStyle=diff3 rerere.enabled=false merge.renames=true".split(" ");
  const words = [
    ...settings.flatMap((setting) => ["-c", setting]),
    "cherry-pick",
    "--no-commit",
    oneLine(squashed) ?? "",
  ];
  const picked = await git(path, words);
  if (picked.type === "done") return { type: "picked", tree: must(await git(path, ["write-tree"])) };
  const files = await conflictedFiles({ git, path });
  if (files.length === 0) return { type: "failed", reason: picked.reason };
  const listing = ["diff-index", "--cached", "--no-renames", "--raw", "--full-index", "-z", "HEAD"];
  const inConflict = new Set(files.map((file) => file.path));
  const settled = readRaw(must(await git(path, listing))).filter((entry) => !inConflict.has(entry.path));
  return { type: "conflict", files, settled };
}

const sideNames = { "1": "base", "2": "here", "3": "theirs" } as const;

async function conflictedFiles({ git, path }: Scratch): Promise<readonly ConflictedFile[]> {
  const listed = must(await git(path, ["ls-files", "--unmerged", "-z"]));
  const found = new Map<string, Map<keyof typeof sideNames, string>>();
  for (const entry of listed.split("\0")) {
    const [, blob = "", stage = "", file = ""] = /^\d+ ([0-9a-f]+) ([123])\t(.+)$/s.exec(entry) ?? [];
    if (file === "") continue;
    const stages = found.get(file) ?? new Map<keyof typeof sideNames, string>();
    // One of the three numbers, as the pattern says.
    found.set(file, stages.set(stage as keyof typeof sideNames, blob));
  }
  return Promise.all(
    [...found].map(async ([file, stages]): Promise<ConflictedFile> => {
      const sides = Object.fromEntries([...stages].map(([stage, blob]) => [sideNames[stage], blob]));
      const kind = kindOf([...stages.keys()].sort().join(""));
      const marked = await readMarked(join(path, file));
      return { path: file, kind, sides, ...(marked === undefined ? {} : { marked }) };
    }),
  );
}

function kindOf(stages: string): ConflictedFile["kind"] {
  if (stages === "123") return "both changed it";
  if (stages === "23") return "both added it";
  if (stages === "12") return "changed here, deleted by the agent";
  if (stages === "13") return "deleted here, changed by the agent";
  return "renamed differently";
}

/** Seven, or as many as `conflict-marker-size` of the attributes says. */
const markers = /^(?:<{7,}|>{7,})(?: |$)/m;

async function isLink(file: string): Promise<boolean> {
  return (await lstat(file).catch(() => undefined))?.isSymbolicLink() === true;
}

/** A text with conflict markers. */
async function readMarked(file: string): Promise<string | undefined> {
  const content = await readFile(file, "utf8").catch(() => "");
  return !content.includes("\0") && markers.test(content) ? content : undefined;
}

export interface OpenConflict {
  /** The commit in the scratch tree. */
  readonly onto: string;
  /** What the changes began with. */
  readonly base: string;
  readonly files: readonly ConflictedFile[];
  readonly settled: readonly RawEntry[];
  /** Other files that may be changed. */
  readonly may: readonly string[];
}

/**
 * The tree that resolves a conflict, or why it does not: what was in conflict is decided, nothing that a side has done is lost, and
 * no other file was changed.
 */
export async function readResolution(
  { git, path }: Scratch,
  { onto, base, files, settled, may }: OpenConflict,
): Promise<
  | { readonly type: "resolved"; readonly tree: string }
  | { readonly type: "unresolved"; readonly reason: string }
> {
  const unresolved = (reason: string) => ({ type: "unresolved", reason }) as const;
  const head = oneLine(await git(path, ["rev-parse", "HEAD"]));
  if (head !== onto) return unresolved("it made commits of its own");
  const open = new Set((await conflictedFiles({ git, path })).map((file) => file.path));
  for (const file of files) {
    if ((await readMarked(join(path, file.path))) !== undefined)
      return unresolved(`${file.path} still has conflict markers`);
    if (file.marked !== undefined && (await isLink(join(path, file.path))))
      return unresolved(`${file.path} was a text and is a link`);
    // What has no markers is decided by staging or removing it.
    if (open.has(file.path) && file.marked === undefined)
      return unresolved(`${file.path} (${file.kind}) was neither staged nor removed`);
  }
  must(await git(path, ["add", "--all", "--", ":/"]));
  const tree = must(await git(path, ["write-tree"]));
  const words = ["diff-tree", "-r", "-z", "--no-renames", "--raw", "--full-index", onto, tree];
  const changed = new Map(readRaw(must(await git(path, words))).map((entry) => [entry.path, entry]));
  const allowed = new Set([...may, ...[...files, ...settled].map((file) => file.path)]);
  const strange = [...changed.keys()].find((name) => !allowed.has(name));
  if (strange !== undefined) return unresolved(`it changed ${strange}, which neither side has touched`);
  if (changed.size === 0 && files.some((file) => file.marked === undefined))
    return unresolved("it contains none of the agent's changes");
  const blobs = new Map<string, Promise<string>>();
  const read = (name: string): Promise<string> => {
    const known = blobs.get(name) ?? readBlob({ git, path }, name);
    blobs.set(name, known);
    return known;
  };
  for (const file of files) {
    // What is not changed is as it is in the tree that the changes are put on.
    const [, now = file.sides.here] = changed.get(file.path)?.after.split(" ") ?? [];
    const kept = now === undefined || /^0+$/.test(now) ? undefined : now;
    if (await isOneSided(file, kept, read))
      return unresolved(`it keeps only one side's version of ${file.path}`);
    if (file.marked === undefined) continue;
    const result = kept === undefined ? "" : await read(kept);
    const before = file.sides.base === undefined ? "" : await read(file.sides.base);
    const loss = findLoss({ merged: file.marked, result, base: before });
    if (loss !== undefined) return unresolved(`in ${file.path} it ${loss}`);
  }
  for (const entry of settled) {
    const loss = await lossOfSettled(entry, changed.get(entry.path), {
      read,
      base: `${base}:${entry.path}`,
    });
    if (loss !== undefined) return unresolved(`in ${entry.path}, which does not conflict, it ${loss}`);
  }
  return { type: "resolved", tree };
}

async function readBlob({ git, path }: Scratch, name: string): Promise<string> {
  const answer = await git(path, ["cat-file", "blob", name]);
  return answer.type === "done" ? answer.text : "";
}

/** What is lost of a file that git has put together by itself. */
async function lossOfSettled(
  merged: RawEntry,
  result: RawEntry | undefined,
  { read, base }: { readonly read: (name: string) => Promise<string>; readonly base: string },
): Promise<string | undefined> {
  if (merged.after === result?.after) return undefined;
  if (result === undefined) return "reverts what one side has done";
  const [[mode = "", blob = ""], [newMode = "", newBlob = ""]] = [
    merged.after.split(" "),
    result.after.split(" "),
  ];
  if (mode !== newMode) return "changes what kind of file it is, or whether it is there";
  const [before, now] = [await read(blob), await read(newBlob)];
  if (before.includes("\0")) return "replaces a binary file";
  return findLoss({ merged: before, result: now, base: await read(base) });
}

/**
 * Whether a text has nothing of what a side has added: where it has all that the other one has added, and where it has nothing of
 * either. That is a choice, and loses something.
 */
async function isOneSided(
  { marked, sides: { base, here, theirs } }: ConflictedFile,
  result: string | undefined,
  read: (blob: string) => Promise<string>,
): Promise<boolean> {
  if (marked === undefined || here === undefined || theirs === undefined) return false;
  const linesOf = async (blob: string | undefined): Promise<ReadonlySet<string>> =>
    new Set(blob === undefined ? [] : (await read(blob)).split("\n").map((line) => line.trim()));
  const [before, kept, ...both] = await Promise.all([base, result, here, theirs].map(linesOf));
  if (before === undefined || kept === undefined) return false;
  const added = both.map((lines) => [...lines].filter((line) => line !== "" && !before.has(line)));
  const lost = added.map((lines) => lines.filter((line) => !kept.has(line)));
  const isNew = [...kept].some((line) => line !== "" && !before.has(line));
  const [ours, others] = [isGone(added[0], lost[0]), isGone(added[1], lost[1])];
  if (ours && others) return !isNew;
  if (result === here || result === theirs) return lost.some((lines) => lines.length > 0);
  return (ours && lost[1]?.length === 0) || (others && lost[0]?.length === 0);
}

function isGone(added: readonly string[] = [], lost: readonly string[] = []): boolean {
  return added.length > 0 && added.length === lost.length;
}

const ourIdentity = identity("Retinue", "retinue@localhost");

function identity(name: string, email: string): Readonly<Record<string, string>> {
  return {
    GIT_AUTHOR_NAME: name,
    GIT_AUTHOR_EMAIL: email,
    GIT_COMMITTER_NAME: name,
    GIT_COMMITTER_EMAIL: email,
  };
}

/** Makes the one commit that a child's changes become, in the words and the name of their author where there is one alone. */
export async function commitChanges(
  { git, repository }: MergeRepository,
  {
    tree,
    onto,
    own,
    description,
  }: {
    readonly tree: string;
    readonly onto: string;
    readonly own: ChangeRange;
    readonly description: string;
  },
): Promise<string> {
  const { main } = repository;
  const knowsPerson = (await git(main, ["var", "GIT_COMMITTER_IDENT"])).type === "done";
  const listed = await git(main, [
    "log",
    "--reverse",
    "--no-merges",
    "-z",
    "--format=%an%n%ae%n%aI%n%B",
    `${own.base}..${own.tip}`,
    "--",
  ]);
  const commits = (listed.type === "done" ? listed.text : "").split("\0").flatMap(readCommit);
  const written = commits.filter(({ email }) => email !== ourIdentity["GIT_AUTHOR_EMAIL"]);
  const [only] = written;
  const isAlone = only !== undefined && commits.length === 1;
  const list = written.map(({ message }) => `- ${firstLine(message)}`).join("\n");
  const message = isAlone ? only.message : `${firstLine(description)}${list === "" ? "" : `\n\n${list}`}`;
  const author: Readonly<Record<string, string>> = isAlone
    ? { GIT_AUTHOR_NAME: only.name, GIT_AUTHOR_EMAIL: only.email, GIT_AUTHOR_DATE: only.date }
    : {};
  const words = ["commit-tree", "--no-gpg-sign", "-p", onto, "-F", "-", tree];
  return must(
    await git(main, words, {
      input: `${message.trim()}\n`,
      variables: { ...(knowsPerson ? {} : ourIdentity), ...author },
    }),
  );
}

function readCommit(text: string) {
  const [name = "", email = "", date = "", ...body] = text.split("\n");
  const message = body.join("\n").trim();
  return email === "" || message === "" ? [] : [{ name: name === "" ? email : name, email, date, message }];
}

function firstLine(text: string): string {
  const line = text.trim().split("\n")[0] ?? "";
  return line === "" ? "Changes of an agent" : line.slice(0, 200);
}

/** Why a working tree cannot be brought forward now; undefined where nothing in it is changed. */
export async function whyNotClean({ git, repository }: MergeRepository): Promise<string | undefined> {
  const words = ["status", "--porcelain=v1", "-z", "--untracked-files=no", "--ignore-submodules=dirty"];
  const status = await git(repository.top, words);
  if (status.type === "failed") return `its state could not be read (${status.reason})`;
  const entries = status.text.split("\0").filter((entry) => entry !== "");
  const [first] = entries;
  if (first === undefined) return undefined;
  const more = entries.length === 1 ? "" : ` and ${entries.length - 1} more`;
  return `${first.slice(3)}${more} ${entries.length === 1 ? "has" : "have"} uncommitted changes`;
}

/** Whether everything that differs from `from` is already as it is in `to`: a fast-forward that was cut off in its middle. */
export async function isHalfForwarded(
  { git, repository }: MergeRepository,
  { from, to, tree }: { readonly from: string; readonly to: string; readonly tree: string },
): Promise<boolean> {
  const words = ["diff-tree", "-r", "-z", "--no-renames", "--raw", "--full-index"];
  const [done, wanted] = await Promise.all([
    git(repository.main, [...words, from, tree]),
    git(repository.main, [...words, from, to]),
  ]);
  if (done.type === "failed" || wanted.type === "failed") return false;
  const known = new Set(readRaw(wanted.text).map(({ path, after }) => `${path} ${after}`));
  return readRaw(done.text).every(({ path, after }) => known.has(`${path} ${after}`));
}
