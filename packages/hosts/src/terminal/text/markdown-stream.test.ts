import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { rowText, rowWidth } from "../screen/row.ts";
import { bold, colours } from "../screen/style.ts";
import { MarkdownStream } from "./markdown-stream.ts";
import { plainContext } from "./row-context.ts";

function rendered(markdown: string, width = 60): string[] {
  const stream = new MarkdownStream(() => plainContext(width));
  return [...stream.push(markdown), ...stream.end()].map(rowText);
}

describe("streamed Markdown", () => {
  test("headings, lists, quotes, code and rules", () => {
    const text = [
      "## Title",
      "",
      "Some **bold** and `code`.",
      "- first",
      "  - nested that is longer than the window is wide and wraps under itself",
      "3. third",
      "",
      "> quoted",
      "",
      "```ts",
      "const a = '**not bold**';",
      "",
      "\tindented",
      "```",
      "---",
    ].join("\n");
    expect(rendered(text)).toEqual([
      "Title",
      "",
      "Some bold and code.",
      "- first",
      "  - nested that is longer than the window is wide and wraps",
      "    under itself",
      "3. third",
      "",
      "│ quoted",
      "",
      "  const a = '**not bold**';",
      "",
      "      indented",
      "─".repeat(40),
    ]);
  });

  test("styles what is marked and nothing else", () => {
    const stream = new MarkdownStream(() => plainContext(80));
    const [line = []] = stream.push("a **b** `c` 2 * 3 * 4 snake_case_name\n");
    expect(line.filter(({ style }) => style === bold).map(({ text }) => text)).toEqual(["b"]);
    expect(line.filter(({ style }) => style === colours.code).map(({ text }) => text)).toEqual(["c"]);
    expect(rowText(line)).toBe("a b c 2 * 3 * 4 snake_case_name");
  });

  test("the first rows of a long paragraph are final while it is still written, and look as at once [CLI-4]", () => {
    const sentence = "This is a *sentence* with `code`, snake_case and [a link](https://example.com/a_b). ";
    for (const lead of ["", "- ", "12. [x] ", "> ", "  "]) {
      const text = `${lead}${sentence.repeat(12)}And **the end`;
      const stream = new MarkdownStream(() => plainContext(50));
      const early: string[] = [];
      for (let at = 0; at < text.length; at += 7)
        early.push(...stream.push(text.slice(at, at + 7)).map(rowText));
      expect(early.length, lead).toBeGreaterThan(12);
      expect(stream.live().length, lead).toBeLessThan(12);
      const rows = [...early, ...[...stream.push("** of it.\n\nNext."), ...stream.end()].map(rowText)];
      expect(rows, lead).toEqual(rendered(`${text}** of it.\n\nNext.`, 50));
    }
  });

  test("a long paragraph is kept back from markup on that is not closed yet", () => {
    const stream = new MarkdownStream(() => plainContext(40));
    const words = "a few words more ".repeat(30);
    expect(stream.push(`one **two ${words}`)).toEqual([]);
    const [first = []] = stream.push("three** four\n");
    expect(first.some(({ text, style }) => style === bold && text.includes("two a few"))).toBe(true);
  });

  test("markup that is closed in the next line is understood", () => {
    expect(rendered("this is **very\nimportant** indeed")).toEqual(["this is very important indeed"]);
  });

  test("columns of a table are aligned whatever is in them", () => {
    const table = [
      "| name | value |",
      "|---|---|",
      "| plain | abc |",
      "| 日本語 | 漢字 |",
      "| 👩‍💻 é | שלום |",
    ];
    const rows = rendered(table.join("\n"));
    expect(rows).toEqual([
      "name   │ value",
      "───────┼──────",
      "plain  │ abc",
      "日本語 │ 漢字",
      "👩‍💻 é   │ שלום",
    ]);
  });

  test("a cell that is too long for its column continues below", () => {
    const rows = rendered("| a | b |\n|---|---|\n| one two three | four five six |", 20);
    expect(rows).toEqual(["a        │ b", "─────────┼──────────", "one two  │ four five", "three    │ six"]);
  });

  test("a table whose words would have to be broken becomes a list [CLI-4]", () => {
    const table = "| name | path |\n|---|---|\n| limit of it | packages/hosts/src/a.ts |";
    expect(rendered(table, 32)).toEqual([
      "name   │ path",
      "───────┼────────────────────────",
      "limit  │ packages/hosts/src/a.ts",
      "of it  │ ",
    ]);
    expect(rendered(table, 28)).toEqual(["- name: limit of it", "  path:", "    packages/hosts/src/a.ts"]);
  });

  test("a table wider than the window becomes a list", () => {
    const rows = rendered(`| a | b |\n|---|---|\n| ${"x".repeat(9)} | ${"y ".repeat(9)}|`, 9);
    expect(rows.every((line) => line.length <= 9)).toBe(true);
    expect(rows[0]).toBe("- a:");
  });

  test("each line is final when it has ended, and arrives the same in whatever pieces", () => {
    const blocks = fc.constantFrom(
      "words and **more** words",
      "- item",
      "  1. nested",
      "",
      "# head",
      "```",
      "code ` here",
      "| a | b |",
      "|---|---|",
      "> q",
      "日本語 `x` **y**",
    );
    fc.assert(
      fc.property(fc.array(blocks, { maxLength: 12 }), fc.integer({ min: 1, max: 9 }), (lines, size) => {
        const text = lines.join("\n");
        const stream = new MarkdownStream(() => plainContext(30));
        const rows = [];
        for (let at = 0; at < text.length; at += size) {
          rows.push(...stream.push(text.slice(at, at + size)));
          for (const row of stream.live()) expect(rowWidth(row)).toBeLessThanOrEqual(30);
        }
        rows.push(...stream.end());
        expect(rows.map(rowText)).toEqual(rendered(text, 30));
      }),
      { numRuns: 200 },
    );
  });

  test("line ends that Markdown does not know lose no text [CLI-4]", () => {
    const ends = ["\r", "\u2028", "\u2029"];
    for (const end of ends) {
      expect(rendered(`one${end}two`)).toEqual(["one two"]);
      expect(rendered(`- one${end}two`)).toEqual(["- one two"]);
      expect(rendered(`| a | b |\n|---|---|\n| one${end}two | x |`)).toContain("one two │ x");
      const stream = new MarkdownStream(() => plainContext(80));
      stream.push(`one${end}two`);
      expect(stream.live().map(rowText)).toEqual(["one two"]);
    }
  });

  test("what a model says holds no control sequence when it is shown", () => {
    const rows = rendered("a\u001b[2J **b\u0007** `c\u009b31m` [d\u202e](http://x)");
    expect(rows.join("\n")).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/);
  });
});
