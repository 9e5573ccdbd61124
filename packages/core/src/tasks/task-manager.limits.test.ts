import { expect, test } from "vitest";
import { readChildLimits } from "./task-manager.ts";

test.each([
  [undefined, undefined, { maxRunning: 10 }],
  [{ agents: 20 }, undefined, { maxRunning: 20 }],
  [{ overflow: "refuse" }, undefined, { maxRunning: 10, overflow: "refuse" }],
  [{ overflow: "queue" }, 3, { maxRunning: 3, overflow: "queue" }],
  [{ agents: 20 }, 100, { maxRunning: 100 }],
])("[LIM-1] the setting %j with %j in the environment gives %j", (setting, fromEnvironment, expected) => {
  expect(readChildLimits(setting, fromEnvironment)).toEqual(expected);
});
