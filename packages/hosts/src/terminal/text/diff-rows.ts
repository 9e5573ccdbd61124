import { plural } from "../../shared/format.ts";
import { padRow, type Row, rowWidth, type Span, span } from "../screen/row.ts";
import { backgrounds, combine, dim, plain, type Style } from "../screen/style.ts";
import { wrapRow } from "../screen/wrap-row.ts";
import type { FileDiff } from "../session/terminal-session.ts";
import { changedWords, type TextRange } from "./changed-words.ts";
import type { RowContext } from "./row-context.ts";

export interface DiffOptions {
  /** Rows after which the rest is left out and counted. */
  readonly maxRows: number;
  readonly indent?: number;
  /** How the rest is shown; Ctrl+O unless given. */
  readonly wholeKey?: string;
}

/** A change of a file: line numbers, what goes and what comes, and the words that differ. */
export function diffRows(
  { path, hunks }: FileDiff,
  { width, code }: RowContext,
  { maxRows, indent = 2, wholeKey = "ctrl+o" }: DiffOptions,
): readonly Row[] {
  const lines = withinRows(hunks.map(numbered), maxRows);
  const digits = String(Math.max(1, ...lines.map(({ number = 0 }) => number))).length;
  const gutter = indent + digits + 1;
  const shown = lines.slice(0, maxRows);
  const words = pairWords(shown);
  const texts = lineColours(shown, (text) => code.ofFile(text, path));
  const room = Math.max(10, width - gutter);
  const all = shown.map((line, at) => {
    const { kind, text } = line;
    const styled = marked(texts.get(line) ?? [span(text, kind === " " ? dim : plain)], words.get(at) ?? []);
    const under = kind === "+" || kind === "-" ? undersOf[kind] : undefined;
    const cells = styled.map(({ text: part, style, isChanged }) =>
      span(part, under === undefined ? style : combine(style, isChanged ? under.word : under.line)),
    );
    const line1 = span(`${kind} `, under?.line ?? dim);
    const rest = span("  ", under?.line ?? plain);
    return wrapRow(cells, room, { first: [line1], rest: [rest] });
  });
  // A background ends at one column, however long the lines are.
  const edge = Math.min(room, Math.max(0, ...all.flat().map(rowWidth)));
  const rows: Row[] = [];
  let count = 0;
  for (const [at, parts] of all.entries()) {
    if (rows.length + parts.length > maxRows && count > 0) break;
    const { number, kind } = shown[at] ?? { number: undefined, kind: " " };
    for (const [part, row] of parts.entries()) {
      const label = part === 0 ? String(number ?? "").padStart(digits) : " ".repeat(digits);
      rows.push([span(`${" ".repeat(indent)}${label} `, dim), ...padded(row, edge, kind)]);
    }
    count += 1;
  }
  const left = lines.length - count;
  if (left === 0) return rows;
  return [
    ...rows,
    [span(`${" ".repeat(indent)}… ${plural(left, "more line")} (${wholeKey} shows all)`, dim)],
  ];
}

const undersOf = {
  "+": { line: backgrounds.addedLine, word: backgrounds.addedWord },
  "-": { line: backgrounds.removedLine, word: backgrounds.removedWord },
} as const;

function padded(row: Row, width: number, kind: string): Row {
  if (kind !== "+" && kind !== "-") return row;
  const cells = padRow(row, width);
  return cells === row ? row : [...row, span(" ".repeat(width - rowWidth(row)), undersOf[kind].line)];
}

export function diffCounts({ hunks }: FileDiff): { readonly added: number; readonly removed: number } {
  const lines = hunks.flatMap((hunk) => hunk.lines);
  return {
    added: lines.filter((line) => line.startsWith("+")).length,
    removed: lines.filter((line) => line.startsWith("-")).length,
  };
}

interface DiffLine {
  readonly number: number | undefined;
  readonly kind: string;
  readonly text: string;
}

/** Where there is no room for all lines around a change, what has changed is still seen. */
function withinRows(hunks: readonly (readonly DiffLine[])[], maxRows: number): readonly DiffLine[] {
  const all = joinedHunks(hunks);
  if (all.length <= maxRows) return all;
  for (let around = maxAround; around > 0; around -= 1) {
    const near = joinedHunks(hunks.flatMap((lines) => nearChanges(lines, around)));
    if (near.length <= maxRows) return near;
  }
  return joinedHunks(hunks.flatMap((lines) => nearChanges(lines, 0)));
}

