/** Paths of a file listing, and whether the tool says that there are more. */
export interface FileListing {
  readonly paths: readonly string[];
  readonly isCut: boolean;
}

export interface FoundLine {
  readonly path: string;
  readonly line: number;
  readonly text: string;
}

const remark = /^[[(]|^(?:No |Found |Showing |Results|Only |…|\.\.\.)|\btruncated\b/i;
const cutWords =
  /truncat|left out|more (?:files|matches|results|lines|paths)|\bfirst \d|\bof \d[\d,]* |limit/i;

/** Where a tool left out the middle of a text, the lines beside the gap may be halves. */
const gap = /[^\n]*\n+\[… [^\n]* left out[^\n]*\]\n+[^\n]*/g;

/** Reads lines of paths. */
export function readListing(text: string, directory: string | undefined): FileListing {
  const lines = linesOf(text).filter((line) => line !== "");
  const paths = lines.filter((line) => !remark.test(line)).map((line) => relativePath(line, directory));
  return { paths: [...new Set(paths)].toSorted(byText), isCut: isCut(text) };
}

/** Lines per file, from a search that counts. */
export function readCounts(text: string, directory: string | undefined): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const line of linesOf(text)) {
    const [, path, count] = /^(.+):(\d+)$/.exec(line) ?? [];
    if (path !== undefined && !remark.test(path)) counts.set(relativePath(path, directory), Number(count));
  }
  return counts;
}

/** Reads `path:line:text`, sorted by path and line. */
export function readFoundLines(text: string, directory: string | undefined): readonly FoundLine[] {
  return text
    .split("\n")
    .flatMap((line) => {
      const [, path, number, content = ""] = /^((?:[A-Za-z]:)?[^:\n]+):(\d+):(.*)$/.exec(line) ?? [];
      if (path === undefined) return [];
      return [{ path: relativePath(path, directory), line: Number(number), text: content }];
    })
    .toSorted((a, b) => byText(a.path, b.path) || a.line - b.line);
}

export interface FileText {
  readonly lines: readonly { readonly number: number; readonly text: string }[];
  readonly isCut: boolean;
}

/** Takes the line numbers off again that a reading tool puts before each line. */
export function readNumberedLines(text: string): FileText {
  const raw = text.split("\n");
  const numbered = raw.flatMap((line) => {
    const [, number, content = ""] = /^\s*(\d+)(?:\t|→)(.*)$/.exec(line) ?? [];
    return number === undefined ? [] : [{ number: Number(number), text: content }];
  });
  if (numbered.length === 0)
    return { lines: raw.map((line, at) => ({ number: at + 1, text: line })), isCut: false };
  return { lines: numbered, isCut: /^\[Lines? .*(?:Continue|of \d)/m.test(text) };
}

/** What a counting search says of everything it found, and where its list continues. */
export function readCountRemark(text: string): {
  readonly total?: { readonly files: number; readonly lines: number };
  readonly shown?: number;
} {
  const [, lines, files] = /^\[.*?(\d+) matching lines? in (\d+) files?\./m.exec(text) ?? [];
  const [, shown] = /^\[Results \d+ to (\d+) of \d+\. Continue/m.exec(text) ?? [];
  return {
    ...(lines === undefined ? {} : { total: { files: Number(files), lines: Number(lines) } }),
    ...(shown === undefined ? {} : { shown: Number(shown) }),
  };
}

/** Whether a tool says that it left something out. */
export function isCut(text: string): boolean {
  return text.split("\n").some((line) => remark.test(line) && cutWords.test(line));
}

function linesOf(text: string): readonly string[] {
  return text
    .replace(gap, "")
    .split("\n")
    .map((line) => line.trim());
}

function relativePath(path: string, directory: string | undefined): string {
  const slashed = path.replaceAll("\\", "/");
  const base = directory?.replaceAll("\\", "/").replace(/\/+$/, "");
  if (base !== undefined && slashed.startsWith(`${base}/`)) return slashed.slice(base.length + 1);
  return slashed.replace(/^\.\//, "");
}

/** By code units: the same on every machine, whatever its language. */
export function byText(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
