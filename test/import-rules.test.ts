import { expect, test } from "vitest";
import { forbiddenImports } from "./import-rules.ts";
import { importTable, readTable } from "./import-table.ts";

test.each([
  ["packages/config/src/agents/a.ts", 'import { b } from "../settings/b.ts";'],
  ["packages/config/src/agents/builtin/a.ts", 'import { b } from "@retinue/base/foundation/b.ts";'],
  ["packages/config/src/agents/builtin/a.ts", 'import { b } from "../b.ts";'],
  ["packages/hosts/src/cli/a.ts", 'import { b } from "@retinue/core/kernel/b.ts";'],
  ["src/index.ts", 'export { b } from "@retinue/config/agents/b.ts";'],
  ["packages/base/src/foundation/a.ts", 'import yaml from "js-yaml";'],
])("%s may hold %j", (path, text) => {
  expect(forbiddenImports({ path, text })).toEqual([]);
});

test.each([
  ["packages/config/src/settings/a.ts", 'import { b } from "../agents/b.ts";', "agents"],
  ["packages/config/src/settings/a.ts", 'import type { B } from "../agents/b.ts";', "agents"],
  ["packages/config/src/settings/a.ts", 'const b = await import("../agents/b.ts");', "agents"],
  ["packages/config/src/hooks/a.ts", 'import { b } from "@retinue/core/hooks/b.ts";', "core"],
  ["packages/config/src/hooks/a.ts", 'import { b } from "../../../gate/src/decide.ts";', "gate"],
  ["packages/core/src/loop/a.ts", 'import { b } from "../planning/b.ts";', "planning"],
  ["packages/core/src/kernel/a.ts", 'import { b } from "@retinue/hosts/cli/b.ts";', "hosts"],
  ["packages/testing/src/a.ts", 'import { b } from "@retinue/hosts/cli/b.ts";', "hosts"],
  ["src/index.ts", 'export { b } from "@retinue/hosts/cli/b.ts";', "hosts"],
  ["packages/base/src/foundation/a.ts", 'import { b } from "../../../../test/b.ts";', "test"],
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
