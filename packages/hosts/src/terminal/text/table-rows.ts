import { Lexer, type Tokens } from "marked";
import { padRow, type Row, rowWidth, span } from "../screen/row.ts";
import { bold, dim, plain } from "../screen/style.ts";
import { longestWord, wrapRow } from "../screen/wrap-row.ts";
import { inlineSpans } from "./inline-spans.ts";

export function isTableLine(line: string): boolean {
  return /^\s*\|.*\|/.test(line) || (line.includes("|") && isTableDelimiter(line));
}

/** `|---|:--:|`: what makes a table of the lines around it. */
export function isTableDelimiter(line: string): boolean {
  return /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)+\|?\s*$/.test(line) || /^\s*\|\s*:?-+:?\s*\|\s*$/.test(line);
}

const separator = " │ ";
const minColumn = 4;

/** A table with aligned columns; one that is wider than the window becomes a list of its cells. */
export function tableRows(lines: readonly string[], width: number): readonly Row[] {
  const [token] = Lexer.lex(`${lines.join("\n")}\n`, { gfm: true });
  if (token?.type !== "table") return lines.flatMap((line) => wrapRow(inlineSpans(line), width));
  const { header, rows, align } = token as Tokens.Table;
  const heads = header.map(({ text }) => inlineSpans(text, bold));
  const cells = rows.map((cellsOfRow) => cellsOfRow.map(({ text }) => inlineSpans(text)));
  const widths = heads.map((head, at) =>
    Math.max(rowWidth(head), ...cells.map((one) => rowWidth(one[at] ?? []))),
  );
  const words = heads.map((head, at) =>
    Math.max(minColumn, longestWord(head), ...cells.map((one) => longestWord(one[at] ?? []))),
  );
  const fitting = shareWidth(widths, words, width - separator.length * (widths.length - 1));
  if (fitting === undefined) return asList(heads, cells, width);
  const rule = [span(fitting.map((size) => "─".repeat(size)).join("─┼─"), dim)];
  const linesOf = (parts: readonly Row[]): readonly Row[] => cellLines(parts, fitting, align);
  return [...linesOf(heads), rule, ...cells.flatMap(linesOf)];
}

type Align = Tokens.Table["align"][number];

/** A cell that is longer than its column continues in the next line of the same row. */
function cellLines(
  parts: readonly Row[],
  widths: readonly number[],
  align: readonly Align[],
): readonly Row[] {
  const wrapped = widths.map((size, at) => wrapRow(parts[at] ?? [], size));
  const height = Math.max(...wrapped.map((lines) => lines.length));
  return Array.from({ length: height }, (_, line) =>
    widths.flatMap((size, at) => [
      ...(at === 0 ? [] : [span(separator, dim)]),
      ...aligned(wrapped[at]?.[line] ?? [], size, {
        align: align[at] ?? null,
        isLast: at === widths.length - 1,
      }),
    ]),
  );
}

function aligned(
  cell: Row,
  size: number,
  { align, isLast }: { readonly align: Align; readonly isLast: boolean },
): Row {
  const missing = size - rowWidth(cell);
  if (align === "right") return [{ text: " ".repeat(missing), style: plain }, ...cell];
  if (align === "center") {
    const before = Math.floor(missing / 2);
    return padRow([{ text: " ".repeat(before), style: plain }, ...cell], size);
  }
  return isLast ? cell : padRow(cell, size);
}

/** Takes from the widest columns until all fit; undefined where a word of a column would have to be broken. */
function shareWidth(
  widths: readonly number[],
  least: readonly number[],
  room: number,
): readonly number[] | undefined {
  const fitting = [...widths];
  const total = (): number => fitting.reduce((sum, size) => sum + size, 0);
  while (total() > room) {
    const spare = fitting.map((size, at) => (size > (least[at] ?? 0) ? size : 0));
    const widest = spare.indexOf(Math.max(...spare));
    if ((spare[widest] ?? 0) === 0) return undefined;
    fitting[widest] = (fitting[widest] ?? 0) - 1;
  }
  return fitting;
}

function asList(heads: readonly Row[], cells: readonly (readonly Row[])[], width: number): readonly Row[] {
  return cells.flatMap((one) =>
    one.flatMap((cell, at) =>
      wrapRow([...(heads[at] ?? []), span(": "), ...cell], width, {
        first: [span(at === 0 ? "- " : "  ")],
        rest: [span("    ")],
      }),
    ),
  );
}
