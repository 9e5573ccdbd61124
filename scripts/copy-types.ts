import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";

/** Copies a file of types with all that it names by relative paths; returns where it is now. */
export function copyTypes(from: string, entry: string, to: string): string {
  const waiting = [entry];
  const seen = new Set(waiting);
  for (const file of waiting) {
    const target = join(to, relative(from, file));
    mkdirSync(dirname(target), { recursive: true });
    const text = readFileSync(file, "utf8");
    writeFileSync(target, text);
    for (const [, path = ""] of text.matchAll(/(?:from |import\()"(\.[^"]+)\.ts"/g)) {
      const next = `${resolve(dirname(file), path)}.d.ts`;
      if (!seen.has(next)) waiting.push(next);
      seen.add(next);
    }
  }
  return join(to, relative(from, entry));
}
