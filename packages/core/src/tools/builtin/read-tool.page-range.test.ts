import { expect, test } from "vitest";
import { readPageRange } from "./read-tool.ts";

test.each([
  [undefined, 1, 20],
  ["3", 3, 3],
  ["2-4", 2, 4],
  [" 2 – 4 ", 2, 4],
  ["25-", 25, 30],
  ["5-", 5, 24],
  ["29-99", 29, 30],
])("of 30 pages %j means %i to %i", (given, first, last) => {
  expect(readPageRange(given, { total: 30, limit: 20 })).toEqual({ type: "pages", first, last });
});

test.each([
  ["0", "pages 1 to 30"],
  ["31", "pages 1 to 30"],
  ["5-2", "ends before"],
  ["1-21", "more than 20"],
  ["one", "not a page range"],
  ["1,2", "not a page range"],
])("of 30 pages %j is refused", (given, reason) => {
  const range = readPageRange(given, { total: 30, limit: 20 });
  expect(range).toMatchObject({ type: "refused", reason: expect.stringContaining(reason) });
});
