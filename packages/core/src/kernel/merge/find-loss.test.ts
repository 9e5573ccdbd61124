import { describe, expect, test } from "vitest";
import { findLoss } from "./find-loss.ts";

const text = (...lines: readonly string[]) => `${lines.join("\n")}\n`;
const base = text("one", "two", "three", "four", "gone", "five", "six");
/** `clean A` is of one side, `gone` was removed by one; both have added something behind `two`. */
const merged = text(
  "one",
  "two",
  ...["<<<<<<< HEAD", "ours 1", "ours 2", "||||||| base", "=======", "theirs", ">>>>>>> theirs"],
  "three",
  "four",
  "clean A",
  "five",
  "six",
);
const good = ["one", "two", "ours 1", "ours 2", "theirs", "three", "four", "clean A", "five", "six"];
const without = (...lost: readonly string[]) => text(...good.filter((line) => !lost.includes(line)));
const lossOf = (result: string) => findLoss({ merged, result, base });

describe("what a resolver has lost [MRG-1]", () => {
  test.each([
    ["a line of a side that does not conflict", without("clean A"), 'drops "clean A"'],
    ["a line that neither side has touched", without("six"), 'drops "six"'],
    ["a line beside the conflict", without("three"), 'drops "three"'],
    ["one of several lines in conflict", without("ours 2"), 'drops "ours 2"'],
    ["the line of the other side", without("theirs"), 'drops "theirs"'],
    [
      "a removal",
      text(...good.slice(0, 8), "gone", "five", "six"),
      'restores "gone", which one side has removed',
    ],
    ["two lines for one", without("four", "clean A").replace("three", "three\nall of it"), 'drops "four"'],
  ])("%s", (_what, result, expected) => {
    expect(lossOf(result)).toBe(expected);
  });

  test.each([
    ["both sides in any order", text("one", "two", "theirs", "ours 1", "ours 2", ...good.slice(5))],
    ["one line that does what both wanted", text("one", "two", "ours and theirs", ...good.slice(5))],
    ["lines that are added elsewhere", text("first", ...good, "last")],
    ["a line that is adapted", without().replace("clean A", "clean A, adapted")],
    ["other ends of lines", without().replaceAll("\n", "\r\n")],
    ["a last line without an end", without().trimEnd()],
  ])("nothing in %s", (_what, result) => {
    expect(lossOf(result)).toBeUndefined();
  });

  test("headings and markers of a text without conflicts are lines like others", () => {
    const page = text("Title", "=======", "text");
    expect(findLoss({ merged: page, result: page, base: "" })).toBeUndefined();
    expect(findLoss({ merged: page, result: text("Title", "======="), base: "" })).toBe('drops "text"');
  });

  test("a text of which nothing is left has lost its first line", () => {
    const long = text(...Array.from({ length: 2000 }, (_, at) => `line ${at}`));
    expect(findLoss({ merged: long, result: "", base: "" })).toMatch(/^drops /);
  });
});
