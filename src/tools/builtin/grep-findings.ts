import { createPathReader, createRecordReader, type FoundLine, type GrepRecord } from "../grep-record.ts";

export type GrepMode = "content" | "files_with_matches" | "count";

/** Lines of one file; undefined means lines that were left out. */
export interface FileFindings {
  readonly path: string;
  readonly lines: readonly (FoundLine | undefined)[];
  readonly count: number;
}

export interface GrepFindings {
  readonly files: readonly FileFindings[];
  readonly binaries: readonly string[];
  /** How many records there were of files that may be shown. */
  readonly total: number;
}

interface OpenFindings {
  readonly path: string;
  readonly lines: (FoundLine | undefined)[];
  count: number;
}

/**
 * Gathers what a search finds, by file, until there is more than anybody reads. Nothing about a file that may not be
 * shown counts anywhere, or the one that searches could learn what is in it by asking often enough.
 */
export function createFindings(
  mode: GrepMode,
  mayShow: (path: string) => boolean,
): { take(text: string): "more" | "enough"; finish(): GrepFindings } {
  const files = new Map<string, OpenFindings>();
  const binaries: string[] = [];
  const readPaths = createPathReader();
  const readRecords = createRecordReader();
  let total = 0;
  let characters = 0;
  let gap = false;

  // Files come one after the other, with many records each.
  let last: { readonly path: string; readonly isShown: boolean } | undefined;
  const isShown = (path: string): boolean => {
    if (last?.path !== path) last = { path, isShown: mayShow(path) };
    return last.isShown;
  };
  const fileAt = (path: string): OpenFindings | undefined => {
    if (!isShown(path)) return undefined;
    total += 1;
    const known = files.get(path) ?? { path, lines: [], count: 0 };
    files.set(path, known);
    return known;
  };
  const takeLine = (found: FoundLine): void => {
    const file = fileAt(found.path);
    if (file === undefined) return;
    if (gap && file.lines.length > 0) file.lines.push(undefined);
    gap = false;
    file.lines.push(found);
    if (found.isMatch) file.count += 1;
    characters += found.text.length;
  };
  const takeRecord = (record: GrepRecord): void => {
    if (record.type === "gap") gap = true;
    else if (record.type === "line") takeLine(record.found);
    else if (record.type === "binary") {
      if (!isShown(record.path)) return;
      total += 1;
      binaries.push(record.path);
    } else {
      const file = fileAt(record.path);
      if (file !== undefined) file.count = record.count;
    }
  };

  return {
    take(text) {
      if (mode === "files_with_matches") {
        for (const path of readPaths(text)) fileAt(path);
      } else for (const record of readRecords(text)) takeRecord(record);
      return total >= maxRecords || characters >= maxCharacters ? "enough" : "more";
    },
    finish: () => ({ files: [...files.values()], binaries, total }),
  };
}

const maxRecords = 20_000;
const maxCharacters = 2_000_000;
