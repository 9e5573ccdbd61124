import { takeStart } from "./limit-text.ts";

export interface LineRange {
  /** The first line that is wanted, counted from 1. */
  readonly start: number;
  readonly count: number;
  /** Longer lines are cut. */
  readonly lineLength: number;
  /** How many characters all lines together may have; the first line is always shown. */
  readonly characters: number;
}

export interface ShownLines {
  readonly start: number;
  readonly lines: readonly string[];
  /** How many lines there were, as far as the text was read. */
  readonly total: number;
  readonly shortened: number;
}

/** Takes a text in pieces of any size and keeps only the lines that are wanted. */
export interface LineWindow {
  take(text: string): void;
  /** Whether no later line can be wanted. */
  readonly full: boolean;
  finish(): ShownLines;
}

export function createLineWindow(range: LineRange): LineWindow {
  const lines: string[] = [];
  let total = 0;
  let characters = 0;
  let shortened = 0;
  let full = false;
  let line = "";
  let length = 0;

  const endLine = (): void => {
    total += 1;
    if (!full && total >= range.start) keepLine();
    line = "";
    length = 0;
  };
  const keepLine = (): void => {
    const plain = length === line.length && line.endsWith("\r") ? line.slice(0, -1) : line;
    const cut = plain.length > range.lineLength;
    const start = takeStart(plain, range.lineLength);
    const shown = cut ? `${start}… [line cut, ${length - start.length} more characters]` : plain;
    if (lines.length > 0 && characters + shown.length > range.characters) {
      full = true;
      return;
    }
    lines.push(shown);
    characters += shown.length + 1;
    if (cut) shortened += 1;
    full = lines.length >= range.count;
  };
  const addToLine = (text: string, from: number, to: number): void => {
    length += to - from;
    // Two characters more than are shown: a carriage return, and the second half of a pair.
    const room = range.lineLength + 2 - line.length;
    if (room > 0 && !full && total + 1 >= range.start) line += text.slice(from, Math.min(to, from + room));
  };

  return {
    take(text) {
      let from = 0;
      for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", from)) {
        addToLine(text, from, at);
        endLine();
        from = at + 1;
      }
      addToLine(text, from, text.length);
    },
    get full() {
      return full;
    },
    finish() {
      if (length > 0) endLine();
      return { start: range.start, lines, total, shortened };
    },
  };
}

/** Each line with its number and a tab before it. */
export function numberLines({ start, lines }: Pick<ShownLines, "start" | "lines">): string {
  return lines.map((line, index) => `${start + index}\t${line}`).join("\n");
}
