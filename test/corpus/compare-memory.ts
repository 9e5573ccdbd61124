import { type CorpusEntry, compareFields, type Mismatch } from "./corpus-manifest.ts";

/** A memory file is plain text; what counts is that nothing of it is lost. */
export function compareMemory(entry: CorpusEntry, text: string): Mismatch[] {
  const plain = text.replace(/^\uFEFF/, "").replace(/\r\n?/g, "\n");
  const lines = plain.split("\n").length;
  return compareFields(entry.expect, { loads: true, lines, head: plain.trim().slice(0, 60) });
}
