import { widthOf } from "../../shared/strip-control-characters.ts";
import { terminalText } from "../../shared/terminal-text.ts";
import { plain, type Style } from "./style.ts";

/** A piece of a row. Its text holds nothing a terminal would act on, because only `span` makes one. */
export interface Span {
  readonly text: string;
  readonly style: Style;
}

/** One line of the screen. Rows are never changed, so what was made of one can be kept beside it. */
export type Row = readonly Span[];

/** Makes text from anywhere fit for a row: control characters become visible escapes, tabs and line ends spaces. */
export function span(text: string, style: Style = plain): Span {
  return { text: cleanText(text), style };
}

export function row(...parts: readonly (Span | string)[]): Row {
  return parts.map((part) => (typeof part === "string" ? span(part) : part));
}

export const emptyRow: Row = [];

/** What `span` does to a text; for callers that measure it first. */
export function cleanText(text: string): string {
  if (isSimple(text)) return text;
  const flat = text.replaceAll("\t", "    ").replace(/\r?\n|\r/g, " ");
  return isSimple(flat) ? flat : terminalText(flat, { colours: false });
}

/** Characters that take one cell each and join with nothing: ASCII, Latin letters, and the signs and lines drawn here. */
const simplePattern =
  /^[\x20-\x7e\u00a1-\u00ac\u00ae-\u024f\u2010-\u2026\u2039\u203a\u2190-\u2193\u2500-\u259f\u25b2\u25c6\u25cb\u25cf\u2610\u2612\u2713\u2717\u2800-\u28ff]*$/;

/** Most texts are; what is asked of others takes parts of the machine that are slow to start. */
export function isSimple(text: string): boolean {
  return simplePattern.test(text);
}

/** How many cells of the terminal a text takes. */
export function textWidth(text: string): number {
  return isSimple(text) ? text.length : cellWidth(text);
}

export function rowWidth(cells: Row): number {
  let width = 0;
  for (const { text } of cells) width += textWidth(text);
  return width;
}

export function rowText(cells: Row): string {
  return cells.map(({ text }) => text).join("");
}

/** What a person sees as one character each. */
export function graphemes(text: string): readonly string[] {
  return isSimple(text) ? text.split("") : clusters(text);
}

/** The longest beginning of a text that takes at most `width` cells. */
export function cutText(text: string, width: number): string {
  if (width <= 0) return "";
  if (isSimple(text)) return text.slice(0, width);
  let taken = 0;
  let cut = "";
  for (const grapheme of graphemes(text)) {
    taken += textWidth(grapheme);
    if (taken > width) break;
    cut += grapheme;
  }
  return cut;
}

/** The row in at most `width` cells, ending in … where something was cut off. */
export function cutRow(cells: Row, width: number): Row {
  if (rowWidth(cells) <= width) return cells;
  if (width < 1) return emptyRow;
  const kept: Span[] = [];
  let left = width - 1;
  for (const { text, style } of cells) {
    const cut = cutText(text, left);
    if (cut !== "") kept.push({ text: cut, style });
    left -= textWidth(cut);
    if (cut !== text) break;
  }
  return [...kept, { text: "…", style: kept.at(-1)?.style ?? plain }];
}

export function padRow(cells: Row, width: number): Row {
  const missing = width - rowWidth(cells);
  return missing <= 0 ? cells : [...cells, { text: " ".repeat(missing), style: plain }];
}

/** Two parts at the ends of a line; the right one goes first where there is no room for both. */
export function spreadRow(left: Row, right: Row, width: number): Row {
  const gap = width - rowWidth(left) - rowWidth(right);
  if (gap < 1) return cutRow(left, width);
  return [...left, { text: " ".repeat(gap), style: plain }, ...right];
}

let segmenter: Intl.Segmenter | undefined;

/** What a person sees as one character each. What finds them is made with the first text that needs it: that takes a while. */
function clusters(text: string): readonly string[] {
  segmenter ??= new Intl.Segmenter(undefined, { granularity: "grapheme" });
  return Array.from(segmenter.segment(text), ({ segment }) => segment);
}

const known = new Map<string, number>();
const maxKnown = 2000;

/** Cells that a text takes which is not plain ASCII. */
function cellWidth(text: string): number {
  let width = 0;
  for (const cluster of clusters(text)) width += clusterWidth(cluster);
  return width;
}

function clusterWidth(cluster: string): number {
  const cached = known.get(cluster);
  if (cached !== undefined) return cached;
  const width = measure(cluster);
  if (known.size >= maxKnown) known.clear();
  known.set(cluster, width);
  return width;
}

/** An emoji of any number of parts takes two cells; marks take none, but those that are next to their letter take one. */
function measure(cluster: string): number {
  if (/^\p{RGI_Emoji}$/v.test(cluster)) return 2;
  const [base = "", ...marks] = Array.from(cluster);
  const beside = marks.filter((mark) => /^\p{Spacing_Mark}$/u.test(mark)).length;
  return Math.min(2, widthOf(base) + beside);
}
