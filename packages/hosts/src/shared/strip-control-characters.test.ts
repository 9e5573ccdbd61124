import { anyCharacter } from "@retinue/testing/any-character.ts";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { cutTo, pad, stripControlCharacters, widthOf, wrap } from "./strip-control-characters.ts";

describe("text in a terminal", () => {
  it.each([
    ["plain", 5],
    ["日本語", 6],
    ["한글", 4],
    ["e\u0301", 1],
    ["🙂", 2],
    ["👩\u200d💻", 2],
    ["\u001b[31mred\u001b[39m", 3],
    ["", 0],
  ])("%j takes %i cells", (text, width) => {
    expect(widthOf(text)).toBe(width);
  });

  it("is never wider than it was cut to, and keeps what fits", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), fc.integer({ min: 0, max: 30 }), (raw, width) => {
        const text = stripControlCharacters(raw);
        const cut = cutTo(text, width);
        expect(widthOf(cut)).toBeLessThanOrEqual(width);
        if (widthOf(text) <= width) expect(cut).toBe(text);
      }),
    );
  });

  it("is wrapped into lines that fit, without losing a word", () => {
    fc.assert(
      fc.property(
        fc.array(fc.stringMatching(/^[a-z日本]{1,12}$/)),
        fc.integer({ min: 24, max: 60 }),
        (words, width) => {
          const lines = wrap(words.join(" "), width);
          for (const line of lines) expect(widthOf(line)).toBeLessThanOrEqual(width);
          expect(lines.join(" ").split(" ")).toEqual(words.join(" ").split(" "));
        },
      ),
    );
  });

  it("breaks a word that is longer than a line", () => {
    expect(wrap("abcdefghijkl", 8)).toEqual(["abcdefgh", "ijkl"]);
  });

  it("is padded by cells, not by characters", () => {
    expect(pad("日本", 6)).toBe("日本  ");
  });

  it("holds nothing a terminal would act on", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: anyCharacter }),
        (text) => !/[\u0000-\u001f\u007f-\u009f\u202e]/.test(stripControlCharacters(text)),
      ),
    );
  });
});
