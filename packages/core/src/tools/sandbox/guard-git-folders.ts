// @io
import { lstatSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { removeIfPossible } from "@retinue/base/foundation/remove-if-possible.ts";

export interface GuardedGitFolders {
  /** What commands may not write, as it is there. */
  readonly present: readonly string[];
  /** Removes what came meanwhile; to be called when nothing of the command runs any more. */
  end(): void;
}

/**
 * The files by which git finds its settings and hooks in repositories of working directories. Those that are not there cannot
 * be kept from being made, since git takes an empty one in their place for its own; so they are removed after the command.
 */
export function guardGitFolders(workingDirectories: readonly string[]): GuardedGitFolders {
  const present: string[] = [];
  const absent: string[] = [];
  for (const directory of workingDirectories) {
    const own = join(directory, ".git");
    // In a linked worktree it is a file that names the folder.
    if (kindOf(own) !== "folder") {
      if (kindOf(own) !== undefined) present.push(own);
      continue;
    }
    for (const folder of [own, ...gitFoldersBelow(own)]) {
      if (folder !== own) present.push(...pathsIn(folder, ["config", "hooks"]).filter(isThere));
      for (const path of pathsIn(folder, ["commondir", "config.worktree"]))
        (isThere(path) ? present : absent).push(path);
    }
  }
  return {
    present,
    end() {
      for (const path of absent) removeIfPossible(path);
    },
  };
}

function pathsIn(folder: string, names: readonly string[]): readonly string[] {
  return names.map((name) => join(folder, name));
}

/** Names of submodules may have slashes. */
const deepest = 6;

/** The folders of linked worktrees and submodules. */
function gitFoldersBelow(own: string, depth = 0): readonly string[] {
  return ["worktrees", "modules"].flatMap((kind) => {
    const place = join(own, kind);
    return kindOf(place) === "folder" ? foldersIn(place, depth) : [];
  });
}

function foldersIn(place: string, depth: number): readonly string[] {
  if (depth > deepest) return [];
  const folders = readdirSync(place, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  return folders.flatMap(({ name }) => {
    const folder = join(place, name);
    if (!isThere(join(folder, "HEAD"))) return foldersIn(folder, depth + 1);
    return [folder, ...gitFoldersBelow(folder, depth + 1)];
  });
}

function isThere(path: string): boolean {
  return kindOf(path) !== undefined;
}

function kindOf(path: string): "folder" | "other" | undefined {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined) return undefined;
  return found.isDirectory() ? "folder" : "other";
}
