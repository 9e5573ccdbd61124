import { expect, test } from "vitest";
import { nearestName } from "./nearest-name.ts";

test.each([
  ["modle", "model"],
  ["permission-mode", "permissionMode"],
  ["Tools", "tools"],
  ["max_turns", "maxTurns"],
  ["discription", "description"],
  ["category", undefined],
  ["", undefined],
])("%s means %s", (written, expected) => {
  const known = ["name", "description", "tools", "model", "permissionMode", "maxTurns"];
  expect(nearestName(written, known)).toBe(expected);
});
