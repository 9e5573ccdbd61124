import type { Place } from "./diagnostic.ts";

export const byteOrderMark = "\uFEFF";

/** Where an offset is, counting lines and columns from 1. */
export function placeOfOffset(text: string, offset: number, length?: number): Place {
  const before = text.slice(0, offset);
  const lineStart = before.lastIndexOf("\n") + 1;
  let line = 1;
  for (let at = before.indexOf("\n"); at !== -1; at = before.indexOf("\n", at + 1)) line += 1;
  const place = { line, column: offset - lineStart + 1 };
  return length === undefined ? place : { ...place, length };
}

export function withoutByteOrderMark(text: string): string {
  return text.startsWith(byteOrderMark) ? text.slice(1) : text;
}
