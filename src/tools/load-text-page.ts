import { createReadStream } from "node:fs";
import { pageLength, pageOf, type TextPage } from "./text-page.ts";

/** The page of a text file that begins at an offset; the file may still grow, so its length is not told. */
export async function loadTextPage(file: string, offset: number, length = pageLength): Promise<TextPage> {
  const start = Math.max(0, offset);
  let skipped = 0;
  let text = "";
  for await (const chunk of createReadStream(file, { encoding: "utf8" })) {
    const piece = String(chunk);
    const from = Math.min(piece.length, start - skipped);
    skipped += from;
    text += piece.slice(from);
    if (text.length > length) break;
  }
  const { text: shown, next } = pageOf(text, 0, length);
  return { text: shown, offset: skipped, ...(next === undefined ? {} : { next: skipped + shown.length }) };
}
