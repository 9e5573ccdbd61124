import { expect, test } from "vitest";
import { testsWithoutSource } from "./tests-without-source.ts";

test.each([
  ["a test of the source's name", ["src/a.ts", "src/a.test.ts"], []],
  ["a test of a part of it", ["src/a.ts", "src/a.some-part.test.ts"], []],
  ["a test of a component", ["src/a.tsx", "src/a.test.ts"], []],
  ["a test of something else", ["src/a.ts", "src/b.test.ts"], ["src/b.test.ts"]],
  ["a source in another folder", ["src/a.ts", "src/b/a.test.ts"], ["src/b/a.test.ts"]],
  ["a name that only begins like a source's", ["src/a.ts", "src/a-part.test.ts"], ["src/a-part.test.ts"]],
  ["a test of a test", ["src/a.part.test.ts"], ["src/a.part.test.ts"]],
] as const)("%s", (_, paths, found) => {
  expect(testsWithoutSource(paths)).toEqual(found);
});
