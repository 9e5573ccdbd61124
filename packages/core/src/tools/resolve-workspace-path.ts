import { isAbsolute, join, relative, resolve, sep } from "node:path";
import { escapeName } from "@retinue/base/foundation/escape-control-tags.ts";

export interface PathBase {
  /** Absolute; where relative paths start. */
  readonly directory: string;
  /** What `~` means; absent when it is not known. */
  readonly home?: string | undefined;
}

export type ResolvedPath =
  | { readonly type: "path"; readonly path: string }
  | { readonly type: "refused"; readonly reason: string };

/** The absolute path that a given one means. Decides nothing about rights and touches no file. */
export function resolveWorkspacePath(given: string, { directory, home }: PathBase): ResolvedPath {
  if (given.trim() === "") return { type: "refused", reason: "The path is empty; give the path of a file." };
  if (given.includes("\0")) {
    return { type: "refused", reason: "The path contains a NUL character, which no file name can have." };
  }
  if (given !== "~" && !given.startsWith("~/")) return { type: "path", path: resolve(directory, given) };
  if (home === undefined || !isAbsolute(home)) {
    return {
      type: "refused",
      reason: `The home directory is unknown, so ${given} cannot be resolved; give an absolute path.`,
    };
  }
  return { type: "path", path: join(home, given.slice(1)) };
}

/**
 * The path that permission rules judge for a call. Where the home directory is not known, `~` lands at the root of the
 * file system, so that it is never taken for a path inside the project.
 */
export function pathForRules(given: string, directory: string, home?: string): string {
  const resolved = resolveWorkspacePath(given, { directory, home });
  if (resolved.type === "path") return resolved.path;
  return given.startsWith("~") ? resolve(sep, given) : resolve(directory, given);
}

/** Whether a real path is one of the directories or below one. A path that is not absolute is inside nothing. */
export function isInside(realPath: string, directories: readonly string[]): boolean {
  return (
    isAbsolute(realPath) &&
    directories.some((directory) => {
      const way = relative(directory, realPath);
      return way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way);
    })
  );
}

/** A path as a model reads it: relative where it is inside the directory, absolute elsewhere; its name is only a name. */
export function shownPath(path: string, directory: string): string {
  if (!isInside(path, [directory])) return escapeName(path);
  return escapeName(relative(directory, path)) || ".";
}
