import type { Word } from "./shell-word.ts";

/** The directories a command may run in: "" is that of the call. */
export type Directories = readonly string[];

/** Where the shell is after a command: when it succeeded, and when it failed. */
export interface Flow {
  readonly success: Directories;
  readonly failure: Directories;
}

export function staying(directories: Directories): Flow {
  return { success: directories, failure: directories };
}

/** All directories of both; too many to follow are an unknown one. */
export function either(left: Directories, right: Directories): Directories {
  if (left === right) return left;
  const all = [...new Set([...left, ...right])];
  return all.length > 8 ? ["unknown"] : all;
}

/** Where `cd target` leads; bash resolves `..` in the text of the path. */
export function enter(directories: Directories, target: Word | undefined): Directories {
  const path = target === undefined ? "~" : target.path;
  if (target !== undefined && (!target.pathKnown || target.loose || path === "-" || path === ""))
    return ["unknown"];
  return [...new Set(directories.map((directory) => join(directory, path)))];
}

function join(directory: string, path: string): string {
  if (/^(?:\/|~(?:\/|$))/.test(path)) return normal(path);
  return directory === "unknown" ? "unknown" : normal(directory === "" ? path : `${directory}/${path}`);
}

function normal(path: string): string {
  const kept: string[] = [];
  for (const part of path.split("/")) {
    if (part === "" || part === ".") continue;
    const last = kept[kept.length - 1];
    if (part === ".." && last !== undefined && last !== ".." && last !== "~") kept.pop();
    else kept.push(part);
  }
  if (path.startsWith("/")) return `/${kept.filter((part) => part !== "..").join("/")}`;
  // A directory of this very name must not be taken for the sign.
  const text = kept.join("/");
  return text === "unknown" ? "./unknown" : text;
}
