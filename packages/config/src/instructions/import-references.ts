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
  // For each run the index of the next one that is as long.
  const nearest = new Map<number, number>();
  const partners: (number | undefined)[] = [];
  for (const [index, { length }] of [...runs.entries()].reverse()) {
    partners[index] = nearest.get(length);
    nearest.set(length, index);
  }
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

/** One line of a Markdown text that is left after block comments are gone; lines count from 1 in the original. */
interface MarkdownLine {
  readonly text: string;
  readonly line: number;
  readonly type: "prose" | "code";
}

interface OpenFence {
  readonly sign: string;
  readonly length: number;
  readonly isQuoted: boolean;
}

/** Indentation, quote signs and list bullets may precede a fence. */
const fenceLine = /^([ \t]*(?:(?:>|[-*+]|\d{1,9}[.)])[ \t]*)*)(`{3,}|~{3,})(.*)$/;

/** Shows prose from fenced code and leaves out HTML comments that begin a line; one that is never closed stays. */
export function readMarkdownLines(text: string): readonly MarkdownLine[] {
  const source = text.replace(/\r\n?/g, "\n").split("\n");
  const kept: MarkdownLine[] = [];
  let fence: OpenFence | undefined;
  let lastClosing = source.length - 1;
  while (lastClosing >= 0 && !source[lastClosing]?.includes("-->")) lastClosing -= 1;
  for (let at = 0; at < source.length; at += 1) {
    const line = source[at] ?? "";
    if (fence !== undefined && !(fence.isQuoted && !/^[ \t]*>/.test(line))) {
      kept.push({ text: line, line: at + 1, type: "code" });
      if (closes(line, fence)) fence = undefined;
      continue;
    }
    fence = opens(line);
    if (fence !== undefined) {
      kept.push({ text: line, line: at + 1, type: "code" });
      continue;
    }
    const rest = skipComments(source, at, lastClosing);
    if (rest.text !== undefined) kept.push({ text: rest.text, line: rest.index + 1, type: "prose" });
    at = rest.index;
  }
  return kept;
}

function opens(line: string): OpenFence | undefined {
  const [, before = "", sign = "", after = ""] = fenceLine.exec(line) ?? [];
  if (sign === "" || (sign.startsWith("`") && after.includes("`"))) return undefined;
  return { sign: sign.charAt(0), length: sign.length, isQuoted: before.includes(">") };
}

function closes(line: string, fence: OpenFence): boolean {
  const [, , sign = "", after = ""] = fenceLine.exec(line) ?? [];
  return sign.startsWith(fence.sign) && sign.length >= fence.length && after.trim() === "";
}

/** What is left of the line where the comments that begin at `index` end; no text when nothing is left. */
function skipComments(
  source: readonly string[],
  index: number,
  lastClosing: number,
): { readonly index: number; readonly text: string | undefined } {
  let at = index;
  let text = source[at] ?? "";
  while (/^ {0,3}<!--/.test(text)) {
    const opened = text.indexOf("<!--") + 4;
    const here = text.indexOf("-->", opened);
    if (here === -1 && at >= lastClosing) return { index: at, text };
    let closing = here;
    while (closing === -1) {
      at += 1;
      text = source[at] ?? "";
      closing = text.indexOf("-->");
    }
    text = text.slice(closing + 3);
    if (text.trim() === "") return { index: at, text: undefined };
  }
  return { index: at, text };
}
