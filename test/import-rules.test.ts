import { expect, test } from "vitest";
import { forbiddenImports } from "./import-rules.ts";
import { importTable, readTable } from "./import-table.ts";

test.each([
  ["packages/config/src/agents/a.ts", 'import { b } from "../settings/b.ts";'],
  ["packages/config/src/agents/builtin/a.ts", 'import { b } from "../../foundation/b.ts";'],
  ["packages/config/src/agents/builtin/a.ts", 'import { b } from "../b.ts";'],
  ["packages/hosts/src/cli/a.ts", 'import { b } from "../../definitions/b.ts";'],
  ["src/index.ts", 'export { b } from "./definitions/b.ts";'],
  ["packages/base/src/foundation/a.ts", 'import yaml from "js-yaml";'],
])("%s may hold %j", (path, text) => {
  expect(forbiddenImports({ path, text })).toEqual([]);
});

test.each([
  ["packages/config/src/settings/a.ts", 'import { b } from "../definitions/b.ts";', "definitions"],
  ["packages/config/src/settings/a.ts", 'import type { B } from "../definitions/b.ts";', "definitions"],
  ["packages/config/src/settings/a.ts", 'const b = await import("../definitions/b.ts");', "definitions"],
  ["src/hooks/a.ts", 'import { b } from "../permissions/b.ts";', "permissions"],
  ["src/loop/a.ts", 'import { b } from "../planning/b.ts";', "planning"],
  ["packages/core/src/kernel/a.ts", 'import { b } from "../apps/b.ts";', "apps"],
  ["packages/testing/src/a.ts", 'import { b } from "../apps/b.ts";', "apps"],
  ["src/index.ts", 'export { b } from "./apps/cli/b.ts";', "apps"],
  ["packages/base/src/foundation/a.ts", 'import { b } from "../../test/b.ts";', "test"],
])("%s may not hold %j", (path, text, named) => {
  const [found = "", ...others] = forbiddenImports({ path, text });
  expect(others).toEqual([]);
  expect(found).toContain(`${path}:1`);
  expect(found).toContain(named);
});

test("what a folder may import is itself in the table", () => {
  const named = [...importTable.values()].flat();
  expect(named.filter((folder) => !importTable.has(folder))).toEqual([]);
});

test("a row can take over what an earlier row allows", () => {
  expect([...readTable("a |\nb | a\nc | all of b, b")]).toEqual([
    ["a", []],
    ["b", ["a"]],
    ["c", ["a", "b"]],
  ]);
});
