import { emptyRow, type Row, span } from "../screen/row.ts";
import { bold, colours, combine, dim, plain, type Style } from "../screen/style.ts";
import { wrapRow } from "../screen/wrap-row.ts";
import { inlineSpans } from "./inline-spans.ts";
import { isTableDelimiter, isTableLine, tableRows } from "./table-rows.ts";

interface Fence {
  readonly mark: string;
  readonly indent: string;
}

/**
 * Markdown that arrives in pieces. A line is final when its end has come, so what is finished can be written once and for
 * all; only an unfinished line, a table that still grows, or markup that is still open is kept back. The work for each
 * piece does not grow with the text before it.
 */
export class MarkdownStream {
  readonly #width: () => number;
  #rest = "";
  #held: string[] = [];
  #fence: Fence | undefined;
  #isInList = false;
  #isGap = false;
  #isStarted = false;

  /** Cells that rows may take. */
  constructor(width: () => number) {
    this.#width = width;
  }

  /** Whether something is kept back or open, so that other rows would be in the middle of it. */
  get isMidBlock(): boolean {
    return this.#rest !== "" || this.#held.length > 0 || this.#fence !== undefined;
  }

  /** Takes more text and gives the rows that are final now. */
  push(text: string): readonly Row[] {
    this.#rest += text;
    const end = this.#rest.lastIndexOf("\n");
    if (end === -1) return [];
    const lines = this.#rest.slice(0, end).split("\n");
    this.#rest = this.#rest.slice(end + 1);
    return lines.flatMap((line) => this.#take(singleLine(line.replace(/\r$/, ""))));
  }

  /** Rows of what is not final yet; asked for each frame. */
  live(): readonly Row[] {
    if (this.#rest === "" && this.#held.length === 0) return [];
    const isTable = this.#held.length > 0 && this.#held.every(isTableLine);
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
    this.#fence = undefined;
    this.#isInList = false;
    this.#isGap = false;
    this.#isStarted = false;
    return rows;
  }

  #liveLine(line: string): readonly Row[] {
    if (line === "" || fenceOf(line) !== undefined) return [];
    return this.#fence === undefined
      ? this.#lineRows(line)
      : wrapRow(codeRow(line, this.#fence), this.#width());
  }

  #take(line: string): readonly Row[] {
    if (this.#fence !== undefined) return this.#takeCode(line, this.#fence);
    const fence = fenceOf(line);
    if (fence !== undefined) {
      const before = this.#release();
      this.#fence = fence;
      return before;
    }
    if (line.trim() === "") {
      const before = this.#release();
      this.#isGap = true;
      return before;
    }
    return this.#takeText(line);
  }

  #takeCode(line: string, fence: Fence): readonly Row[] {
    if (line.trim().startsWith(fence.mark) && /^(`+|~+)\s*$/.test(line.trim())) {
      this.#fence = undefined;
      return [];
    }
    return this.#finish([codeRow(line, fence)]);
  }

  #takeText(line: string): readonly Row[] {
    const isTable = this.#held.length > 0 && this.#held.every(isTableLine);
    if (isTableLine(line) && (isTable || this.#held.length === 0)) {
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
    const needsGap = this.#isGap && this.#isStarted;
    this.#isGap = false;
    this.#isStarted = true;
    return needsGap ? [emptyRow, ...rows] : rows;
  }

  #lineRows(line: string): readonly Row[] {
    const width = this.#width();
    const [, spaces = "", rest = ""] = /^(\s*)(.*)$/.exec(line.replaceAll("\t", "    ")) ?? [];
    const heading = /^(#{1,6})\s+(.*?)\s*#*$/.exec(rest);
    if (heading !== null)
      return wrapRow(inlineSpans(heading[2] ?? "", headingStyle(heading[1] ?? "")), width);
    if (/^([-*_])(\s*\1){2,}\s*$/.test(rest)) return [[span("─".repeat(Math.min(width, 40)), dim)]];
    const quote = /^(>\s?)+/.exec(rest);
    if (quote !== null) return quoteRows(rest.slice(quote[0].length), spaces, width);
    const item = /^([-*+]|\d{1,9}[.)])\s+(\[[ xX]\]\s+)?(.*)$/.exec(rest);
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

const maxHeld = 12;
const maxIndent = 24;

function fenceOf(line: string): Fence | undefined {
  const found = /^(\s*)(`{3,}|~{3,})[^`]*$/.exec(line);
  return found === null ? undefined : { mark: (found[2] ?? "").slice(0, 3), indent: found[1] ?? "" };
}

/** Code is kept as it was written, so that it can be copied; a line longer than the window is wrapped by the terminal. */
function codeRow(line: string, { indent }: Fence): Row {
  const text = line.startsWith(indent) ? line.slice(indent.length) : line.trimStart();
  return [span(`  ${indent.slice(0, maxIndent)}${text.replaceAll("\t", "    ")}`.trimEnd(), colours.code)];
}

function headingStyle(marks: string): Style {
  return marks.length <= 2 ? combine(bold, colours.accent) : bold;
}

function itemRows(item: RegExpExecArray, spaces: string, width: number): readonly Row[] {
  const [, marker = "-", box = "", text = ""] = item;
  const indent = spaces.slice(0, maxIndent);
  const first = [span(`${indent}${marker} `, plain), ...(box === "" ? [] : [span(box, dim)])];
  const rest = [span(" ".repeat(indent.length + marker.length + 1 + box.length))];
  return wrapRow(inlineSpans(text), width, { first, rest });
}

function quoteRows(text: string, spaces: string, width: number): readonly Row[] {
  return wrapRow(inlineSpans(text, dim), width, { first: [span(`${spaces}│ `, dim)] });
}

/** Emphasis or code that was opened and not closed. */
function isOpen(line: string): boolean {
  const withoutCode = line.replace(/(`+)[^`]+?\1/g, "");
  if (withoutCode.includes("`")) return true;
  return (withoutCode.match(/(?<!\\)\*\*/g)?.length ?? 0) % 2 === 1;
}
