import { expect, test } from "vitest";
import { cappedEffort } from "./with-request-settings.ts";

test.each([
  ["low", "high", "low"],
  ["max", "medium", "medium"],
  ["medium", "medium", "medium"],
  [8, 4, 4],
  [2, 4, 2],
  // What cannot be compared is at most the ceiling.
  ["low", 4, 4],
  [8, "low", "low"],
  ["ultra", "high", "high"],
  // Nothing said means what providers take, which may be more than the ceiling.
  [undefined, "low", "low"],
  [undefined, "high", undefined],
  [undefined, "max", undefined],
  [undefined, 4, 4],
])("of %j at most %j is %j [LIM-3]", (asked, most, expected) => {
  expect(cappedEffort(asked, most)).toBe(expected);
});
