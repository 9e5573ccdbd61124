import type { Finding } from "../foundation/problem.ts";
import { withoutByteOrderMark } from "../foundation/source-text.ts";

/** A file cut into the lines between its fences and the text after them. Line numbers count from 1 in the original file. */
export type FrontmatterBlock =
  | { readonly type: "none" }
  | { readonly type: "unclosed"; readonly line: number }
  | {
      readonly type: "block";
      readonly lines: readonly string[];
      /** Line number of the first line between the fences. */
      readonly firstLine: number;
      /** How many blanks were cut from the start of each line. */
      readonly indent: number;
      readonly body: string;
      readonly findings: readonly (Omit<Finding, "path"> & { readonly line: number })[];
    };

const openingFence = /^([ \t]*)-{3,}[ \t]*$/;
const closingFence = /^-{3,}[ \t]*$/;

/** Finds the frontmatter, tolerating a byte order mark, any line ending, leading blank lines, indentation and long rules. */
export function splitFrontmatter(text: string): FrontmatterBlock {
  const source = withoutByteOrderMark(text);
  const lines = (source.includes("\r") ? source.replace(/\r\n?/g, "\n") : source).split("\n");
  const opening = lines.findIndex((line) => line.trim() !== "");
  const fence = opening === -1 ? null : openingFence.exec(lines[opening] ?? "");
  if (fence === null) return { type: "none" };
  const indent = fence[1]?.length ?? 0;
  const rest = lines.slice(opening + 1).map(indent === 0 ? keep : (line) => dedent(line, indent));
  const closing = rest.findIndex((line) => closingFence.test(line));
  if (closing === -1) return { type: "unclosed", line: opening + 1 };

  const findings: (Omit<Finding, "path"> & { line: number })[] = [];
  const warn = (code: string, line: number, message: string, advice: string): void => {
    findings.push({ severity: "warning", code, line, message, advice });
  };
  if (opening > 0) {
    warn("leading-blank", 1, "Blank lines stand before the opening `---`.", "Start the file with `---`.");
  }
  if (indent > 0) {
    warn(
      "indented-frontmatter",
      opening + 1,
      "The whole file is indented.",
      "Remove the indentation of every line.",
    );
  }
  if ((rest[closing] ?? "").trimEnd().length > 3) {
    const line = opening + closing + 2;
    warn("long-dash-fence", line, "The closing fence has more than three dashes.", "Write exactly `---`.");
  }
  return {
    type: "block",
    lines: rest.slice(0, closing),
    firstLine: opening + 2,
    indent,
    body: rest
      .slice(closing + 1)
      .join("\n")
      .trim(),
    findings,
  };
}

function keep(line: string): string {
  return line;
}

function dedent(line: string, indent: number): string {
  const blanks = line.length - line.trimStart().length;
  return line.slice(Math.min(indent, blanks));
}
