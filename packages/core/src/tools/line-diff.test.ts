import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { diffLines, type LineDiff } from "./line-diff.ts";

/** Applies a patch as the `patch` program would, so that the hunks prove themselves. */
function apply(before: string, { hunks }: LineDiff): string {
  const lines = before.match(/[^\n]*\n|[^\n]+$/g) ?? [];
  let result = "";
  let at = 0;
  for (const hunk of hunks) {
    const start = hunk.oldLines === 0 ? hunk.oldStart : hunk.oldStart - 1;
    result += lines.slice(at, start).join("");
    at = start + hunk.oldLines;
    hunk.lines.forEach((line, index) => {
      if (line.startsWith("-") || line.startsWith("\\")) return;
      result += line.slice(1) + (hunk.lines[index + 1]?.startsWith("\\") ? "" : "\n");
    });
  }
  return result + lines.slice(at).join("");
}

describe("a diff by lines", () => {
  test("shows a change with three lines around it", () => {
    const before = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
    expect(diffLines(before, before.replace("5", "five"))).toEqual({
      hunks: [
        {
          oldStart: 2,
          oldLines: 7,
          newStart: 2,
          newLines: 7,
          lines: [" 2", " 3", " 4", "-5", "+five", " 6", " 7", " 8"],
        },
      ],
      added: 1,
      removed: 1,
      shortened: false,
    });
  });

  test("a new file begins at line 0 of nothing, and a missing last line break is reported", () => {
    expect(diffLines("", "a\nb").hunks).toEqual([
      {
        oldStart: 0,
        oldLines: 0,
        newStart: 1,
        newLines: 2,
        lines: ["+a", "+b", "\\ No newline at end of file"],
      },
    ]);
  });

  test("equal texts have no hunks", () => {
    expect(diffLines("a\n", "a\n")).toEqual({ hunks: [], added: 0, removed: 0, shortened: false });
  });

  test("applying the hunks to the old text gives the new one", () => {
    const text = fc.string({ unit: fc.constantFrom("a\n", "b\n", "c\n", "d", "\n"), maxLength: 40 });
    fc.assert(
      fc.property(text, text, (before, after) => {
        const diff = diffLines(before, after);
        expect(apply(before, diff)).toBe(after);
        for (const { lines, oldLines, newLines } of diff.hunks) {
          expect(lines.filter((line) => /^[ -]/.test(line))).toHaveLength(oldLines);
          expect(lines.filter((line) => /^[ +]/.test(line))).toHaveLength(newLines);
        }
      }),
      { numRuns: 120 },
    );
  });

  test("changes far apart in long texts have hunks of their own, at the right lines", () => {
    const lines = Array.from({ length: 1000 }, (_, at) => `line ${at + 1}`);
    const changed = lines.with(99, "hundred").toSpliced(899, 1);
    const diff = diffLines(lines.join("\n"), changed.join("\n"));
    expect(diff.hunks).toMatchObject([
      { oldStart: 97, oldLines: 7, newStart: 97, newLines: 7 },
      { oldStart: 897, oldLines: 7, newStart: 897, newLines: 6 },
    ]);
  });

  test("a million lines that stay the same cost nothing", () => {
    const many = "x\n".repeat(1_000_000);
    expect(diffLines(many, `${many}y\n`)).toMatchObject({
      added: 1,
      removed: 0,
      hunks: [{ oldStart: 999_998 }],
    });
    expect(diffLines(many, many.replaceAll("x", "y"))).toMatchObject({ hunks: [], shortened: true });
  });

  test("texts with nothing in common are replaced, and a patch too long to keep is shortened", () => {
    const many = (letter: string) => Array.from({ length: 3000 }, (_, at) => `${letter}${at}\n`).join("");
    const diff = diffLines(many("a"), many("b"));
    expect(diff).toMatchObject({ added: 3000, removed: 3000, shortened: true, hunks: [] });
  });
});
