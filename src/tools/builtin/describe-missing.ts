import { readdir, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { nearestName } from "../../foundation/nearest-name.ts";
import { shownPath } from "../resolve-workspace-path.ts";
import type { ToolContext } from "../tool.ts";

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
