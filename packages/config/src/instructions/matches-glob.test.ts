import { expect, it } from "vitest";
import { matchesGlob } from "./matches-glob.ts";

it.each([
  ["/a/b.md", "/a/b.md", true],
  ["/a/*.md", "/a/b.md", true],
  ["/a/*.md", "/a/c/b.md", false],
  ["**/b.md", "/a/c/b.md", true],
  ["**/b.md", "b.md", true],
  ["/a/**", "/a/b/c", true],
  ["/a/**/c", "/a/c", true],
  ["/a/**/c", "/a/x/y/c", true],
  ["/a/**/c", "/a/x/y/d", false],
  ["/a/?.md", "/a/b.md", true],
  ["/a/?.md", "/a/bb.md", false],
  ["src/**/*.{ts,tsx}", "src/x/y.tsx", true],
  ["src/**/*.{ts,tsx}", "src/x/y.js", false],
  ["{a,{b,c}}/d", "c/d", true],
  ["a.md", "aXmd", false],
])("%s against %s is %s", (pattern, path, expected) => {
  expect(matchesGlob(pattern, path)).toBe(expected);
});

it("a pattern made to be slow is not", () => {
  expect(matchesGlob(`${"**/*a".repeat(50)}/b`, `${"a/".repeat(300)}c`)).toBe(false);
  expect(matchesGlob("{a,b}".repeat(40), "x")).toBe(false);
});
