import { graphemes, isSimple, textWidth } from "../screen/row.ts";

/** A visible line of a text: from one index to another. */
export interface LayoutLine {
  readonly start: number;
  readonly end: number;
}

/** How a text is laid out in a window of so many cells: broken at line ends, and between words where a line is too long. */
export function layoutLines(text: string, width: number): readonly LayoutLine[] {
  const lines: LayoutLine[] = [];
  let start = 0;
  for (const line of text.split("\n")) {
    if (isSimple(line) && line.length <= width) lines.push({ start, end: start + line.length });
    else lines.push(...wrapLine(line, start, Math.max(2, width)));
    start += line.length + 1;
  }
  return lines;
}

function wrapLine(line: string, offset: number, width: number): readonly LayoutLine[] {
  const lines: LayoutLine[] = [];
  let start = 0;
  let used = 0;
  let index = 0;
  let afterBlank = -1;
  let usedAtBlank = 0;
  for (const grapheme of graphemes(line)) {
    const size = cellsOf(grapheme);
    if (used + size > width) {
      const breaksAtBlank = afterBlank > start && grapheme !== " ";
      const end = breaksAtBlank ? afterBlank : index;
      lines.push({ start: offset + start, end: offset + end });
      used = breaksAtBlank ? used - usedAtBlank : 0;
      start = end;
      afterBlank = -1;
    }
    used += size;
    index += grapheme.length;
    if (grapheme === " ") {
      afterBlank = index;
      usedAtBlank = used;
    }
  }
  lines.push({ start: offset + start, end: offset + line.length });
  return lines;
}

/** A tab is shown as four spaces. */
export function cellsOf(grapheme: string): number {
  return grapheme === "\t" ? 4 : textWidth(grapheme);
}

/** How many cells the text takes up to an index. */
export function columnOf(text: string): number {
  return isSimple(text) ? text.length : graphemes(text).reduce((sum, one) => sum + cellsOf(one), 0);
}

/** The index in a text that is nearest to a column from the left. */
export function indexAt(text: string, column: number): number {
  let used = 0;
  let index = 0;
  for (const grapheme of graphemes(text)) {
    const size = cellsOf(grapheme);
    if (used + size > column) break;
    used += size;
    index += grapheme.length;
  }
  return index;
}

/** Where the word before an index begins: spaces behind it are passed over. */
export function wordStart(text: string, index: number): number {
  const parts = wordParts(text.slice(0, index));
  let at = index;
  while (parts.length > 0 && isBlank(parts.at(-1))) at -= parts.pop()?.segment.length ?? 0;
  const last = parts.pop();
  if (last === undefined) return at;
  at -= last.segment.length;
  // Signs that are adjacent go together.
  while (last.isWordLike !== true && isSign(parts.at(-1))) at -= parts.pop()?.segment.length ?? 0;
  return at;
}

/** Where the word after an index ends: spaces before it are passed over. */
export function wordEnd(text: string, index: number): number {
  const parts = wordParts(text.slice(index)).toReversed();
  let at = index;
  while (parts.length > 0 && isBlank(parts.at(-1))) at += parts.pop()?.segment.length ?? 0;
  const first = parts.pop();
  if (first === undefined) return at;
  at += first.segment.length;
  while (first.isWordLike !== true && isSign(parts.at(-1))) at += parts.pop()?.segment.length ?? 0;
  return at;
}

let wordSegmenter: Intl.Segmenter | undefined;

/** Made with the first use, since that takes a while. Words are near; what is far away need not be cut. */
function wordParts(text: string): Intl.SegmentData[] {
  wordSegmenter ??= new Intl.Segmenter(undefined, { granularity: "word" });
  return [...wordSegmenter.segment(text)];
}

function isBlank(part: Intl.SegmentData | undefined): boolean {
  return part !== undefined && /^\s+$/.test(part.segment);
}

function isSign(part: Intl.SegmentData | undefined): boolean {
  return part !== undefined && part.isWordLike !== true && !isBlank(part);
}