const maxAround = 2;

function joinedHunks(hunks: readonly (readonly DiffLine[])[]): readonly DiffLine[] {
  return hunks.flatMap((lines, at) => [...(at === 0 ? [] : [gap]), ...lines]);
}

const gap: DiffLine = { number: undefined, kind: " ", text: "⋯" };

/** The lines that have changed with so many around them, a group for each stretch. */
function nearChanges(lines: readonly DiffLine[], around: number): readonly (readonly DiffLine[])[] {
  const changes = lines.flatMap(({ kind }, at) => (kind === " " ? [] : [at]));
  const groups: DiffLine[][] = [];
  let before = Number.NEGATIVE_INFINITY;
  for (const at of changes.flatMap((one) => range(one - around, one + around))) {
    const line = lines[at];
    if (at <= before || line === undefined) continue;
    if (at === before + 1) groups.at(-1)?.push(line);
    else groups.push([line]);
    before = at;
  }
  return groups;
}

function range(from: number, to: number): readonly number[] {
  return Array.from({ length: to - from + 1 }, (_, at) => from + at);
}

function numbered({ oldStart, newStart, lines }: FileDiff["hunks"][number]): readonly DiffLine[] {
  let oldLine = oldStart;
  let newLine = newStart;
  return lines.flatMap((line): DiffLine[] => {
    const kind = line[0] ?? " ";
    const text = line.slice(1).replace(/\r$/, "");
    if (kind === "-") return [{ number: oldLine++, kind, text }];
    if (kind === "+") return [{ number: newLine++, kind, text }];
    if (kind !== " ") return [];
    oldLine += 1;
    return [{ number: newLine++, kind, text }];
  });
}

/** The colours of each line, as it is in the text before the change or after it. */
function lineColours(
  lines: readonly DiffLine[],
  read: (text: string) => readonly Row[] | undefined,
): ReadonlyMap<DiffLine, Row> {
  const found = new Map<DiffLine, Row>();
  for (const gone of ["+", "-"]) {
    const side = lines.filter(({ kind }) => kind !== gone);
    const rows = read(side.map(({ text }) => text).join("\n"));
    if (rows?.length === side.length) side.forEach((line, at) => void found.set(line, rows[at] ?? []));
  }
  return found;
}

const maxAhead = 8;

/** What has changed within the lines that take each other's place, by the index of the line. */
function pairWords(lines: readonly DiffLine[]): ReadonlyMap<number, readonly TextRange[]> {
  const found = new Map<number, readonly TextRange[]>();
  let at = 0;
  while (at < lines.length) {
    const middle = at + countFrom(lines, at, "-");
    const end = middle + countFrom(lines, middle, "+");
    let next = middle;
    for (let before = at; before < middle; before += 1) {
      // Lines may have been added between two that have changed.
      for (let after = next; after < Math.min(end, next + maxAhead); after += 1) {
        const words = changedWords(lines[before]?.text ?? "", lines[after]?.text ?? "");
        if (words === undefined) continue;
        found.set(before, words.before);
        found.set(after, words.after);
        next = after + 1;
        break;
      }
    }
    at = Math.max(at + 1, end);
  }
  return found;
}

function countFrom(lines: readonly DiffLine[], from: number, kind: string): number {
  let count = 0;
  while (lines[from + count]?.kind === kind) count += 1;
  return count;
}

/** The spans of a line, cut where the ranges begin and end. */
function marked(
  row: Row,
  ranges: readonly TextRange[],
): readonly { readonly text: string; readonly style: Style; readonly isChanged: boolean }[] {
  let at = 0;
  return row.flatMap(({ text, style }: Span) => {
    const start = at;
    at += text.length;
    const cuts = ranges
      .flatMap(({ from, to }) => [from, to])
      .filter((cut) => cut > start && cut < at)
      .map((cut) => cut - start);
    const edges = [0, ...cuts, text.length];
    return edges.slice(1).map((end, part) => {
      const from = edges[part] ?? 0;
      const isChanged = ranges.some((range) => range.from <= start + from && start + end <= range.to);
      return { text: text.slice(from, end), style, isChanged };
    });
  });
}
