import { readdir } from "node:fs/promises";
import { posix } from "node:path";

export interface BelowOptions {
  /** Whether an entry is one that is looked for. */
  readonly matches: (path: string, isLink: boolean) => boolean;
  /** Names that begin with a dot are left out. */
  readonly visible?: boolean;
  /** Folders of these names are not entered. */
  readonly skip?: readonly string[];
  readonly maxEntries: number;
}

export interface Below {
  readonly found?: string;
  /** There was more than could be looked at. */
  readonly isIncomplete?: true;
}

/** Looks for one entry below a folder; links are not followed, and what cannot be read holds nothing. */
export async function findBelow(folder: string, options: BelowOptions): Promise<Below> {
  const { matches, visible = false, skip = [], maxEntries } = options;
  const waiting = [folder];
  let seen = 0;
  for (let at = waiting.pop(); at !== undefined; at = waiting.pop()) {
    const entries = await readdir(at, { withFileTypes: true }).catch(() => []);
    for (const entry of entries) {
      seen += 1;
      if (seen > maxEntries) return { isIncomplete: true };
      if (visible && entry.name.startsWith(".")) continue;
      const path = posix.join(at, entry.name);
      if (matches(path, entry.isSymbolicLink())) return { found: path };
      if (entry.isDirectory() && !skip.includes(entry.name)) waiting.push(path);
    }
  }
  return {};
}
