import { anyCharacter } from "@retinue/testing/any-character.ts";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createPaint } from "./paint.ts";
import { harmlessLines, stripControlCharacters } from "./strip-control-characters.ts";
import { terminalText } from "./terminal-text.ts";

const anything = fc.oneof(
  fc.string({ unit: anyCharacter }),
  fc
    .array(
      fc.constantFrom("\u001b", "[", "]", "8", "m", "52;c;", "\u0007", "\u009b", "\r", "\n", "a", "\u202e"),
    )
    .map((parts) => parts.join("")),
);

describe("what reaches a terminal [CLI-6]", () => {
  it.each([
    ["a title", "\u001b]0;x\u0007", "\\u001b]0;x\\u0007"],
    ["the clipboard", "\u001b]52;c;eA==\u001b\\", "\\u001b]52;c;eA==\\u001b\\"],
    ["hidden text", "\u001b[8mx\u001b[28m", "\\u001b[8mx\\u001b[28m"],
    ["a screen that is cleared", "\u001b[2J\u001b[H", "\\u001b[2J\\u001b[H"],
    ["the same in one byte", "\u009b2J", "\\u009b2J"],
    ["a line that is written over", "safe\revil", "safe\\u000devil"],
    ["a backspace", "a\bb", "a\\u0008b"],
    ["text turned round", "a\u202eb\u2066c", "a\\u202eb\\u2066c"],
    ["invisible letters", "a\u200bb\u{e0041}\u3164\u00ad", "a\\u200bb\\udb40\\udc41\\u3164\\u00ad"],
    ["a joiner in a plain word", "r\u200dm", "r\\u200dm"],
    [
      "lines, tabs and scripts",
      "one\n\ttwo é 日本 🙂 👩\u200d💻 ❤\ufe0f می\u200cخواهم",
      "one\n\ttwo é 日本 🙂 👩\u200d💻 ❤\ufe0f می\u200cخواهم",
    ],
  ])("%s", (_, text, expected) => {
    expect(terminalText(text, { colours: true })).toBe(expected);
  });

  it("keeps the styles of this program where colours are on, and no others", () => {
    const paint = createPaint(true);
    const text = Object.values(paint)
      .map((style) => style("x"))
      .join("");
    expect(terminalText(text, { colours: true })).toBe(text);
    expect(terminalText(text, { colours: false })).not.toContain("\u001b");
  });

  it("holds no control character but line breaks, tabs and own styles, whatever the text", () => {
    fc.assert(
      fc.property(anything, (text) => {
        const shown = terminalText(text, { colours: true }).replace(/\u001b\[(?:1|2|22|3[12346]|39)m/g, "");
        expect(shown).not.toMatch(/[^\n\t\P{Cc}]|[\u202a-\u202e\u2066-\u2069\u200b\ufeff]/u);
        expect(harmlessLines(text)).not.toMatch(/[^\n\t\P{Cc}]|[\u202a-\u202e\u2066-\u2069\u200b\ufeff]/u);
        expect(stripControlCharacters(text)).not.toMatch(/\p{Cc}/u);
      }),
    );
  });

  it("is the same JSON, where it was JSON", () => {
    fc.assert(
      fc.property(anything, (text) => {
        const value = { text: text.toWellFormed() };
        expect(JSON.parse(terminalText(JSON.stringify(value), { colours: true }))).toEqual(value);
      }),
    );
  });
});
