// @io
import { existsSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";

/** Folders of a project with skills of their own, found as files in or below them are touched. */
export interface NestedFolders {
  /** Whether this led to a folder with skills that was not known before. */
  touch(paths: readonly string[]): boolean;
  found(): readonly string[];
}

/** No one keeps more; each is read again with every look at the skills. */
const maxFolders = 100;

/**
 * Looks at each folder between a touched file and the project's root once. What lies in folders that other programs fill,
 * such as `node_modules` or `.git`, was not put there for agents that work here.
 */
export function createNestedFolders(root: string): NestedFolders {
  const seen = new Set<string>();
  const found: string[] = [];
  const look = (folder: string): void => {
    seen.add(folder);
    const own = join(folder, ".claude");
    const hasSkills = existsSync(join(own, "skills")) || existsSync(join(own, "commands"));
    if (hasSkills && found.length < maxFolders) found.push(folder);
  };
  return {
    touch(paths) {
      const before = found.length;
      for (const folder of paths.flatMap((path) => foldersAbove(path, root)))
        if (!seen.has(folder)) look(folder);
      return found.length > before;
    },
    found: () => found,
  };
}

function foldersAbove(path: string, root: string): readonly string[] {
  const way = relative(root, dirname(path)).split(sep);
  if (way.some((part) => part === "" || part === "node_modules" || part.startsWith("."))) return [];
  return way.map((_, index) => join(root, ...way.slice(0, index + 1)));
}
