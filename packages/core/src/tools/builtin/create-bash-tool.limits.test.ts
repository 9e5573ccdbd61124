import { describe, expect, test } from "vitest";
import { backgroundLimit, foregroundLimit, outputLimit } from "./create-bash-tool.ts";

describe("the time limit of a command", () => {
  test.each([
    [undefined, {}, 120_000],
    [5_000, {}, 5_000],
    [0, {}, 120_000],
    [900_000, {}, 600_000],
    [undefined, { BASH_DEFAULT_TIMEOUT_MS: "1000" }, 1_000],
    [900_000, { BASH_MAX_TIMEOUT_MS: "1000000" }, 900_000],
    [undefined, { BASH_DEFAULT_TIMEOUT_MS: "700000" }, 700_000],
    [undefined, { BASH_DEFAULT_TIMEOUT_MS: "soon" }, 120_000],
    [undefined, { BASH_DEFAULT_TIMEOUT_MS: "-1" }, 120_000],
    [9e12, { BASH_MAX_TIMEOUT_MS: "9000000000000" }, 2 ** 31 - 1],
  ])("a wish of %s with %j gives %i ms", (wished, environment, expected) => {
    expect(foregroundLimit(wished, environment).milliseconds).toBe(expected);
  });

  test("a request that was cut is reported", () => {
    expect(foregroundLimit(900_000, {}).note).toContain("600000");
    expect(foregroundLimit(600_000, {}).note).toBeUndefined();
  });

  test("is half an hour in the background, two hours at most", () => {
    expect(backgroundLimit(undefined).milliseconds).toBe(1_800_000);
    expect(backgroundLimit(1e9).milliseconds).toBe(7_200_000);
  });
});

test.each([
  [undefined, 30_000],
  ["50000", 50_000],
  ["10", 4_000],
  ["9000000", 128_000],
  ["many", 30_000],
])("BASH_MAX_OUTPUT_LENGTH=%s shows %i characters", (value, expected) => {
  expect(outputLimit({ BASH_MAX_OUTPUT_LENGTH: value })).toBe(expected);
});
