import type { MarkdownLine } from "./markdown-lines.ts";

/** An `@path` in a Markdown text, as a person wrote it. */
export interface ImportReference {
  readonly path: string;
  readonly line: number;
  readonly column: number;
  /** Whether it can only be meant as a file, unlike `@name` or `@scope/package`. */
  readonly isSurelyFile: boolean;
}

/** Finds the imports of a text: `@path` at the start of a word, outside of code. */
export function findImports(lines: readonly MarkdownLine[]): readonly ImportReference[] {
  return paragraphsOf(lines).flatMap((paragraph) => {
    const masked = maskCodeSpans(paragraph.map(({ text }) => text).join("\n")).split("\n");
    return paragraph.flatMap(({ line }, index) => importsOfLine(masked[index] ?? "", line));
  });
}

const importSign = /(?<=^|[\s(])@((?:\\ |\S)+)/g;
const closingPunctuation = /[.,;:!?)\]}'"*_>]+$/;

function importsOfLine(text: string, line: number): ImportReference[] {
  return [...text.matchAll(importSign)].flatMap((match) => {
    const path = (match[1] ?? "").replaceAll("\\ ", " ").replace(/#.*$/, "").replace(closingPunctuation, "");
    if (!/^(?:~\/|[\w./-])/.test(path) || /^\.*$/.test(path)) return [];
    const isSurelyFile = /^(?:~\/|\.{1,2}\/|\/)|\.(?:md|mdx|mdc|txt)$/i.test(path) && !path.endsWith("/");
    return [{ path, line, column: match.index + 1, isSurelyFile }];
  });
}

/** A code span ends with its paragraph, so a stray backtick hides nothing in the next one. */
function paragraphsOf(lines: readonly MarkdownLine[]): readonly (readonly MarkdownLine[])[] {
  const paragraphs: MarkdownLine[][] = [];
  let current: MarkdownLine[] | undefined;
  for (const line of lines) {
    if (line.type === "code" || line.text.trim() === "") {
      current = undefined;
      continue;
    }
    const beginsBlock = /^[ \t]*(?:[-*+>#|]|\d{1,9}[.)])/.test(line.text);
    if (current === undefined || beginsBlock) {
      current = [];
      paragraphs.push(current);
    }
    current.push(line);
  }
  return paragraphs;
}

/** Replaces what is between two equal runs of backticks by other backticks; line breaks stay. */
function maskCodeSpans(text: string): string {
  const runs = [...text.matchAll(/`+/g)].map((match) => runAt(text, match.index, match[0].length));
  const partners = nextOfSameLength(runs);
  let masked = "";
  let copied = 0;
  for (let at = 0; at < runs.length; at += 1) {
    const open = runs[at];
    const partner = partners[at];
    const close = partner === undefined ? undefined : runs[partner];
    if (open === undefined || partner === undefined || close === undefined || open.length === 0) continue;
    const end = close.start + close.length;
    masked += text.slice(copied, open.start) + text.slice(open.start, end).replace(/[^\n]/g, "`");
    copied = end;
    at = partner;
  }
  return masked + text.slice(copied);
}

/** A backslash takes the first backtick of a run away. */
function runAt(text: string, start: number, length: number): { start: number; length: number } {
  let slashes = 0;
  while (text[start - 1 - slashes] === "\\") slashes += 1;
  return slashes % 2 === 1 ? { start: start + 1, length: length - 1 } : { start, length };
}

/** For each run the index of the next one that is as long. */
function nextOfSameLength(runs: readonly { readonly length: number }[]): readonly (number | undefined)[] {
  const nearest = new Map<number, number>();
  const next: (number | undefined)[] = [];
  for (const [index, { length }] of [...runs.entries()].reverse()) {
    next[index] = nearest.get(length);
    nearest.set(length, index);
  }
  return next;
}
