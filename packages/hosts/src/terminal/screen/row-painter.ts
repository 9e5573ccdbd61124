import { isSimple, type Row, rowWidth, type Span } from "./row.ts";
import { type Palette, plain, resetSequence } from "./style.ts";

/** A row as it is on the terminal. */
export interface PaintedRow {
  readonly row: Row;
  readonly bytes: string;
  readonly width: number;
  /** Terminals disagree about the cells of some of its characters, such as marks without a letter and joined emoji. */
  readonly isUnclear: boolean;
}

/** Turns rows into bytes; rows never change, so each is painted once. */
export class RowPainter {
  readonly #palette: Palette;
  readonly #painted = new WeakMap<Row, PaintedRow>();

  constructor(palette: Palette) {
    this.#palette = palette;
  }

  paint(row: Row): PaintedRow {
    const known = this.#painted.get(row);
    if (known !== undefined) return known;
    const isUnclear = row.some(({ text }) => !isSimple(text) && unclearPattern.test(text));
    const painted = { row, bytes: this.#bytesOf(row), width: rowWidth(row), isUnclear };
    this.#painted.set(row, painted);
    return painted;
  }

  /** The bytes that turn one row into another when the cursor is anywhere in it: what is the same at the start stays. */
  change(before: PaintedRow | undefined, after: PaintedRow): string {
    const same = before === undefined ? 0 : commonStart(before.row, after.row);
    const move = same > 0 ? `\r\u001b[${same}C` : "\r";
    const bytes = this.#bytesOf(withoutStart(after.row, same));
    // Where it is unclear what the old row left in which cell, nothing of it stays.
    if (before?.isUnclear === true) return `${move}\u001b[K${bytes}`;
    return `${move}${bytes}${before !== undefined && before.width > after.width ? "\u001b[K" : ""}`;
  }

  #bytesOf(row: Row): string {
    let bytes = "";
    let current = "";
    for (const { text, style } of row) {
      if (text === "") continue;
      const wanted = style === plain ? "" : this.#palette(style);
      if (wanted !== current) {
        if (current !== "") bytes += resetSequence;
        bytes += wanted;
        current = wanted;
      }
      bytes += text;
    }
    return current === "" ? bytes : bytes + resetSequence;
  }
}

const unclearPattern =
  /[\p{M}\p{Cf}\p{Default_Ignorable_Code_Point}\p{Emoji_Modifier}\p{Regional_Indicator}]/u;

/**
 * How many cells are the same at the start of both rows. Counted only over characters that take one cell each and join
 * with nothing, so that the count is also a column.
 */
function commonStart(before: Row, after: Row): number {
  let same = 0;
  let old = 0;
  let oldAt = 0;
  for (const { text, style } of after) {
    for (let at = 0; at < text.length; at += 1) {
      while (before[old] !== undefined && oldAt >= (before[old]?.text.length ?? 0)) {
        old += 1;
        oldAt = 0;
      }
      const other = before[old];
      const isSame = other?.style === style && other.text[oldAt] === text[at];
      if (!isSame || !isSingle(text.charCodeAt(at))) return stepBack(same, before, after);
      oldAt += 1;
      same += 1;
    }
  }
  return stepBack(same, before, after);
}

/** What follows may combine with the last character that is the same; then that one is written again too. */
function stepBack(same: number, before: Row, after: Row): number {
  const next = [codeAt(before, same), codeAt(after, same)];
  const isSafe = next.every((code) => code === undefined || isSingle(code));
  return isSafe ? same : Math.max(0, same - 1);
}

function codeAt(row: Row, index: number): number | undefined {
  let left = index;
  for (const { text } of row) {
    if (left < text.length) return text.charCodeAt(left);
    left -= text.length;
  }
  return undefined;
}

function isSingle(code: number): boolean {
  return (code >= 0x20 && code <= 0x7e) || isSimple(String.fromCharCode(code));
}

function withoutStart(row: Row, cells: number): Row {
  if (cells === 0) return row;
  let left = cells;
  return row.flatMap(({ text, style }): Span[] => {
    const rest = text.slice(left);
    left = Math.max(0, left - text.length);
    return rest === "" ? [] : [{ text: rest, style }];
  });
}
