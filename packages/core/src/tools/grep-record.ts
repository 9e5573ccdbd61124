/** One line of ripgrep's output in the form `path NUL line:text`. */
export interface FoundLine {
  readonly path: string;
  readonly line: number;
  readonly text: string;
  /** False for lines around a match. */
  readonly isMatch: boolean;
}

export type GrepRecord =
  | { readonly type: "line"; readonly found: FoundLine }
  | { readonly type: "count"; readonly path: string; readonly count: number }
  /** Lines were left out here. */
  | { readonly type: "gap" }
  | { readonly type: "binary"; readonly path: string };

/** Reads ripgrep's output as it comes, in pieces of any size. */
export function createRecordReader(): (text: string) => GrepRecord[] {
  let waiting = "";
  return (text) => {
    waiting += text;
    const records: GrepRecord[] = [];
    let from = 0;
    for (let end = endOfRecord(waiting, from); end !== -1; end = endOfRecord(waiting, from)) {
      const record = readRecord(waiting.slice(from, end));
      if (record !== undefined) records.push(record);
      from = end + 1;
    }
    waiting = waiting.slice(from);
    return records;
  };
}

/** Paths parted by NUL, as they come. */
export function createPathReader(): (text: string) => string[] {
  let waiting = "";
  return (text) => {
    const paths = (waiting + text).split("\0");
    waiting = paths.pop() ?? "";
    return paths;
  };
}

/** A path may hold a line break, so a record ends at the first one behind its NUL; two kinds of records have no NUL. */
function endOfRecord(text: string, from: number): number {
  const lineEnd = text.indexOf("\n", from);
  if (lineEnd === -1) return -1;
  const first = text.slice(from, lineEnd);
  if (first === "--" || binaryNote.test(first)) return lineEnd;
  const nul = text.indexOf("\0", from);
  return nul === -1 ? -1 : text.indexOf("\n", nul);
}

function readRecord(text: string): GrepRecord | undefined {
  if (text === "--") return { type: "gap" };
  const nul = text.indexOf("\0");
  const path = text.slice(0, nul);
  if (nul === -1) return { type: "binary", path: text.replace(binaryNote, "") };
  const rest = text.slice(nul + 1);
  const match = /^(\d+)([:-])/.exec(rest);
  if (match === null) return /^\d+$/.test(rest) ? { type: "count", path, count: Number(rest) } : undefined;
  const line = rest.slice(match[0].length);
  const found = {
    path,
    line: Number(match[1]),
    text: line.endsWith("\r") ? line.slice(0, -1) : line,
    isMatch: match[2] === ":",
  };
  return { type: "line", found };
}

const binaryNote = /: binary file matches \(found [^\0]*$/;
