import { createPathReader, createRecordReader, type FoundLine, type GrepRecord } from "../grep-output.ts";

export type GrepMode = "content" | "files_with_matches" | "count";

/** Lines of one file; undefined stands for lines that were left out. */
export interface FileFindings {
  readonly path: string;
  readonly lines: readonly (FoundLine | undefined)[];
  readonly count: number;
}

export interface GrepFindings {
  readonly files: readonly FileFindings[];
  readonly binaries: readonly string[];
  /** Files with matches that may not be read. */
  readonly hidden: number;
  /** How many records came. */
  readonly total: number;
}

interface OpenFindings {
  readonly path: string;
  readonly lines: (FoundLine | undefined)[];
  count: number;
}

/** Gathers what a search finds, by file, until there is more than anybody reads. */
export function createFindings(
  mode: GrepMode,
  mayShow: (path: string) => boolean,
): { take(text: string): "more" | "enough"; finish(): GrepFindings } {
  const files = new Map<string, OpenFindings>();
  const hidden = new Set<string>();
  const binaries: string[] = [];
  const readPaths = createPathReader();
  const readRecords = createRecordReader();
  let total = 0;
  let characters = 0;
  let gap = false;

  const fileAt = (path: string): OpenFindings | undefined => {
    if (!mayShow(path)) {
      hidden.add(path);
      return undefined;
    }
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
    total += 1;
    if (record.type === "gap") gap = true;
    else if (record.type === "line") takeLine(record.found);
    else if (record.type === "binary") {
      if (mayShow(record.path)) binaries.push(record.path);
      else hidden.add(record.path);
    } else {
      const file = fileAt(record.path);
      if (file !== undefined) file.count = record.count;
    }
  };

  return {
    take(text) {
      if (mode === "files_with_matches") {
        for (const path of readPaths(text)) {
          total += 1;
          fileAt(path);
        }
      } else for (const record of readRecords(text)) takeRecord(record);
      return total >= maxRecords || characters >= maxCharacters ? "enough" : "more";
    },
    finish: () => ({ files: [...files.values()], binaries, hidden: hidden.size, total }),
  };
}

const maxRecords = 20_000;
const maxCharacters = 2_000_000;
