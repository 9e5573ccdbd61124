import { stripVTControlCharacters } from "node:util";

/** How many cells of a terminal a text takes: wide characters two, combining ones none. */
export function widthOf(text: string): number {
  if (isPlain(text)) return text.length;
  let width = 0;
  for (const { segment } of graphemes.segment(stripVTControlCharacters(text)))
    width += widthOfGrapheme(segment);
  return width;
}

/** The text in at most `width` cells, ending in … where it was cut. */
export function cutTo(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  return width < 1 ? "" : `${cutAt(text, width - 1).trimEnd()}…`;
}

export function pad(text: string, width: number): string {
  return text + " ".repeat(Math.max(0, width - widthOf(text)));
}

/** Lines of at most `width` cells, broken between words where that is possible. */
export function wrap(text: string, width: number): string[] {
  const room = Math.max(8, width);
  return text.split("\n").flatMap((line) => wrapLine(line, room));
}

/** What a terminal would act on, or what would hide text, is replaced; tabs become blanks of one cell. */
export function harmless(text: string): string {
  return text
    .toWellFormed()
    .replace(/\t/g, " ")
    .replace(/[\p{Cc}\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\u{e0000}-\u{e007f}]/gu, "\ufffd");
}

function wrapLine(line: string, width: number): string[] {
  const lines: string[] = [];
  let current = "";
  for (const word of line.split(" ")) {
    const longer = current === "" ? word : `${current} ${word}`;
    if (widthOf(longer) <= width) {
      current = longer;
      continue;
    }
    if (current !== "") lines.push(current);
    current = word;
    while (widthOf(current) > width) {
      const head = cutAt(current, width);
      if (head === "") break;
      lines.push(head);
      current = current.slice(head.length);
    }
  }
  return [...lines, current];
}

/** The longest beginning that takes at most `width` cells, never half a character. */
export function cutAt(text: string, width: number): string {
  if (isPlain(text)) return text.slice(0, width);
  let taken = 0;
  let cut = "";
  for (const { segment } of graphemes.segment(text)) {
    taken += widthOfGrapheme(segment);
    if (taken > width) break;
    cut += segment;
  }
  return cut;
}

const graphemes = new Intl.Segmenter(undefined, { granularity: "grapheme" });

function isPlain(text: string): boolean {
  return /^[\x20-\x7e]*$/.test(text);
}

function widthOfGrapheme(grapheme: string): number {
  if (/^[\p{Mn}\p{Me}\p{Cf}\p{Cc}]+$/u.test(grapheme)) return 0;
  return /^\p{Emoji_Presentation}|\ufe0f/u.test(grapheme) || wide.test(grapheme) ? 2 : 1;
}

/** East Asian wide and full-width blocks. */
const wide =
  /^[\u1100-\u115f\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1f64f}\u{1f900}-\u{1f9ff}\u{20000}-\u{3fffd}]/u;
