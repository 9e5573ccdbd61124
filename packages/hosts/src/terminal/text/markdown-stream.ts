import { Lexer, type Tokens } from "marked";
import { emptyRow, padRow, type Row, rowText, rowWidth, span } from "../screen/row.ts";
import { bold, colours, combine, dim, plain, type Style } from "../screen/style.ts";
import { longestWord, wrapRow } from "../screen/wrap-row.ts";
import type { CodeStream } from "./code-colours.ts";
import { inlineSpans } from "./inline-spans.ts";
import type { RowContext } from "./row-context.ts";

interface Fence {
  readonly mark: string;
  readonly indent: string;
  readonly language: string;
}

/**
 * Markdown that arrives in pieces. A line is final when its end has come, so what is finished can be written once and for
 * all; only an unfinished line, a table that still grows, or markup that is still open is kept back. Of an unfinished line of
 * many rows the last ones are. The work for each piece does not grow with the text before it.
 */
export class MarkdownStream {
  readonly #context: () => RowContext;
  #rest = "";
  #held: string[] = [];
  #fence: Fence | undefined;
  /** The colours of the code of the fence. */
  #code: CodeStream | undefined;
  /** What continues a line whose first rows are written. */
  #margin: Margin | undefined;
  /** Below this length of the unfinished line nothing more of it can be written. */
  #longFrom = 0;
  #isInList = false;
  #isGap = false;
  #isStarted = false;

  constructor(context: () => RowContext) {
    this.#context = context;
  }

  /** Whether something is kept back or open, so that other rows would be in the middle of it. */
  get isMidBlock(): boolean {
    return this.#rest !== "" || this.#held.length > 0 || this.#fence !== undefined;
  }

