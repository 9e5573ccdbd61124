import { expect, it } from "vitest";
import { allowsColour } from "../cli/create-real-host.ts";
import { createPaint } from "./paint.ts";

it.each([
  [true, {}, true],
  [false, {}, false],
  [true, { NO_COLOR: "1" }, false],
  [true, { NO_COLOR: "" }, true],
  [false, { FORCE_COLOR: "1" }, true],
  [true, { FORCE_COLOR: "0" }, false],
  [true, { TERM: "dumb" }, false],
  [true, { FORCE_COLOR: "1", NO_COLOR: "1" }, true],
])("colours with a terminal %s and %j: %s [CLI-6]", (isTerminal, environment, expected) => {
  expect(allowsColour(isTerminal, environment)).toBe(expected);
});

it("writes no escape codes where colours are off", () => {
  expect(createPaint(false).error("x")).toBe("x");
  expect(createPaint(true).error("x")).toContain("\u001b[31m");
});
