import { describe, expect, test } from "vitest";
import { quickTests } from "./quick-tests.ts";

const files = [
  ["packages/core/src/loop/run-loop.ts", ""],
  ["packages/core/src/loop/run-loop.test.ts", 'import { runLoop } from "./run-loop.ts";'],
  ["packages/core/src/loop/retry.test.ts", 'import { retry } from "./retry.ts";'],
  ["packages/core/src/tasks/spawn.test.ts", 'import { runLoop } from "../loop/run-loop.ts";'],
  ["packages/core/src/tasks/stop.test.ts", 'import { stop } from "./stop.ts";'],
  ["packages/hosts/src/print/print.test.ts", 'import { runLoop } from "@retinue/core/loop/run-loop.ts";'],
  ["packages/gate/src/decide.test.ts", 'import { decide } from "./decide.ts";'],
  ["packages/gate/src/rules/parse-rule.test.ts", 'import { parseRule } from "./parse-rule.ts";'],
  ["test/architecture.test.ts", ""],
  ["test/scenarios/run-command.ts", ""],
  ["test/scenarios/print.test.ts", 'import { runCommand } from "./run-command.ts";'],
  ["test/terminal/once.test.ts", 'import { runLoop } from "../../packages/core/src/loop/run-loop.ts";'],
].map(([path = "", text = ""]) => ({ path, text }));

describe("the tests for a change in progress are the rules and", () => {
  test.each([
    [
      "those in the folder of a source, and those beside sources that import it",
      ["packages/core/src/loop/run-loop.ts"],
      [
        "packages/core/src/loop/run-loop.test.ts",
        "packages/core/src/loop/retry.test.ts",
        "packages/core/src/tasks/spawn.test.ts",
        "packages/hosts/src/print/print.test.ts",
      ],
    ],
    [
      "nothing of the folders below that of a source, where it is not imported",
      ["packages/gate/src/decide.ts"],
      ["packages/gate/src/decide.test.ts"],
    ],
    [
      "suites that use what changed in test/",
      ["test/scenarios/run-command.ts"],
      ["test/scenarios/print.test.ts"],
    ],
    ["a suite that changed", ["test/terminal/once.test.ts"], ["test/terminal/once.test.ts"]],
    ["nothing else for a page", ["docs/cli.md"], []],
  ])("%s", (_, changed, chosen) => {
    expect(quickTests(changed, files).toSorted()).toEqual(
      ["test/architecture.test.ts", ...chosen].toSorted(),
    );
  });
});
