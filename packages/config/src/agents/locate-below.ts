import type { DocumentPath } from "@retinue/base/foundation/diagnostic.ts";

/** A spot in the lines below a key; both count from 0. */
export interface LinePlace {
  readonly line: number;
  readonly column: number;
  readonly length: number;
}

/** The deepest part of a path that can be found in block-style YAML lines: keys by their name, list entries by their dash. */
export function locateBelow(lines: readonly string[], path: DocumentPath): LinePlace | undefined {
  let place: LinePlace | undefined;
  let range = { from: 0, to: lines.length };
  for (const segment of path) {
    const found =
      typeof segment === "number" ? findItem(lines, range, segment) : findKey(lines, range, segment);
    if (found === undefined) break;
    ({ place, range } = found);
  }
  return place;
}

interface Range {
  readonly from: number;
  readonly to: number;
}

interface Found {
  readonly place: LinePlace;
  /** Where what belongs to it is. */
  readonly range: Range;
}

function findKey(lines: readonly string[], { from, to }: Range, key: string): Found | undefined {
  for (let line = from; line < to; line += 1) {
    const text = lines[line] ?? "";
    const column = contentColumn(text);
    if (!text.startsWith(`${key}:`, column)) continue;
    const isEnd = (other: string): boolean =>
      indentOf(other) < column || (indentOf(other) === column && !isItem(other));
    return {
      place: { line, column, length: key.length },
      range: { from: line + 1, to: endOf(lines, line + 1, to, isEnd) },
    };
  }
  return undefined;
}

function findItem(lines: readonly string[], { from, to }: Range, wanted: number): Found | undefined {
  const first = lines.findIndex((line, index) => index >= from && index < to && isItem(line));
  if (first === -1) return undefined;
  const indent = indentOf(lines[first] ?? "");
  let count = -1;
  for (let line = first; line < to; line += 1) {
    const text = lines[line] ?? "";
    if (!isItem(text) || indentOf(text) !== indent) continue;
    count += 1;
    if (count < wanted) continue;
    const column = contentColumn(text);
    const isEnd = (other: string): boolean => indentOf(other) <= indent;
    return {
      place: { line, column, length: Math.max(1, text.trimEnd().length - column) },
      range: { from: line, to: endOf(lines, line + 1, to, isEnd) },
    };
  }
  return undefined;
}

function endOf(lines: readonly string[], from: number, to: number, isEnd: (line: string) => boolean): number {
  for (let line = from; line < to; line += 1) {
    const text = lines[line] ?? "";
    if (text.trim() !== "" && isEnd(text)) return line;
  }
  return to;
}

function indentOf(line: string): number {
  return Math.max(0, line.search(/\S/));
}

function isItem(line: string): boolean {
  return /^\s*-(?:\s|$)/.test(line);
}

/** Where the text of a line begins, behind the dashes of list entries. */
function contentColumn(line: string): number {
  return /^\s*(?:-\s+)*/.exec(line)?.[0].length ?? 0;
}
