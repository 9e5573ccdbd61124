import { expect, it } from "vitest";
import { withinTime } from "./within-time.ts";

it("gives what the call gives, and its error as it is", () => {
  expect(withinTime(() => [1], 10_000)).toEqual({ type: "done", result: [1] });
  const error = new TypeError("own");
  expect(() =>
    withinTime(() => {
      throw error;
    }, 10_000),
  ).toThrow(error);
});

it("ends a regular expression that would run for years", () => {
  const endless = () => /^(a+)+$/.test(`${"a".repeat(60)}b`);
  expect(withinTime(endless, 50)).toEqual({ type: "too-long" });
});
