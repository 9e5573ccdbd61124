import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { findOccurrences, replaceRanges } from "./replace-ranges.ts";

const replace = (text: string, from: string, to: string) =>
  replaceRanges(text, findOccurrences(text, from), to);

describe("replacing text", () => {
  test.each([
    ["a b a", "a", "x", "x b x"],
    ["aaa", "aa", "b", "ba"],
    ["a$b", "$b", "$&$1", "a$&$1"],
    ["one\r\ntwo\r\nthree\r\n", "one\ntwo", "1\n2\n2b", "1\r\n2\r\n2b\r\nthree\r\n"],
    ["one\r\ntwo\r\n", "one\r\ntwo", "1\r\n2", "1\r\n2\r\n"],
    ["one\r\ntwo", "\ntwo", "", "one"],
    ["one\r\ntwo", "one\n", "", "two"],
    ["one\r\ntwo\nthree\n", "two\nthree", "2\n3", "one\r\n2\n3\n"],
    ["one\r\ntwo\r\nend", "end", "a\nb", "one\r\ntwo\r\na\r\nb"],
    ["one\ntwo\n", "one\r\ntwo", "x", "one\ntwo\n"],
    ["x", "", "y", "x"],
  ])("in %j %j becomes %j", (text, from, to, result) => {
    expect(replace(text, from, to)).toBe(result);
  });

  test("places that overlap are found when asked for", () => {
    expect(findOccurrences("aaa", "aa")).toHaveLength(1);
    expect(findOccurrences("aaa", "aa", true)).toHaveLength(2);
  });

  test("the places found in CRLF text are those that read as the wanted lines", () => {
    const unit = fc.constantFrom("a", "b", "\r\n", "\n", "😀");
    fc.assert(
      fc.property(fc.string({ unit }), fc.string({ unit, minLength: 1, maxLength: 3 }), (text, wanted) => {
        for (const { start, end } of findOccurrences(text, wanted)) {
          const place = text.slice(start, end);
          if (text.includes("\r\n"))
            expect(place.replaceAll("\r\n", "\n")).toBe(wanted.replaceAll("\r\n", "\n"));
          else expect(place).toBe(wanted);
        }
      }),
    );
  });
});
