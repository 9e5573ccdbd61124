import type { TreeStep, Word } from "../model.ts";
import { hasOption, type ScannedWords, valuesOf } from "../word.ts";

interface GitWords extends ScannedWords {
  /** Every word after the subcommand. */
  readonly words: readonly Word[];
}

/** What a git command does to the work tree, and which of its files it takes up; nothing for commands that do neither. */
export function treeSteps(name: string, scanned: ScannedWords, words: readonly Word[]): readonly TreeStep[] {
  const steps = users.get(name)?.({ ...scanned, words }) ?? [];
  if (steps.length === 0) return steps;
  if (words.some(({ literal }) => !literal)) return unknown("a word is only known when it runs");
  if (hasOption(scanned, "pathspec-from-file")) return unknown("a file names the paths");
  return scanned.unclear === undefined ? steps : unknown(scanned.unclear);
}

/** Paths that a git command names to write them, or to take them up, as far as they are plain. */
export function namedPaths(
  name: string,
  scanned: ScannedWords,
  words: readonly Word[],
): { readonly use: "read" | "write"; readonly paths: readonly Word[] } {
  const isPlain = ({ text: path }: Word): boolean => !/^:|[*?[\\]/.test(path);
  const operands = scanned.operands.filter((_, at) => at >= pathsFrom(name, { ...scanned, words }));
  return { use: name === "add" || name === "commit" ? "read" : "write", paths: operands.filter(isPlain) };
}

function pathsFrom(name: string, scanned: GitWords): number {
  const [before, after] = separate(scanned);
  if (name === "checkout") return after === undefined ? 1 : before.length;
  if (name === "restore") return restore(scanned)[0]?.type === "stage" ? Number.POSITIVE_INFINITY : 0;
  return name === "add" || name === "commit" ? 0 : Number.POSITIVE_INFINITY;
}

function unknown(reason: string): readonly TreeStep[] {
  return [{ type: "unknown", reason }];
}

function list(use: "read" | "write", ...tries: readonly (readonly string[])[]): TreeStep {
  return { type: "list", use, tries };
}

const names = ["--name-only", "--no-renames", "-z"];
const inWorkTree = (tree: string, paths: readonly string[] = []): readonly string[] => [
  "diff-index",
  ...names,
  tree,
  "--",
  ...paths,
];
const sinceIndex = (paths: readonly string[]): readonly string[] => ["diff-files", ...names, "--", ...paths];
const tracked = (paths: readonly string[], ...options: readonly string[]): readonly string[] => [
  "ls-files",
  "--full-name",
  "-z",
  ...options,
  "--",
  ...paths,
];
const between = (from: string, to: string): readonly string[] => [
  "diff-tree",
  "-r",
  ...names,
  from,
  to,
  "--",
];
const everywhere = [":/"];

const text = ({ value }: Word): string => value;
const isRevision = (revision: string): boolean => !revision.startsWith("-") && revision !== "";
const hasEnded = (scanned: GitWords): boolean =>
  hasOption(scanned, "abort", "continue", "skip", "quit", "edit-todo", "show-current-patch");

/** The operands before and after `--`; undefined where there is none. */
function separate({
  operands,
  words,
}: GitWords): readonly [readonly string[], readonly string[] | undefined] {
  const at = words.findIndex(({ text: word }) => word === "--");
  const after = at === -1 ? [] : words.slice(at + 1);
  const before = operands.slice(0, operands.length - after.length);
  return [before.map(text), at === -1 ? undefined : after.map(text)];
}

/** Goes to another commit; a name that is no commit here may be a branch of the remote. */
function moveTo(name: string, isForced: boolean): readonly TreeStep[] {
  const revision = name === "-" ? "@{-1}" : name;
  if (!isRevision(revision)) return unknown("the commit is not named plainly");
  const go = (to: string): readonly string[] => (isForced ? inWorkTree(to) : between("HEAD", to));
  return [list("write", go(revision), go(`refs/remotes/origin/${revision}`))];
}

function checkout(scanned: GitWords): readonly TreeStep[] {
  const isForced = hasOption(scanned, "f", "force", "m", "merge", "discard-changes");
  const [before, after] = separate(scanned);
  const [first, ...others] = before;
  if (after !== undefined && after.length > 0) {
    if (others.length > 0 || (first !== undefined && !isRevision(first)))
      return unknown("the commit is not named plainly");
    return [list("write", first === undefined ? sinceIndex(after) : inWorkTree(first, after))];
  }
  if (first === undefined) return isForced ? [list("write", inWorkTree("HEAD"))] : [];
  if (hasOption(scanned, "b", "B", "orphan", "d", "detach", "t", "track") || after !== undefined)
    return others.length > 0 ? unknown("it names several commits") : moveTo(first, isForced);
  if (others.length > 0)
    return [list("write", inWorkTree(first, others), tracked(before, "--error-unmatch"))];
  const [moved] = moveTo(first, isForced);
  if (moved?.type !== "list") return unknown("the commit is not named plainly");
  return [
    list("write", ...moved.tries, tracked(before, "--error-unmatch")),
    // A file of the name of a commit.
    list("write", sinceIndex(before)),
  ];
}

function switchBranch(scanned: GitWords): readonly TreeStep[] {
  const isForced = hasOption(scanned, "f", "force", "m", "merge", "discard-changes");
  if (hasOption(scanned, "orphan")) return [list("write", tracked(everywhere))];
  const [first, ...others] = scanned.operands.map(text);
  if (first === undefined) return isForced ? [list("write", inWorkTree("HEAD"))] : [];
  return others.length > 0 ? unknown("it names several commits") : moveTo(first, isForced);
}

function restore(scanned: GitWords): readonly TreeStep[] {
  const isStaged = hasOption(scanned, "S", "staged");
  if (isStaged && !hasOption(scanned, "W", "worktree")) return [{ type: "stage" }];
  const paths = scanned.operands.map(text);
  const source = valuesOf(scanned, "s", "source").map(text).at(-1) ?? (isStaged ? "HEAD" : undefined);
  if (source !== undefined && !isRevision(source)) return unknown("the commit is not named plainly");
  return [list("write", source === undefined ? sinceIndex(paths) : inWorkTree(source, paths))];
}

function reset(scanned: GitWords): readonly TreeStep[] {
  if (!hasOption(scanned, "hard", "keep", "merge")) return [{ type: "stage" }];
  const [tree = "HEAD", ...others] = scanned.operands.map(text);
  return others.length > 0 || !isRevision(tree)
    ? unknown("it names several commits")
    : [list("write", inWorkTree(tree))];
}

const untracked = (paths: readonly string[], isWhole: boolean): readonly string[] =>
  tracked(paths, "--others", ...(isWhole ? [] : ["--exclude-standard"]));

function stash(scanned: GitWords): readonly TreeStep[] {
  const [verb, ...rest] = scanned.operands.map(text);
  switch (verb) {
    case undefined:
    case "push":
    case "save": {
      // What follows `-m` is no path, and only behind `--` is it clear what is one.
      const plain = hasOption(scanned, "m") ? (separate(scanned)[1] ?? []) : rest;
      const paths = verb === "push" ? plain : [];
      const all = hasOption(scanned, "a", "all");
      const isWider = all || hasOption(scanned, "u", "include-untracked");
      return [
        list("write", inWorkTree("HEAD", paths)),
        ...(isWider ? [list("write", untracked(paths.length > 0 ? paths : everywhere, all))] : []),
      ];
    }
    case "pop":
    case "apply": {
      const [named = "stash@{0}"] = rest;
      const entry = /^\d+$/.test(named) ? `stash@{${named}}` : named;
      if (!isRevision(entry)) return unknown("the stash is not named plainly");
      return [
        { type: "merge", base: `${entry}^1`, theirs: entry, ours: "HEAD" },
        // Untracked files are a third parent, where there are any.
        list(
          "write",
          ["ls-tree", "-r", "--full-tree", "--name-only", "-z", `${entry}^3`],
          between("HEAD", "HEAD"),
        ),
      ];
    }
    case "list":
    case "show":
    case "drop":
    case "clear":
      return [];
    default:
      return unknown(`git stash ${verb} takes up files that are not listed`);
  }
}

function merge(scanned: GitWords): readonly TreeStep[] {
  if (hasOption(scanned, "abort")) return [list("write", inWorkTree("HEAD"))];
  if (hasEnded(scanned)) return [];
  const named = scanned.operands.map(text);
  return (named.length > 0 ? named : ["@{upstream}"]).map((theirs) =>
    isRevision(theirs)
      ? { type: "merge", theirs, ours: "HEAD" }
      : { type: "unknown", reason: "the commit is not named plainly" },
  );
}

function replayCommits(scanned: GitWords): readonly TreeStep[] {
  const commits = scanned.operands.map(text);
  if (hasEnded(scanned)) return [];
  if (!commits.every(isRevision)) return unknown("the commits are not named plainly");
  return [{ type: "replay", commits: ["--no-walk", ...commits], onto: "HEAD" }];
}

function rebase(scanned: GitWords): readonly TreeStep[] {
  if (hasEnded(scanned)) return [];
  const [upstream = "@{upstream}", ...others] = scanned.operands.map(text);
  const onto = valuesOf(scanned, "onto").map(text).at(-1) ?? upstream;
  if (others.length > 0 || hasOption(scanned, "root") || ![upstream, onto].every(isRevision))
    return unknown("it rebases more than the current branch onto one commit");
  return [list("write", between("HEAD", onto)), { type: "replay", commits: [`${upstream}..HEAD`], onto }];
}

function apply(scanned: GitWords): readonly TreeStep[] {
  if (hasOption(scanned, "stat", "numstat", "summary", "check")) return [];
  const files = scanned.operands.map(text);
  if (files.length === 0 || files.includes("-")) return unknown("the patch comes from its input");
  const options = scanned.options.flatMap(({ name, value }) =>
    value !== undefined && (name === "p" || name === "directory")
      ? [name === "p" ? `-p${value.value}` : `--directory=${value.value}`]
      : [],
  );
  return [{ type: "patch", files, options }];
}

function add(scanned: GitWords): readonly TreeStep[] {
  if (hasOption(scanned, "n", "dry-run", "refresh")) return [];
  const named = scanned.operands.map(text);
  const paths = named.length === 0 && hasOption(scanned, "A", "all", "u", "update") ? everywhere : named;
  const standard = hasOption(scanned, "f", "force") ? [] : ["--exclude-standard"];
  return paths.length === 0 ? [] : [list("read", tracked(paths, "--modified", "--others", ...standard))];
}

function commit(scanned: GitWords): readonly TreeStep[] {
  const paths = hasOption(scanned, "a", "all") ? everywhere : scanned.operands.map(text);
  return paths.length === 0 ? [] : [list("read", tracked(paths, "--modified"))];
}

function clean(scanned: GitWords): readonly TreeStep[] {
  if (hasOption(scanned, "n", "dry-run")) return [];
  const paths = scanned.operands.map(text);
  const isWhole = hasOption(scanned, "x", "X");
  return [list("write", untracked(paths.length > 0 ? paths : ["."], isWhole))];
}

function remove(scanned: GitWords): readonly TreeStep[] {
  return hasOption(scanned, "n", "dry-run") ? [] : [list("write", tracked(scanned.operands.map(text)))];
}

function pull({ operands }: GitWords): readonly TreeStep[] {
  const remote = operands[0]?.value;
  return [{ type: "pull", remote }];
}

function bisect({ operands }: GitWords): readonly TreeStep[] {
  return /^(?:log|terms|view|visualize)$/.test(operands[0]?.value ?? "")
    ? []
    : unknown("git bisect goes to a commit of its choice");
}

const users: ReadonlyMap<string, (scanned: GitWords) => readonly TreeStep[]> = new Map([
  ["checkout", checkout],
  ["switch", switchBranch],
  ["restore", restore],
  ["reset", reset],
  ["stash", stash],
  ["merge", merge],
  ["cherry-pick", replayCommits],
  ["revert", replayCommits],
  ["rebase", rebase],
  ["apply", apply],
  ["am", (scanned) => (hasEnded(scanned) ? [] : unknown("a mail names the files"))],
  ["add", add],
  ["commit", commit],
  ["clean", clean],
  ["rm", remove],
  ["pull", pull],
  ["bisect", bisect],
  ["checkout-index", () => unknown("git checkout-index writes whatever the index holds")],
  ["filter-branch", () => unknown("git filter-branch writes whatever its commands do")],
]);

const strategies = /^(?:ort|recursive|resolve|octopus|ours)$/;
const strategyOptions =
  /^(?:ours|theirs|patience|histogram|minimal|(?:no-)?renormalize|no-renames|find-renames(?:=\d+%?)?|rename-threshold=\d+%?|ignore-[a-z-]+|diff-algorithm=[a-z]+)$/;

/** Other strategies bring files to other places, or are programs of their own. */
export function strategyRisk(scanned: ScannedWords): string | undefined {
  const isPlain =
    valuesOf(scanned, "s", "strategy").every(({ text: word }) => strategies.test(word)) &&
    valuesOf(scanned, "X", "strategy-option").every(({ text: word }) => strategyOptions.test(word));
  return isPlain ? undefined : "the strategy of the merge may bring files to other places";
}
