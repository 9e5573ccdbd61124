import { cutAt, stripControlCharacters, widthOf } from "./text-width.ts";

export interface SourceExcerpt {
  readonly text: string;
  /** Blanks that put the carets under the place. */
  readonly indent: string;
  readonly carets: string;
}

/** One line of a file around a place, in at most `width` cells, with the carets that belong under it. */
export function sourceExcerpt(
  line: string,
  place: { readonly column: number; readonly length: number },
  width: number,
): SourceExcerpt {
  const shown = stripControlCharacters(line.replace(/^\ufeff/, " ")).trimEnd();
  const from = Math.min(Math.max(0, place.column - 1), shown.length);
  const start = widthOf(shown) <= width ? 0 : startOfWindow(shown, from, width);
  const head = start === 0 ? "" : "…";
  const rest = shown.slice(start);
  const isCut = widthOf(head + rest) > width;
  const body = isCut ? `${cutAt(rest, width - widthOf(head) - 1)}…` : rest;
  const before = widthOf(head + shown.slice(start, from));
  const marked = Math.max(1, widthOf(shown.slice(from, from + place.length)));
  const carets = "^".repeat(Math.max(1, Math.min(marked, width - before)));
  return { text: head + body, indent: " ".repeat(before), carets };
}

/** A third of the room goes to what stands before the place. */
function startOfWindow(line: string, from: number, width: number): number {
  if (widthOf(line.slice(0, from)) <= width * 0.6) return 0;
  let start = from;
  while (start > 0 && widthOf(line.slice(start - 1, from)) <= width / 3) start -= 1;
  return /[\udc00-\udfff]/.test(line[start] ?? "") ? start + 1 : start;
}
