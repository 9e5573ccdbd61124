import { readdir, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { nearestName } from "@retinue/base/foundation/nearest-name.ts";
import { shownPath } from "../resolve-workspace-path.ts";
import type { ToolContext } from "../tool.ts";
import { locateDecided } from "./change-file.ts";

export type SearchRoot =
  | {
      readonly type: "root";
      readonly path: string;
      readonly isFolder: boolean;
      /** Where the search runs, so that globs are anchored. */
      readonly directory: string;
      /** The same file or folder as seen from there. */
      readonly target: string;
    }
  | { readonly type: "refused"; readonly reason: string; readonly missing: boolean };

/** Finds the file or folder to search in; what is neither would make a search wait for ever. */
export async function findSearchRoot(given: string, context: ToolContext): Promise<SearchRoot> {
  const located = await locateDecided(given, context);
  if (located.type === "refused") return { ...located, missing: false };
  const stats = await stat(located.realPath).catch(() => undefined);
  if (stats === undefined) {
    return { type: "refused", reason: await describeMissing(located.path, context), missing: true };
  }
  if (!stats.isFile() && !stats.isDirectory()) {
    return { type: "refused", reason: `${located.path} is neither a file nor a folder.`, missing: false };
  }
  const isFolder = stats.isDirectory();
  const path = located.realPath;
  return {
    type: "root",
    path,
    isFolder,
    directory: isFolder ? path : dirname(path),
    target: isFolder ? "./" : `./${basename(path)}`,
  };
}

/** Hidden files count, links are not followed, and ignore files hold outside of repositories too. */
export function commonArguments(root: string): string[] {
  return [
    "--color=never",
    "--null",
    "--hidden",
    "--no-follow",
    "--no-require-git",
    "--no-messages",
    // From the top of the file system only its own disk is searched, not /proc and its like.
    ...(root === "/" ? ["--one-file-system"] : []),
  ];
}

/** Whether rules let a search show what it finds in a file. */
export function mayShow(path: string, tool: string, { mayRead }: ToolContext): boolean {
  return mayRead?.(path, tool) ?? true;
}

/** The same words whatever there is, so that they reveal nothing about what is left out. */
export function exclusionNote({ mayRead }: ToolContext): readonly string[] {
  return mayRead === undefined ? [] : ["Files that rules deny reading were not searched."];
}

/** Whether a line of ripgrep's complaints is not about a file, whose name may be one that rules hide. */
export function isAboutSearch(line: string): boolean {
  return line !== "" && !/^(?:\.{0,2}\/|[A-Za-z]:\\)/.test(line);
}

export const searchTimeLimitMs = 20_000;

/** Says that a file is not there, and what the person may have meant. */
export async function describeMissing(path: string, context: ToolContext): Promise<string> {
  const folder = dirname(path);
  const names = await readdir(folder).catch(() => undefined);
  if (names === undefined) {
    return `${path} does not exist, nor does its folder; the nearest folder that does is ${await existingAncestor(folder)}. Relative paths start in ${context.directory}.`;
  }
  const visible = names
    .filter((name) => context.mayRead?.(join(folder, name), "Read") ?? true)
    .slice(0, maxNames);
  const near = nearestNames(basename(path), visible);
  const elsewhere = `Relative paths start in ${context.directory}; Glob finds files by name.`;
  if (near.length === 0) return `${path} does not exist. ${elsewhere}`;
  const shown = near.map((name) => shownPath(join(folder, name), context.directory));
  return `${path} does not exist. Did you mean ${shown.join(" or ")}? ${elsewhere}`;
}

/** Close spellings, and the same name with another ending. */
function nearestNames(name: string, names: readonly string[]): string[] {
  const close = nearestName(name, names);
  const stem = stemOf(name);
  const siblings = stem === "" ? [] : names.filter((other) => stemOf(other) === stem);
  return [...new Set([...(close === undefined ? [] : [close]), ...siblings])].slice(0, 3);
}

function stemOf(name: string): string {
  const stem = name.split(".").find((part) => part !== "") ?? "";
  return stem.toLowerCase();
}

async function existingAncestor(folder: string): Promise<string> {
  for (let current = folder; ; current = dirname(current)) {
    const stats = await stat(current).catch(() => undefined);
    if (stats?.isDirectory() || dirname(current) === current) return current;
  }
}

const maxNames = 2000;
