import { expect, test } from "vitest";
import { matchesPattern } from "./match-pattern.ts";

test.each([
  ["a", "a", true],
  ["a", "ab", false],
  ["a*", "ab", true],
  ["*", "", true],
  ["*b", "ab", true],
  ["a*b", "ab", true],
  ["a*b", "aXXb", true],
  ["aa*aa", "aaa", false],
  ["*x*", "axb", true],
  ["*x*", "ab", false],
  ["a**b", "ab", true],
])("%s against %s is %s", (pattern, text, expected) => {
  expect(matchesPattern(pattern, text)).toBe(expected);
});

test("a pattern made to be slow is not", () => {
  expect(matchesPattern(`${"*a".repeat(2000)}b`, "a".repeat(20_000))).toBe(false);
});
