import { expect, it } from "vitest";
import { describeAge } from "./describe-age.ts";

it.each([
  [-5, "0 s"],
  [0, "0 s"],
  [59_999, "59 s"],
  [60_000, "1 min"],
  [3_600_000, "1 h"],
  [86_400_000 * 40, "40 d"],
])("%d ms are %s", (milliseconds, text) => {
  expect(describeAge(milliseconds)).toBe(text);
});
