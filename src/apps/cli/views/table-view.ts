import type { Paint } from "./colour.ts";
import { cutTo, pad, widthOf } from "./text-width.ts";

export interface Column {
  readonly heading: string;
  /** It is never made narrower than this. */
  readonly atLeast: number;
  /** Where room is short, it gets no more than this before the others are cut. */
  readonly atMost?: number;
  readonly style?: keyof Paint;
}

export interface TableOptions {
  readonly columns: readonly Column[];
  readonly rows: readonly (readonly string[])[];
  /** Cells of the terminal; absent means as wide as the texts are. */
  readonly width?: number | undefined;
  readonly paint: Paint;
}

const gap = "  ";

/** Aligned columns. Too narrow a terminal gets one block per row instead. */
export function renderTable({ columns, rows, width, paint }: TableOptions): string {
  const natural = columns.map((column, index) =>
    Math.max(widthOf(column.heading), ...rows.map((row) => widthOf(row[index] ?? ""))),
  );
  const widths = width === undefined ? natural : share(columns, natural, width);
  if (widths === undefined) return renderBlocks(columns, rows, paint, width ?? 0);
  const line = (cells: readonly string[], styled: boolean): string =>
    columns
      .map((column, index) => {
        const cell = cutTo(cells[index] ?? "", widths[index] ?? 0);
        const filled = index === columns.length - 1 ? cell : pad(cell, widths[index] ?? 0);
        return styled && column.style !== undefined ? paint[column.style](filled) : filled;
      })
      .join(gap)
      .trimEnd();
  const heading = line(
    columns.map((column) => column.heading),
    false,
  );
  return [paint.dim(heading), ...rows.map((row) => line(row, true)), ""].join("\n");
}

/** Takes from the columns that are above their usual size, then from the widest; undefined when nothing is left to take. */
function share(columns: readonly Column[], natural: readonly number[], width: number): number[] | undefined {
  const room = width - gap.length * (columns.length - 1);
  const isTight = sum(natural) > room;
  const widths = natural.map((size, index) =>
    isTight ? Math.min(size, columns[index]?.atMost ?? size) : size,
  );
  while (sum(widths) > room) {
    const spare = widths.map((size, index) => size - Math.min(size, columns[index]?.atLeast ?? 0));
    const widest = widths.reduce(
      (best, size, index) => ((spare[index] ?? 0) > 0 && size > (widths[best] ?? -1) ? index : best),
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

function renderBlocks(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  paint: Paint,
  width: number,
): string {
  const blocks = rows.map((row) =>
    row
      .map((cell, index) => {
        const style = columns[index]?.style;
        const text = cutTo(index === 0 ? cell : `  ${cell}`, Math.max(width, 8));
        return style === undefined ? text : paint[style](text);
      })
      .filter((text) => text.trim() !== "")
      .join("\n"),
  );
  return `${blocks.join("\n")}\n`;
}
