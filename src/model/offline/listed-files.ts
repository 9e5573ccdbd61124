import { callsOf, type OfflineConversation } from "./offline-conversation.ts";
import { byText, isCut, readCountRemark, readCounts, readListing } from "./read-listing.ts";

export interface ListedFolder {
  /** As it is before the files' names, without a slash at the end. */
  readonly path: string;
  readonly files: readonly string[];
  readonly lines: number;
}

/** All files that the tools have named so far. */
export interface ListedFiles {
  readonly paths: readonly string[];
  readonly lines: ReadonlyMap<string, number>;
  /** The tools left something out, so every number is a lower bound. */
  readonly isCut: boolean;
  /** What the tools say of all text files, listed or not. */
  readonly total?: { readonly files: number; readonly lines: number };
}

export function listedFiles(conversation: OfflineConversation): ListedFiles {
  const { directory } = conversation;
  const lines = new Map<string, number>();
  const paths = new Set<string>();
  const globs = callsOf(conversation, "Glob").filter(({ isError }) => !isError);
  const counts = callsOf(conversation, "Grep").filter(({ isError }) => !isError);
  for (const { text } of globs) for (const path of readListing(text, directory).paths) paths.add(path);
  for (const { text } of counts)
    for (const [path, count] of readCounts(text, directory)) lines.set(path, count);
  for (const path of lines.keys()) paths.add(path);
  const total = counts.map(({ text }) => readCountRemark(text).total).find((found) => found !== undefined);
  const isWhole = total === undefined ? !counts.some(({ text }) => isCut(text)) : lines.size >= total.files;
  return {
    paths: [...paths].toSorted(byText),
    lines,
    // A list of names that is cut matters only where no count has seen all files.
    isCut: !isWhole || (counts.length === 0 && globs.some(({ text }) => isCut(text))),
    ...(total === undefined ? {} : { total }),
  };
}

/** The folders directly below one, the largest first; `.` is the working folder. */
export function foldersBelow({ paths, lines }: ListedFiles, folder = "."): readonly ListedFolder[] {
  const prefix = folder === "." ? "" : `${folder}/`;
  const byFolder = new Map<string, string[]>();
  for (const path of paths) {
    const slash = path.indexOf("/", prefix.length);
    if (!path.startsWith(prefix) || slash === -1) continue;
    const name = path.slice(0, slash);
    const files = byFolder.get(name);
    if (files === undefined) byFolder.set(name, [path]);
    else files.push(path);
  }
  return [...byFolder]
    .map(([path, files]) => ({ path, files, lines: sum(files.map((file) => lines.get(file) ?? 0)) }))
    .toSorted((a, b) => b.files.length - a.files.length || byText(a.path, b.path));
}

export function filesDirectlyIn({ paths }: ListedFiles, folder = "."): readonly string[] {
  const prefix = folder === "." ? "" : `${folder}/`;
  return paths.filter((path) => path.startsWith(prefix) && !path.includes("/", prefix.length));
}

export function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
