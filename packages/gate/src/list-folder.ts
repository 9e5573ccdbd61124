// @io
import { type Dirent, readdirSync, statSync } from "node:fs";
import { readdir } from "node:fs/promises";

/** A folder that takes no more bytes than this has few enough entries to be read in one go. */
const smallFolder = 4_096;

/** The entries of a folder, none where it cannot be read. A small one is read without the thread pool, which costs more than it. */
export async function listFolder(path: string): Promise<readonly Dirent[]> {
  try {
    const stats = statSync(path, { throwIfNoEntry: false });
    if (stats?.isDirectory() !== true) return [];
    const options = { withFileTypes: true } as const;
    return stats.size <= smallFolder ? readdirSync(path, options) : await readdir(path, options);
  } catch {
    return [];
  }
}
