// @io
import { lstatSync, readlinkSync, realpathSync } from "node:fs";

/**
 * Where an absolute path leads when each link is followed before the next name or `..` is taken. What does not exist
 * is below its nearest real ancestor. Undefined where links go round in circles.
 */
export async function findRealLocation(path: string): Promise<string | undefined> {
  try {
    return realpathSync.native(path === "" ? "/" : path);
  } catch {
    return belowRealFolder(path) ?? walk(path);
  }
}

/** The usual case of a file that is to be made: its folder is there, and nothing has its name. */
function belowRealFolder(path: string): string | undefined {
  const [, folder = "", name = ""] = /^(\/.*?)\/+([^/]+)$/.exec(path) ?? [];
  if (name === "" || name === "." || name === ".." || /(?:^|\/)\.\.(?:\/|$)/.test(folder)) return undefined;
  try {
    const real = realpathSync.native(folder);
    const entry = lstatSync(path, { throwIfNoEntry: false });
    return entry === undefined ? `${real === "/" ? "" : real}/${name}` : undefined;
  } catch {
    return undefined;
  }
}

function walk(path: string): string | undefined {
  const names = path.split("/").reverse();
  let at = "/";
  let links = 0;
  for (let name = names.pop(); name !== undefined; name = names.pop()) {
    if (name === "" || name === ".") continue;
    if (name === "..") {
      at = at.slice(0, at.lastIndexOf("/")) || "/";
      continue;
    }
    const next = at === "/" ? `/${name}` : `${at}/${name}`;
    const target = linkTarget(next);
    if (target === undefined) at = next;
    else {
      links += 1;
      if (links > maxLinks) return undefined;
      if (target.startsWith("/")) at = "/";
      names.push(...target.split("/").reverse());
    }
  }
  return at;
}

const maxLinks = 40;

function linkTarget(path: string): string | undefined {
  try {
    return lstatSync(path).isSymbolicLink() ? readlinkSync(path) : undefined;
  } catch {
    return undefined;
  }
}
