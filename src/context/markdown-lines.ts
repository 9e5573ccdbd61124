/** One line of a Markdown text that is left after block comments are gone; lines count from 1 in the original. */
export interface MarkdownLine {
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
