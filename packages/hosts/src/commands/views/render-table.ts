import type { Paint } from "../../shared/paint.ts";
import { cutTo, pad, stripControlCharacters, widthOf } from "../../shared/strip-control-characters.ts";

export interface Column {
  readonly heading: string;
  /** It is never made narrower than this. */
  readonly atLeast: number;
  /** Where room is short, it gets no more than this before the others are cut. */
  readonly atMost?: number;
  /** Where less than this is left for it, it goes to a line of its own below the row; for the last column. */
  readonly elseBelow?: number;
  readonly style?: keyof Paint;
  /** The style of one cell, in place of that of the column. */
  readonly styleOf?: (text: string) => keyof Paint | undefined;
}

export interface TableOptions {
  readonly columns: readonly Column[];
  readonly rows: readonly (readonly string[])[];
  /** Cells of the terminal; absent means as wide as the texts are. */
  readonly width?: number | undefined;
  readonly paint: Paint;
}

const gap = "  ";

/** Aligned columns; in a narrow terminal the last one below the others, in a very narrow one no columns at all. */
export function renderTable({ columns, rows: written, width, paint }: TableOptions): string {
  const rows = written.map((row) => row.map(stripControlCharacters));
  const natural = columns.map((column, index) =>
    Math.max(widthOf(column.heading), ...rows.map((row) => widthOf(row[index] ?? ""))),
  );
  if (width === undefined) return renderRows({ columns, rows, widths: natural, paint });
  const widths = share(columns, natural, width);
  const last = columns.length - 1;
  const wanted = Math.min(natural[last] ?? 0, columns[last]?.elseBelow ?? 0);
  if (widths !== undefined && (widths[last] ?? 0) >= wanted)
    return renderRows({ columns, rows, widths, paint });
  const upper = share(columns.slice(0, last), natural.slice(0, last), width);
  return upper === undefined
    ? renderBlocks(rows, columns, { width, paint })
    : renderRows({ columns, rows, widths: upper, paint, below: width });
}

/** Takes from columns that are above their usual size, then from the widest; undefined when nothing is left to take. */
function share(columns: readonly Column[], natural: readonly number[], width: number): number[] | undefined {
  const room = width - gap.length * (columns.length - 1);
  const isTight = sum(natural) > room;
  const widths = natural.map((size, index) =>
    isTight && index < columns.length - 1 ? Math.min(size, columns[index]?.atMost ?? size) : size,
  );
  while (sum(widths) > room) {
    const isSpare = widths.map((size, index) => size > (columns[index]?.atLeast ?? 0));
    const widest = widths.reduce(
      (best, size, index) => (isSpare[index] && size > (widths[best] ?? -1) ? index : best),
      -1,
    );
    if (widest === -1) return undefined;
    widths[widest] = (widths[widest] ?? 1) - 1;
  }
  return widths;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

interface RowsOptions extends Omit<TableOptions, "width"> {
  readonly widths: readonly number[];
  /** The width of the terminal, when the last column is below. */
  readonly below?: number;
}

function renderRows({ columns, rows, widths, paint, below }: RowsOptions): string {
  const line = (cells: readonly string[], isHeading: boolean): string =>
    widths
      .map((width, index) => {
        const cell = pad(cutTo(cells[index] ?? "", width), index === widths.length - 1 ? 0 : width);
        const column = columns[index];
        const style = column?.styleOf?.(cell.trim()) ?? column?.style;
        return isHeading || style === undefined ? cell : paint[style](cell);
      })
      .join(gap)
      .trimEnd();
  const headings = columns.map((column) => column.heading);
  const output = [paint.dim(line(headings, true))];
  for (const row of rows) {
    output.push(line(row, false));
    if (below !== undefined) output.push(paint.dim(cutTo(`${gap}${gap}${row.at(-1) ?? ""}`, below)));
  }
  return `${output.filter((text) => text.trim() !== "").join("\n")}\n`;
}

function renderBlocks(
  rows: readonly (readonly string[])[],
  columns: readonly Column[],
  { width, paint }: { readonly width: number; readonly paint: Paint },
): string {
  const name = columns[0]?.style;
  const room = Math.max(width, 8);
  const blocks = rows.flatMap(([first = "", ...rest]) => {
    const title = cutTo(first, room);
    const middle = rest.slice(0, -1).filter((cell) => cell !== "");
    return [
      name === undefined ? title : paint[name](title),
      cutTo(`${gap}${middle.join(", ")}`, room),
      paint.dim(cutTo(`${gap}${rest.at(-1) ?? ""}`, room)),
    ].filter((text) => text.trim() !== "");
  });
  return `${blocks.join("\n")}\n`;
}