  /** Takes more text and gives the rows that are final now. */
  push(text: string): readonly Row[] {
    this.#rest += text;
    const end = this.#rest.lastIndexOf("\n");
    if (end === -1) return this.#takeLong();
    const lines = this.#rest
      .slice(0, end)
      .split("\n")
      .map((line) => singleLine(line.replace(/\r$/, "")));
    this.#rest = this.#rest.slice(end + 1);
    this.#longFrom = 0;
    const rows: Row[] = [];
    for (let at = 0; at < lines.length; ) {
      const fence = this.#fence;
      const run = fence === undefined ? 0 : codeLength(lines, at, fence);
      rows.push(
        ...(fence === undefined || run === 0
          ? this.#take(lines[at] ?? "")
          : this.#takeCode(lines.slice(at, at + run), fence)),
      );
      at += Math.max(1, run);
    }
    return [...rows, ...this.#takeLong()];
  }

  /** The first rows of a long line that is not finished: those that nothing that follows can change. */
  #takeLong(): readonly Row[] {
    const width = this.#width();
    const { length } = this.#rest;
    if (length < Math.max(this.#longFrom, width * maxLiveRows)) return [];
    this.#longFrom = length + width;
    const text = singleLine(this.#rest);
    const margin = this.#margin ?? marginOf(text);
    if (margin === undefined || this.#fence !== undefined || this.#held.length > 0) return [];
    const all = this.#lineRows(text).map(rowText);
    const spaces = [...text.matchAll(/(?<=\S) +(?=\S)/g)].map(({ index }) => index);
    for (let count = all.length - keptRows; count > 0; count -= 1) {
      // The last of the places for which something holds that holds for all places before it.
      const holds: (place: number) => boolean = (at) => this.#lineRows(text.slice(0, at)).length <= count;
      let low = 0;
      let high = spaces.length;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (holds(spaces[middle] ?? 0)) low = middle + 1;
        else high = middle;
      }
      const end = spaces[low - 1];
      if (end === undefined || !isSettled(text.slice(0, end))) continue;
      const rows = this.#lineRows(text.slice(0, end));
      if (rows.length !== count || rows.some((row, at) => rowText(row) !== all[at])) continue;
      this.#rest = text.slice(end).trimStart();
      this.#longFrom = 0;
      const finished = this.#finish(rows);
      this.#margin = margin;
      return finished;
    }
    return [];
  }

  /** Rows of what is not final yet; asked for each frame. */
  live(): readonly Row[] {
    if (this.#rest === "" && this.#held.length === 0) return [];
    const isTable = this.#margin === undefined && this.#held.length > 0 && this.#held.every(isTableLine);
    const held = isTable ? [] : this.#held.slice(0, -1);
    const rest = singleLine(this.#rest);
    const last = isTable ? rest : [...this.#held.slice(-1), rest].join(" ").trimEnd();
    const table = isTable ? tableRows(this.#held, this.#width()) : [];
    const rows = [...table, ...held.flatMap((line) => this.#lineRows(line)), ...this.#liveLine(last)];
    return this.#isGap && this.#isStarted ? [emptyRow, ...rows] : rows;
  }

  /** The text is complete: everything that was kept back. */
  end(): readonly Row[] {
    const last = this.#rest === "" ? [] : this.push("\n");
    const rows = [...last, ...this.#release()];
    this.#closeFence();
    this.#margin = undefined;
    this.#longFrom = 0;
    this.#isInList = false;
    this.#isGap = false;
    this.#isStarted = false;
    return rows;
  }

  #liveLine(line: string): readonly Row[] {
    if (line === "" || (this.#margin === undefined && fenceOf(line) !== undefined)) return [];
    return this.#fence === undefined
      ? this.#lineRows(line)
      : this.#codeRows([line], this.#fence, "look").flatMap((row) => wrapRow(row, this.#width()));
  }

  #width(): number {
    return this.#context().width;
  }

  #take(line: string): readonly Row[] {
    if (this.#margin !== undefined) return this.#takeText(line);
    if (this.#fence !== undefined) {
      this.#closeFence();
      return [];
    }
    const fence = fenceOf(line);
    if (fence !== undefined) {
      const before = this.#release();
      this.#fence = fence;
      this.#code = this.#context().code.stream(fence.language);
      return before;
    }
    if (line.trim() === "") {
      const before = this.#release();
      this.#isGap = true;
      return before;
    }
    return this.#takeText(line);
  }

  #takeCode(lines: readonly string[], fence: Fence): readonly Row[] {
    return this.#finish(this.#codeRows(lines, fence, "take"));
  }

  #closeFence(): void {
    this.#fence = undefined;
    this.#code = undefined;
  }

  /** Code is kept as it was written, so that it can be copied; a line longer than the window is wrapped by the terminal. */
  #codeRows(lines: readonly string[], { indent }: Fence, step: "take" | "look"): readonly Row[] {
    const texts = lines.map((line) => {
      const own = line.startsWith(indent) ? line.slice(indent.length) : line.trimStart();
      return own.replaceAll("\t", "    ").trimEnd();
    });
    const margin = `  ${indent.slice(0, maxIndent)}`;
    const coloured = step === "take" ? this.#code?.take(texts) : texts.map((text) => this.#code?.look(text));
    return texts.map((text, at) => {
      if (text === "") return [span("")];
      const row = coloured?.[at];
      return row === undefined ? [span(`${margin}${text}`, colours.code)] : [span(margin), ...row];
    });
  }

  #takeText(line: string): readonly Row[] {
    const isTable = this.#margin === undefined && this.#held.length > 0 && this.#held.every(isTableLine);
    if (this.#margin === undefined && isTableLine(line) && (isTable || this.#held.length === 0)) {
      this.#held.push(line);
      return [];
    }
    if (isTableDelimiter(line) && this.#held.length === 0) return this.#finish(this.#lineRows(line));
    const before = isTable ? this.#release() : [];
    const joined = [...this.#held, line].join(" ");
    // Markup that is still open may be closed in the next line.
    if (isOpen(joined) && this.#held.length < maxHeld) {
      this.#held.push(line);
      return before;
    }
    this.#held = [];
    return [...before, ...this.#finish(this.#lineRows(joined))];
  }

  #release(): readonly Row[] {
    if (this.#held.length === 0) return [];
    const held = this.#held;
    this.#held = [];
    const isTable = held.length > 1 && isTableDelimiter(held[1] ?? "");
    return this.#finish(
      isTable ? tableRows(held, this.#width()) : held.flatMap((line) => this.#lineRows(line)),
    );
  }

  /** Puts an empty row before what follows an empty line. */
  #finish(rows: readonly Row[]): readonly Row[] {
    if (rows.length === 0) return rows;
    this.#margin = undefined;
    const needsGap = this.#isGap && this.#isStarted;
    this.#isGap = false;
    this.#isStarted = true;
    return needsGap ? [emptyRow, ...rows] : rows;
  }

  #lineRows(line: string): readonly Row[] {
    const width = this.#width();
    if (this.#margin !== undefined) {
      const { row, style } = this.#margin;
      return wrapRow(inlineSpans(line, style), width, { first: row });
    }
    const [, spaces = "", rest = ""] = /^(\s*)(.*)$/.exec(line.replaceAll("\t", "    ")) ?? [];
    const heading = /^(#{1,6})\s+(.*?)\s*#*$/.exec(rest);
    if (heading !== null)
      return wrapRow(inlineSpans(heading[2] ?? "", headingStyle(heading[1] ?? "")), width);
    if (/^([-*_])(\s*\1){2,}\s*$/.test(rest)) return [[span("─".repeat(Math.min(width, 40)), dim)]];
    const quote = quoteMark.exec(rest);
    if (quote !== null) {
      const text = rest.slice(quote[0].length);
      return wrapRow(inlineSpans(text, dim), width, { first: quoteMargin(spaces) });
    }
    const item = itemLine.exec(rest);
    if (item !== null) {
      this.#isInList = true;
      return itemRows(item, spaces, width);
    }
    if (spaces.length >= 4 && !this.#isInList) return [[span(`${spaces}${rest}`, colours.code)]];
    if (spaces === "") this.#isInList = false;
    return wrapRow(inlineSpans(rest), width, { first: [span(spaces.slice(0, maxIndent))] });
  }
}

/** Other line ends than those of Markdown are spaces; patterns for a line would not match across them. */
function singleLine(text: string): string {
  return text.replace(/[\r\u2028\u2029]+/g, " ");
}

/** How many lines from here on are code, before the fence is closed. */
function codeLength(lines: readonly string[], from: number, { mark }: Fence): number {
  const end = lines.findIndex(
    (line, at) => at >= from && line.trim().startsWith(mark) && /^(`+|~+)\s*$/.test(line.trim()),
  );
  return (end === -1 ? lines.length : end) - from;
}

/** An unfinished line may take so many rows before its first ones are written; so many are kept. */
const maxLiveRows = 6;
const keptRows = 2;

/** What comes before the rows of a line, and their style. */
interface Margin {
  readonly row: Row;
  readonly style: Style;
}

const quoteMark = /^(>\s?)+/;
const itemLine = /^([-*+]|\d{1,9}[.)])\s+(\[[ xX]\]\s+)?(.*)$/;

function quoteMargin(spaces: string): Row {
  return [span(`${spaces}│ `, dim)];
}

/** How the second row of a line of text begins; undefined for lines that are not only text. */
function marginOf(line: string): Margin | undefined {
  const [, spaces = "", rest = ""] = /^(\s*)(.*)$/.exec(line) ?? [];
  if (fenceOf(line) !== undefined || isTableLine(line) || /^#{1,6}\s/.test(rest) || /\t/.test(spaces))
    return undefined;
  if (quoteMark.test(rest)) return { row: quoteMargin(spaces), style: dim };
  const item = itemLine.exec(rest);
  if (item !== null) return { row: itemMargin(item, spaces), style: plain };
  return spaces.length >= 4 ? undefined : { row: [span(spaces)], style: plain };
}

/** Whether nothing that follows can change how the text looks: all its markup is closed. */
function isSettled(text: string): boolean {
  const own = text.replace(/(`+)[^`]+?\1/g, "").replace(/\\./g, "");
  const count = (mark: RegExp): number => own.match(mark)?.length ?? 0;
  return (
    !/[`<]/.test(own) &&
    count(/\*+/g) % 2 === 0 &&
    count(/(?<!\w)_|_(?!\w)/g) % 2 === 0 &&
    count(/~/g) % 2 === 0 &&
    count(/\[/g) === count(/\]/g) &&
    !/\]\([^)]*$/.test(own)
  );
}

const maxHeld = 12;
const maxIndent = 24;

function fenceOf(line: string): Fence | undefined {
  const found = /^(\s*)(`{3,}|~{3,})([^`]*)$/.exec(line);
  if (found === null) return undefined;
  const [, indent = "", mark = "", words = ""] = found;
  return { mark: mark.slice(0, 3), indent, language: /^[\w+#.-]*/.exec(words.trim())?.[0] ?? "" };
}

function headingStyle(marks: string): Style {
  return marks.length <= 2 ? combine(bold, colours.accent) : bold;
}

function itemRows(item: RegExpExecArray, spaces: string, width: number): readonly Row[] {
  const [, marker = "-", box = "", text = ""] = item;
  const indent = spaces.slice(0, maxIndent);
  const first = [span(`${indent}${marker} `, plain), ...(box === "" ? [] : [span(box, dim)])];
  return wrapRow(inlineSpans(text), width, { first, rest: itemMargin(item, spaces) });
}

function itemMargin([, marker = "-", box = ""]: RegExpExecArray, spaces: string): Row {
  return [span(" ".repeat(spaces.slice(0, maxIndent).length + marker.length + 1 + box.length))];
}

/** Emphasis or code that was opened and not closed. */
function isOpen(line: string): boolean {
  const withoutCode = line.replace(/(`+)[^`]+?\1/g, "");
  if (withoutCode.includes("`")) return true;
  return (withoutCode.match(/(?<!\\)\*\*/g)?.length ?? 0) % 2 === 1;
}

function isTableLine(line: string): boolean {
  return /^\s*\|.*\|/.test(line) || (line.includes("|") && isTableDelimiter(line));
}

/** `|---|:--:|`: what makes a table of the lines around it. */
function isTableDelimiter(line: string): boolean {
  return /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)+\|?\s*$/.test(line) || /^\s*\|\s*:?-+:?\s*\|\s*$/.test(line);
}

const separator = " │ ";
const minColumn = 4;

/** A table with aligned columns; one that is wider than the window becomes a list of its cells. */
function tableRows(lines: readonly string[], width: number): readonly Row[] {
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
  if (fitting === undefined)
    return cells.flatMap((one) =>
      one.flatMap((cell, at) =>
        wrapRow([...(heads[at] ?? []), span(": "), ...cell], width, {
          first: [span(at === 0 ? "- " : "  ")],
          rest: [span("    ")],
        }),
      ),
    );
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
