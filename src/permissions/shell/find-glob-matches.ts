import { readdir, stat } from "node:fs/promises";
import { posix } from "node:path";
import { matchesName } from "../path-pattern.ts";

const maxMatches = 200;

/** The files that a pattern matches from a folder on, in order, as bash would write them; undefined where they are too many. */
export async function findGlobMatches(
  pattern: string,
  folder: string,
): Promise<readonly string[] | undefined> {
  const segments = pattern.split("/");
  const isAbsolute = pattern.startsWith("/");
  const onlyFolders = segments.length > 1 && segments.at(-1) === "";
  const names = segments.filter((segment, at) => segment !== "" || (at === 0 && !isAbsolute));
  let found: readonly string[] = [isAbsolute ? "/" : ""];
  for (const name of names) {
    const next = await Promise.all(found.map((prefix) => matchIn(prefix, name, folder)));
    found = next.flat();
    if (found.length > maxMatches) return undefined;
  }
  const kept = onlyFolders ? await foldersOf(found, folder) : found;
  return [...kept].sort((left, right) => (left < right ? -1 : 1));
}

async function matchIn(prefix: string, name: string, folder: string): Promise<readonly string[]> {
  const join = (entry: string): string =>
    prefix === "" || prefix === "/" ? `${prefix}${entry}` : `${prefix}/${entry}`;
  const place = posix.resolve(folder, prefix === "" ? "." : prefix);
  if (!/[*?[]/.test(name.replace(/\\[\s\S]/g, ""))) {
    const literal = name.replace(/\\([\s\S])/g, "$1");
    const isThere = await stat(posix.join(place, literal)).then(
      () => true,
      () => false,
    );
    return isThere ? [join(literal)] : [];
  }
  const entries = await readdir(place).catch(() => []);
  const showsHidden = name.startsWith(".") || name.startsWith("\\.");
  return entries
    .filter((entry) => (showsHidden || !entry.startsWith(".")) && matchesName(name, entry))
    .map(join);
}

async function foldersOf(paths: readonly string[], folder: string): Promise<readonly string[]> {
  const checked = await Promise.all(
    paths.map(async (path) => {
      const isFolder = await stat(posix.resolve(folder, path)).then(
        (entry) => entry.isDirectory(),
        () => false,
      );
      return isFolder ? [`${path}/`] : [];
    }),
  );
  return checked.flat();
}
