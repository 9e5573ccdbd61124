import { expect, test } from "vitest";
import { findImpureCode, mayDoIo } from "./impure-code.ts";

test.each([
  ['import { readFile } from "node:fs/promises";', ["1: imports node:fs/promises"]],
  ['import fs from "fs";', ["1: imports fs"]],
  ['\nconst os = await import("node:os");', ["2: imports node:os"]],
  ["const home = process.env.HOME;", ["1: process.env"]],
  ["const here = process\n  .cwd();", ["1: process.cwd"]],
  ["const now = Date.now() + Math.random();", ["1: Date.now", "1: Math.random"]],
  ["const now = new Date();", ["1: new Date()"]],
  ["await fetch(url);", ["1: fetch()"]],
])("%j touches the world", (source, expected) => {
  expect(findImpureCode(source)).toEqual(expected);
});

test.each([
  ['import type { Stats } from "node:fs";'],
  ['import { join } from "node:path";'],
  ["// reads process.env"],
  ['const advice = "Set process.env.HOME";'],
  ["const day = new Date(written);"],
  ["const answer = host.fetch(url); child.process.env;"],
])("%j only computes", (source) => {
  expect(findImpureCode(source)).toEqual([]);
});

test.each([
  ["packages/config/src/discovery/discover-agents.ts", '// @io\nimport "node:fs";\n', true],
  ["packages/config/src/discovery/discover-agents.ts", "\n// @io\n", false],
  ["packages/hosts/src/cli/main.ts", "", true],
  ["src/planning/plan-run.ts", "// I/O is done elsewhere", false],
])("whether %s may do I/O with the text %j: %s", (path, text, expected) => {
  expect(mayDoIo({ path, text })).toBe(expected);
});
