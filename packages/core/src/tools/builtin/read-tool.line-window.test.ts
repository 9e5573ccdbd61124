import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createLineWindow, type LineRange, numberLines, type ShownLines } from "./read-tool.ts";

const all: LineRange = { start: 1, count: 1000, lineLength: 1000, characters: 100_000 };

function show(text: string, range: Partial<LineRange> = {}, piece = text.length || 1): ShownLines {
  const window = createLineWindow({ ...all, ...range });
  for (let at = 0; at < text.length; at += piece) window.take(text.slice(at, at + piece));
  return window.finish();
}

describe("a window of lines", () => {
  test.each<[string, string[]]>([
    ["", []],
    ["a", ["a"]],
    ["a\n", ["a"]],
    ["a\n\n", ["a", ""]],
    ["a\r\nb\r\n", ["a", "b"]],
    ["a\rb", ["a\rb"]],
    ["\n", [""]],
  ])("%j has the lines %j", (text, lines) => {
    expect(show(text)).toEqual({ start: 1, lines, total: lines.length, shortened: 0 });
  });

  test("shows what is asked for and counts the rest", () => {
    expect(show("1\n2\n3\n4\n5", { start: 2, count: 2 })).toMatchObject({ lines: ["2", "3"], total: 5 });
    expect(show("1\n2", { start: 9 })).toMatchObject({ lines: [], total: 2 });
  });

  test("cuts long lines between characters and says how much is missing", () => {
    const { lines, shortened } = show("😀😀😀\nab\n", { lineLength: 3 });
    expect(lines).toEqual(["😀… [line cut, 4 more characters]", "ab"]);
    expect(shortened).toBe(1);
    expect(show("abc\r\n", { lineLength: 3 }).lines).toEqual(["abc"]);
  });

  test("ends at a line when the characters are used up, but always shows one", () => {
    expect(show("aaaa\nbbbb\ncccc", { characters: 9 })).toMatchObject({ lines: ["aaaa", "bbbb"], total: 3 });
    expect(show("aaaa\nbbbb", { characters: 1 }).lines).toEqual(["aaaa"]);
  });

  test("is the same however the text is cut into pieces", () => {
    const text = fc.string({ unit: fc.constantFrom("a", "\n", "\r", "😀", "b") });
    fc.assert(
      fc.property(
        text,
        fc.integer({ min: 1, max: 7 }),
        fc.integer({ min: 1, max: 6 }),
        (given, piece, length) => {
          const range = { start: 1, count: 4, lineLength: length, characters: 12 };
          expect(show(given, range, piece)).toEqual(show(given, range));
        },
      ),
    );
  });

  test("numbers lines from the first that is shown", () => {
    expect(numberLines({ start: 9, lines: ["a", "", "c"] })).toBe("9\ta\n10\t\n11\tc");
  });
});
