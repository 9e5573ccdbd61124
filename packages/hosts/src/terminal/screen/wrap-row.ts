import { graphemes, isSimple, type Row, rowWidth, type Span, textWidth } from "./row.ts";
import type { Style } from "./style.ts";

export interface WrapOptions {
  /** Precedes the first line; counts towards the width. */
  readonly first?: Row;
  /** Precedes every other line. */
  readonly rest?: Row;
}

/** Lines of at most `width` cells, broken between words where that is possible. */
export function wrapRow(cells: Row, width: number, { first = [], rest = first }: WrapOptions = {}): Row[] {
  const lines: Span[][] = [[...first]];
  let room = Math.max(1, width - rowWidth(first));
  let used = 0;
  let blank: Word | undefined;
  const breakLine = (): void => {
    lines.push([...rest]);
    room = Math.max(1, width - rowWidth(rest));
    used = 0;
    blank = undefined;
  };
  const put = (word: Word): void => {
    for (const piece of word.pieces) append(lines.at(-1) ?? [], piece);
    used += word.width;
  };
  for (const word of wordsOf(cells)) {
    if (word.isBlank) {
      // A blank where a line is broken is not shown; before the first word it is an indent.
      if (used > 0 || lines.length === 1) blank = word;
      continue;
    }
    if (used > 0 && used + (blank?.width ?? 0) + word.width > room) breakLine();
    if (blank !== undefined) put(blank);
    blank = undefined;
    if (word.width <= room - used) put(word);
    else
      for (const part of splitWord(word, () => room)) {
        if (used > 0) breakLine();
        put(part);
      }
  }
  if (blank !== undefined && used + blank.width <= room) put(blank);
  return lines;
}

/** The width below which a word would have to be broken. */
export function longestWord(cells: Row): number {
  let longest = 0;
  for (const { isBlank, width } of wordsOf(cells)) if (!isBlank && width > longest) longest = width;
  return longest;
}

interface Word {
  readonly pieces: readonly Span[];
  readonly width: number;
  readonly isBlank: boolean;
}

/** Pieces of different styles that are adjacent are one word; wide characters may be parted from each other. */
function* wordsOf(cells: Row): Generator<Word> {
  let pieces: Span[] = [];
  let width = 0;
  const taken = (): Word => {
    const word = { pieces, width, isBlank: false };
    pieces = [];
    width = 0;
    return word;
  };
  for (const { text, style } of cells) {
    for (const part of text.split(/( +)/)) {
      if (part === "") continue;
      if (part[0] === " ") {
        if (width > 0) yield taken();
        yield { pieces: [{ text: part, style }], width: part.length, isBlank: true };
        continue;
      }
      for (const piece of partsOf(part)) {
        const size = textWidth(piece);
        const isWide = !isSimple(piece) && size === 2;
        if (isWide && width > 0) yield taken();
        pieces.push({ text: piece, style });
        width += size;
        if (isWide) yield taken();
      }
    }
  }
  if (width > 0 || pieces.length > 0) yield taken();
}

/** Each wide character alone, what is between them together. */
function partsOf(text: string): readonly string[] {
  if (isSimple(text)) return [text];
  const parts: string[] = [];
  let isOpen = false;
  for (const grapheme of graphemes(text)) {
    const isWide = textWidth(grapheme) >= 2;
    if (!isWide && isOpen) parts[parts.length - 1] += grapheme;
    else parts.push(grapheme);
    isOpen = !isWide;
  }
  return parts;
}

/** Parts of a word that is longer than a line. */
function* splitWord(word: Word, room: () => number): Generator<Word> {
  let pieces: Span[] = [];
  let width = 0;
  for (const { text, style } of word.pieces) {
    for (const grapheme of graphemes(text)) {
      const size = textWidth(grapheme);
      if (width > 0 && width + size > room()) {
        yield { pieces, width, isBlank: false };
        pieces = [];
        width = 0;
      }
      append(pieces, { text: grapheme, style });
      width += size;
    }
  }
  yield { pieces, width, isBlank: false };
}

function append(line: Span[], { text, style }: { readonly text: string; readonly style: Style }): void {
  const last = line.at(-1);
  if (last?.style === style) line[line.length - 1] = { text: last.text + text, style };
  else line.push({ text, style });
}
