// @io
import { realpathSync } from "node:fs";
import { readlink, realpath } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { RetinueError } from "./retinue-error.ts";

/**
 * Where a file is, or would be made: links are followed, also dangling ones, and what does not exist yet is put below
 * the real path of its nearest existing ancestor.
 */
export async function findRealPath(path: string): Promise<string> {
  const missing: string[] = [];
  let current = path;
  for (let links = 0; links <= maxLinks; ) {
    const real = realPathIfThere(current);
    if (real !== undefined) return join(real, ...missing);
    const target = await readlink(current).catch(() => undefined);
    if (target !== undefined) {
      links += 1;
      current = resolve(await realpath(dirname(current)), target);
      continue;
    }
    const parent = dirname(current);
    if (parent === current) return join(current, ...missing);
    missing.unshift(basename(current));
    current = parent;
  }
  throw new RetinueError("too-many-links", `${path} follows more than ${maxLinks} links.`);
}

/** Each path with its real one. */
export function findRealPaths(
  paths: readonly string[],
): Promise<readonly (readonly [path: string, real: string])[]> {
  return Promise.all(paths.map(async (path) => [path, await findRealPath(path)] as const));
}

/** Not by the thread pool: the rules have just resolved the same path, and a trip there costs more than the call. */
function realPathIfThere(path: string): string | undefined {
  try {
    return realpathSync.native(path);
  } catch (error) {
    if (error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ENOTDIR")) {
      return undefined;
    }
    throw error;
  }
}

const maxLinks = 40;
