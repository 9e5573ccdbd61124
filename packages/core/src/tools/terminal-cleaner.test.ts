import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { cleanTerminalText, createTerminalCleaner } from "./terminal-cleaner.ts";

test.each([
  ["plain text\n", "plain text\n"],
  ["\x1b[1;31mred\x1b[0m and \x1b[38;5;12mblue\x1b[m\n", "red and blue\n"],
  ["\x1b]0;window title\x07shown\n", "shown\n"],
  ["\x1b]8;;https://example.com\x1b\\link\x1b]8;;\x1b\\\n", "link\n"],
  ["\x1bPdevice\x1b\\text\x1b(B\n", "text\n"],
  ["10%\r50%\r100%\n", "100%\n"],
  ["10%\r50%\r100%\r", "100%"],
  ["10%\r\r\ndone\r\n", "10%\ndone\n"],
  ["windows\r\nlines\r\n", "windows\nlines\n"],
  ["N\bNA\bA", "NA"],
  ["a\0\0\0b\x01\x02\ufffd\ufffdc", "a\ufffdb\ufffdc"],
  ["bell\x07", "bell"],
  ["page\fpage", "page\npage"],
  ["grüße 🎉\ttab", "grüße 🎉\ttab"],
])("%j reads as %j", (written, expected) => {
  expect(cleanTerminalText(written)).toBe(expected);
});

describe("piece by piece", () => {
  const inPieces = (text: string, size: number) => {
    const cleaner = createTerminalCleaner();
    let done = "";
    for (let at = 0; at < text.length; at += size) done += cleaner.take(text.slice(at, at + size));
    return done + cleaner.pending();
  };

  test.each([1, 2, 3, 5])("an escape cut in two pieces of %i characters is still dropped", (size) => {
    expect(inPieces("a\x1b[31mb\x1b]0;t\x07c\r\nx\ry\r\n", size)).toBe("abc\ny\n");
  });

  test("lines come out as soon as they are complete, an unfinished one is pending", () => {
    const cleaner = createTerminalCleaner();
    expect(cleaner.take("one\ntw")).toBe("one\n");
    expect(cleaner.pending()).toBe("tw");
    expect(cleaner.take("o\n")).toBe("two\n");
    expect(cleaner.pending()).toBe("");
  });

  test("a line without an end is not held for ever", () => {
    const cleaner = createTerminalCleaner();
    let held = 0;
    for (let count = 0; count < 100; count += 1) {
      cleaner.take("x".repeat(1_000));
      held = Math.max(held, cleaner.pending().length);
    }
    expect(held).toBeLessThan(20_000);
  });

  test("a progress bar of a million redraws keeps one line", () => {
    const cleaner = createTerminalCleaner();
    for (let count = 0; count < 1_000; count += 1) cleaner.take("working\r".repeat(1_000));
    expect(cleaner.take("done\n")).toBe("done\n");
  });

  test("whatever comes, no control character but tab and newline is left", () => {
    const written = fc.array(
      fc.oneof(fc.string(), fc.constantFrom("\x1b[", "\x1b", "\r", "\n", "\b", "\x9b1m", "\x1b]0;", "\0")),
    );
    fc.assert(
      fc.property(written, fc.integer({ min: 1, max: 9 }), (parts, size) => {
        expect(inPieces(parts.join(""), size)).not.toMatch(/[\x00-\x08\x0b-\x1f\x7f-\x9f]/);
      }),
    );
  });
});
