import { existsSync, readFileSync, truncateSync } from "node:fs";

/**
 * Cuts a transcript inside its last line, as a crash in the middle of a write would. A kill alone hardly ever does that,
 * because the system takes small writes whole. Returns the ids of calls that the line held.
 */
export function tearLastLine(file: string, random: () => number): readonly string[] {
  if (!existsSync(file)) return [];
  const bytes = readFileSync(file);
  if (bytes.length < 2) return [];
  const start = bytes.lastIndexOf("\n", bytes.length - 2) + 1;
  truncateSync(file, start + 1 + Math.floor(random() * (bytes.length - start - 1)));
  return bytes.toString("utf8", start).match(/\bcall-step\w+-\d+\b/g) ?? [];
}
