// @io
import { lstatSync, readdirSync, readFileSync, type Stats } from "node:fs";
import { posix } from "node:path";
import type { PathCopy } from "./call-facts.ts";
import { runOwnGitNow } from "./git/run-own-git.ts";
import { isInside, type PermissionPolicy, type PolicyRule } from "./permission-policy.ts";

/** The rules that can match in one working tree while a call uses another, and what their paths start at. */
export type CopyRules = Pick<PermissionPolicy, "deny" | "ask" | "home" | "workingDirectories">;

/** Finds the same place in the other working trees of a repository: the main one, and those that rules name a place in. */
export interface CopyFinder {
  of(path: string): readonly PathCopy[];
  /** The main working tree of the repository around a folder. */
  mainTree(folder: string): string | undefined;
}

/** Remembers what it has looked up, so it serves one call, or one run where nothing else knows better. */
export function createCopyFinder(policy: CopyRules): CopyFinder {
  const trees = new Map<string, Tree | undefined>();
  const named = [...policy.deny, ...policy.ask].flatMap((rule) => namedPlace(rule, policy));
  const around = (folder: string): Tree | undefined => {
    const known = trees.get(folder);
    if (known !== undefined || trees.has(folder)) return known;
    const parent = posix.dirname(folder);
    const found = readTree(folder, policy) ?? (parent === folder ? undefined : around(parent));
    trees.set(folder, found);
    return found;
  };
  return {
    of(path) {
      // A working tree itself has no copy; what is in it has.
      const tree = around(posix.dirname(path));
      if (tree === undefined || tree.others.length === 0) return [];
      return tree.others
        .filter(({ root, isMain }) => isMain || named.some((place) => isInside(place, [root])))
        .map(({ root, isMain }) => ({ tree: root, path: `${root}${path.slice(tree.root.length)}`, isMain }));
    },
    mainTree: (folder) => around(folder)?.main,
  };
}

interface Tree {
  readonly root: string;
  readonly main: string | undefined;
  readonly others: readonly { readonly root: string; readonly isMain: boolean }[];
}

/** The folder that a rule about paths surely speaks below. */
function namedPlace(
  { rule: { specifier }, anchor }: PolicyRule,
  { home, workingDirectories: [directory = "/"] }: CopyRules,
): readonly string[] {
  if (specifier.type !== "path") return [];
  const base = { root: "/", home, settings: anchor, cwd: directory }[specifier.anchor];
  const segments = specifier.pattern.split("/");
  const first = segments.findIndex((segment) => /[*?[\\]/.test(segment));
  return [posix.join(base, ...(first === -1 ? segments : segments.slice(0, first)))];
}

/** The working tree whose root a folder is, with the others of its repository. */
function readTree(root: string, policy: CopyRules): Tree | undefined {
  const place = posix.join(root, ".git");
  const stats = statsOf(place);
  if (stats === undefined) return undefined;
  // A repository of the usual kind without linked trees has only this one.
  const isAlone =
    stats.isDirectory() && ["commondir", "worktrees"].every((name) => !isThere(posix.join(place, name)));
  if (isAlone) return { root, main: root, others: [] };
  const [main, ...linked] = listTrees(root, policy) ?? readTrees(root, place);
  const all = [
    ...(main === undefined ? [] : [{ root: main, isMain: true }]),
    ...linked.flatMap((tree) => (tree === undefined ? [] : [{ root: tree, isMain: false }])),
  ];
  return { root, main, others: all.filter((tree) => tree.root !== root) };
}

/** The main working tree, if there is one, and the linked ones, as git itself lists them; undefined where it does not. */
function listTrees(
  root: string,
  { home, workingDirectories }: CopyRules,
): readonly (string | undefined)[] | undefined {
  const answer = runOwnGitNow({
    directory: root,
    words: ["worktree", "list", "--porcelain", "-z"],
    environment: { PATH: process.env["PATH"], HOME: home },
    folders: workingDirectories,
  });
  if (answer === undefined) return undefined;
  return answer
    .split("\0\0")
    .filter((record) => record !== "")
    .map((record) => {
      const fields = record.split("\0");
      const path = fields.find((field) => field.startsWith("worktree "))?.slice("worktree ".length);
      return fields.includes("bare") ? undefined : path;
    });
}

/** The same from git's data, where git refuses to say: what restricts is rather said too often. */
function readTrees(root: string, place: string): readonly (string | undefined)[] {
  const link = /^gitdir: (.+)$/m.exec(read(place) ?? "")?.[1]?.trim();
  const own = link === undefined ? place : posix.resolve(root, link);
  const shared = read(posix.join(own, "commondir"))?.trim();
  const common = shared === undefined || shared === "" ? own : posix.resolve(own, shared);
  const main = common === own ? root : treeOf(common);
  return [main, ...linkedTrees(common)];
}

function statsOf(path: string): Stats | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false });
  } catch {
    // A name that is too long names nothing.
    return undefined;
  }
}

/** A bare repository has linked trees, and no main one. */
function treeOf(common: string): string | undefined {
  return posix.basename(common) === ".git" ? posix.dirname(common) : undefined;
}

function linkedTrees(common: string): readonly string[] {
  const folder = posix.join(common, "worktrees");
  return list(folder).flatMap((name) => {
    const place = read(posix.join(folder, name, "gitdir"))?.trim();
    return place === undefined || place === "" ? [] : [posix.dirname(posix.resolve(folder, name, place))];
  });
}

function isThere(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch {
    return true;
  }
}

function read(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}

function list(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
