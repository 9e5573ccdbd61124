import { withoutByteOrderMark } from "../foundation/byte-order-mark.ts";
import type { Issue } from "../foundation/diagnostic.ts";

/** A file cut into the lines between its fences and the text after them. Line numbers count from 1 in the original file. */
export type FrontmatterBlock =
  | { readonly type: "none" }
  | { readonly type: "unclosed"; readonly line: number }
  | {
      readonly type: "block";
      readonly lines: readonly string[];
      /** Line number of the first line between the fences. */
      readonly firstLine: number;
      /** How many spaces were cut from the start of each line. */
      readonly indent: number;
      readonly body: string;
      readonly issues: readonly LayoutFinding[];
    };

type LayoutFinding = Omit<Issue, "path"> & { readonly line: number };

const openingFence = /^((?:[ \t]*\n)*)([ \t]*)-{3,}[ \t]*\n/;

/** Finds the frontmatter, tolerating a byte order mark, any line ending, leading blank lines, indentation and long rules. */
export function splitFrontmatter(text: string): FrontmatterBlock {
  const marked = withoutByteOrderMark(text);
  const source = marked.includes("\r") ? marked.replace(/\r\n?/g, "\n") : marked;
  const opening = openingFence.exec(source.includes("\n") ? source : `${source}\n`);
  if (opening === null) return { type: "none" };
  const blankLines = (opening[1] ?? "").split("\n").length - 1;
  const indent = (opening[2] ?? "").length;
  const rest =
    indent === 0 ? source.slice(opening[0].length) : dedent(source.slice(opening[0].length), indent);
  const closing = findClosingFence(rest);
  if (closing === undefined) return { type: "unclosed", line: blankLines + 1 };
  const lines = closing.start === 0 ? [] : rest.slice(0, closing.start - 1).split("\n");
  const issues = judgeLayout({
    blankLines,
    indent,
    fence: closing.dashes,
    closingLine: blankLines + lines.length + 2,
  });
  return {
    type: "block",
    lines,
    firstLine: blankLines + 2,
    indent,
    body: rest.slice(closing.end).trim(),
    issues,
  };
}

/** The first line of three or more dashes and nothing else; the body behind it is never cut into lines. */
function findClosingFence(text: string): { start: number; end: number; dashes: number } | undefined {
  for (let start = 0; start !== -1; start = nextDashes(text, start)) {
    if (!text.startsWith("---", start)) continue;
    const lineEnd = text.indexOf("\n", start);
    const end = lineEnd === -1 ? text.length : lineEnd;
    const line = text.slice(start, end).trimEnd();
    if (/^-+$/.test(line)) return { start, end, dashes: line.length };
  }
  return undefined;
}

function nextDashes(text: string, from: number): number {
  const at = text.indexOf("\n---", from);
  return at === -1 ? -1 : at + 1;
}

interface Layout {
  readonly blankLines: number;
  readonly indent: number;
  readonly fence: number;
  readonly closingLine: number;
}

function judgeLayout({ blankLines, indent, fence, closingLine }: Layout): LayoutFinding[] {
  const issues: LayoutFinding[] = [];
  const warn = (code: string, line: number, message: string, advice: string): void => {
    issues.push({ severity: "warning", code, line, message, advice });
  };
  if (blankLines > 0) {
    warn("leading-blank", 1, "There are blank lines before the opening `---`.", "Start the file with `---`.");
  }
  if (indent > 0) {
    warn(
      "indented-frontmatter",
      blankLines + 1,
      "The whole file is indented.",
      "Remove the indentation of every line.",
    );
  }
  if (fence > 3) {
    warn(
      "long-dash-fence",
      closingLine,
      "The closing fence has more than three dashes.",
      "Write exactly `---`.",
    );
  }
  return issues;
}

/** Takes up to so many spaces from the start of every line. */
function dedent(text: string, indent: number): string {
  return text.replace(/^[ \t]+/gm, (spaces) => spaces.slice(Math.min(indent, spaces.length)));
}
