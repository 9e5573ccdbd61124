/** A part of a text that is too long to be shown at the same time; offsets count characters. */
export interface TextPage {
  readonly text: string;
  readonly offset: number;
  /** How long the whole text is, where that is known. */
  readonly total?: number;
  /** Where the next page begins; absent on the last one. */
  readonly next?: number;
}

/** How many characters one page holds. */
export const pageLength = 30_000;

/** The page of a text that begins at an offset; never cut between the halves of a surrogate pair. */
export function pageOf(text: string, offset = 0, length = pageLength): TextPage {
  const start = Math.min(Math.max(0, offset), text.length);
  const end = endOf(text, Math.min(start + length, text.length));
  return {
    text: text.slice(start, end),
    offset: start,
    total: text.length,
    ...(end < text.length ? { next: end } : {}),
  };
}

function endOf(text: string, end: number): number {
  const last = text.charCodeAt(end - 1);
  return end < text.length && last >= 0xd800 && last <= 0xdbff ? end - 1 : end;
}

/** Where in the whole a page is, as one phrase; empty for a text that is one page. */
export function describePage({ text, offset, total, next }: TextPage): string {
  if (offset === 0 && next === undefined) return "";
  const of = total === undefined ? "" : ` of ${total}`;
  if (text === "") return `nothing from character ${offset} on${of === "" ? "" : `; there are ${total}`}`;
  const more = next === undefined ? "; this is the end" : `; continue with offset ${next}`;
  return `characters ${offset + 1} to ${offset + text.length}${of}${more}`;
}
