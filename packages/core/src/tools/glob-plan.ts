import { isAbsolute, sep } from "node:path";

export interface GlobPlan {
  /** The folder that the pattern names before its first wildcard; relative to where the search begins, or absolute. */
  readonly folder: string;
  /** What is left to match below it; absent when the pattern is a plain path. */
  readonly pattern?: string;
}

/** Parts a pattern into the folder it names literally and the rest, so that the search begins there. */
export function planGlob(pattern: string): GlobPlan {
  const parts = (sep === "\\" ? pattern.replaceAll(sep, "/") : pattern).split("/");
  if (parts.length === 1) return { folder: ".", pattern };
  const wild = parts.findIndex((part) => /[*?[{\\]/.test(part));
  if (wild === -1) return { folder: joinFolder(parts, pattern) };
  const rest = parts.slice(wild).join("/");
  return { folder: joinFolder(parts.slice(0, wild), pattern), pattern: `/${rest}` };
}

/** The arguments that make ripgrep list the files a pattern means. */
export function globArguments(pattern: string): string[] {
  // Naming everything would overrule the ignore files, so it is not said at all.
  if (/^\/?\*\*(\/\*)?$/.test(pattern)) return [];
  if (/^\/?\*$/.test(pattern)) return ["--max-depth=1"];
  return [`--glob=${pattern.startsWith("!") ? `\\${pattern}` : pattern}`];
}

/** Several globs in one text, parted by spaces or by commas outside braces. */
export function splitGlobs(text: string): string[] {
  const globs: string[] = [];
  let glob = "";
  let depth = 0;
  for (const character of text) {
    if (character === "{") depth += 1;
    if (character === "}") depth -= 1;
    if (/\s/.test(character) || (character === "," && depth <= 0)) {
      globs.push(glob);
      glob = "";
    } else glob += character;
  }
  return [...globs, glob].filter((part) => part !== "" && !/^\/?(\*\*\/)?\*\*?$/.test(part));
}

/** Folders that hold what tools made; searched only when a path names them. */
export function excludedFolders(root: string, names: readonly string[]): string[] {
  const named = new Set(root.split(/[/\\]/));
  return names.filter((name) => !named.has(name)).map((name) => `--glob=!**/${name}`);
}

export const versionControlFolders: readonly string[] = [".git", ".svn", ".hg", ".jj"];

function joinFolder(parts: readonly string[], pattern: string): string {
  const folder = parts.filter((part) => part !== "" && part !== ".").join("/");
  if (isAbsolute(pattern)) return `/${folder}`;
  return folder === "" ? "." : folder;
}
