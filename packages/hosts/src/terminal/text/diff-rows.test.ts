import { describe, expect, test } from "vitest";
import { rowText, rowWidth } from "../screen/row.ts";
import { backgrounds, colours, createPalette } from "../screen/style.ts";
import { changedWords } from "./changed-words.ts";
import { CodeColours } from "./code-colours.ts";
import { diffRows } from "./diff-rows.ts";
import { plainContext } from "./row-context.ts";

const diff = {
  path: "/x/a.ts",
  hunks: [
    {
      oldStart: 9,
      newStart: 9,
      lines: [
        " before",
        "-const limit = 10;",
        "+const limit = 20;",
        "-gone for good",
        "+# quite another line",
      ],
    },
  ],
};

describe("a change of a file", () => {
  test("marks the words that differ, and only in lines that are the same line changed [CLI-4]", () => {
    const rows = diffRows(diff, plainContext(60), { maxRows: 20 });
    const words = rows.map((row) =>
      row
        .filter(({ style }) => style === backgrounds.addedWord || style === backgrounds.removedWord)
        .map(({ text }) => text),
    );
    expect(words).toEqual([[], ["10"], ["20"], [], []]);
    expect(rows.map((row) => rowText(row).trimEnd())).toEqual([
      "   9   before",
      "  10 - const limit = 10;",
      "  10 + const limit = 20;",
      "  11 - gone for good",
      "  11 + # quite another line",
    ]);
  });

  test("has the colours of its language above the background [CLI-4]", async () => {
    const code = new CodeColours({ isOn: true });
    await code.load();
    const [, removed = []] = diffRows(diff, { ...plainContext(60), code }, { maxRows: 20 });
    expect(removed.find(({ text }) => text === "const")?.style).toBe(
      colours.keyword | backgrounds.removedLine,
    );
    expect(removed.find(({ text }) => text === "10")?.style).toBe(colours.number | backgrounds.removedWord);
  });

  test("where there is no room for the lines around changes, the changes are seen before them [CLI-4]", () => {
    const lines = [" one", " two", " three", "-old", "+new", " four", " five", " six", "-gone", " seven"];
    const hunks = [{ oldStart: 1, newStart: 1, lines }];
    const shown = (maxRows: number): readonly string[] =>
      diffRows({ path: "a", hunks }, plainContext(40), { maxRows, wholeKey: "v" }).map((row) =>
        rowText(row).trimEnd(),
      );
    expect(shown(10)).toHaveLength(10);
    expect(shown(8)).toEqual([
      "  3   three",
      "  4 - old",
      "  4 + new",
      "  5   four",
      "      ⋯",
      "  7   six",
      "  8 - gone",
      "  8   seven",
    ]);
    expect(shown(3)).toEqual(["  4 - old", "  4 + new", "      ⋯", "  … 1 more line (v shows all)"]);
    expect(shown(2)).toEqual(["  4 - old", "  4 + new", "  … 2 more lines (v shows all)"]);
  });

  test("long lines are continued below between words, and what has no room is counted", () => {
    const hunks = [{ oldStart: 1, newStart: 1, lines: ["+one two three four five six", "+seven", "+eight"] }];
    const rows = diffRows({ path: "a", hunks }, plainContext(24), { maxRows: 3 });
    expect(rows.map((row) => rowText(row).trimEnd())).toEqual([
      "  1 + one two three four",
      "      five six",
      "  2 + seven",
      "  … 1 more line (ctrl+o shows all)",
    ]);
    expect(Math.max(...rows.slice(0, 3).map(rowWidth))).toBeLessThanOrEqual(24);
  });

  test("a line that was added above a changed one does not hide which words differ", () => {
    const lines = [
      "-  return limits.get(name) ?? 1;",
      "+  // One at least.",
      "+  return limits.get(name) ?? least;",
    ];
    const rows = diffRows({ path: "a", hunks: [{ oldStart: 1, newStart: 1, lines }] }, plainContext(60), {
      maxRows: 9,
    });
    const added = rows.at(-1) ?? [];
    expect(added.filter(({ style }) => style === backgrounds.addedWord).map(({ text }) => text)).toEqual([
      "least",
    ]);
  });

  test("words are found again whatever is between them", () => {
    expect(changedWords("a(b, c)", "a(b, d)")).toEqual({
      before: [{ from: 5, to: 6 }],
      after: [{ from: 5, to: 6 }],
    });
    expect(changedWords("one", "two")).toBeUndefined();
  });
});

describe("the colours of a terminal", () => {
  const style = colours.keyword | backgrounds.addedWord;
  test.each([
    ["none", "\u001b[1;4m"],
    ["16", "\u001b[1;4;32m"],
    ["256", "\u001b[38;5;177;48;5;28m"],
    ["any", "\u001b[38;2;207;142;241;48;2;26;80;44m"],
  ] as const)("with %s", (depth, sequence) => {
    expect(createPalette({ depth, background: "dark" })(style)).toBe(sequence);
  });

  test("can be read on the backgrounds of changed lines", () => {
    for (const background of ["dark", "light"] as const) {
      const palette = createPalette({ depth: "any", background });
      const base = background === "dark" ? [16, 16, 20] : [255, 255, 255];
      for (const role of [17, 18, 19, 20, 21, 22, 23, 24])
        for (const under of [0, ...Object.values(backgrounds)]) {
          const numbers = (palette(role | under).match(/\d+/g) ?? []).map(Number);
          const tone = numbers.slice(2, 5);
          const below = under === 0 ? base : numbers.slice(7, 10);
          expect([background, role, under >> 16, contrast(tone, below) >= 3]).toEqual([
            background,
            role,
            under >> 16,
            true,
          ]);
        }
    }
  });
});

function contrast(a: readonly number[], b: readonly number[]): number {
  const [x, y] = [luminance(a), luminance(b)];
  return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
}

function luminance([red = 0, green = 0, blue = 0]: readonly number[]): number {
  const [r = 0, g = 0, b = 0] = [red, green, blue].map((value) => {
    const share = value / 255;
    return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
