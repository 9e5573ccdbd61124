import type { Skill } from "@retinue/config/skills/skill.ts";
import { expect, test } from "vitest";
import { suits } from "./agent-skills.ts";

const at = (directory: string, paths?: readonly string[], scope: Skill["source"]["scope"] = "project") => ({
  source: { scope, kind: "skill" as const, file: `${directory}/SKILL.md`, directory },
  paths,
});
const own = "/p/.claude/skills/a";
const nested = "/p/web/.claude/skills/a";

test.each([
  ["a pattern from the project's root", at(own, ["src/**/*.ts"]), "/p/src/a/b.ts", true],
  ["another ending", at(own, ["src/**/*.ts"]), "/p/src/a/b.js", false],
  ["a pattern without a folder, at any depth", at(own, ["*.tsx"]), "/p/src/a/b.tsx", true],
  ["a folder", at(own, ["docs/"]), "/p/docs/a/b.md", true],
  ["a pattern that begins at the root", at(own, ["./src/*"]), "/p/src/a.ts", true],
  ["one of several", at(own, ["*.py", "*.{ts,tsx}"]), "/p/a.ts", true],
  ["a nested skill's pattern counts from its folder", at(nested, ["src/*"]), "/p/web/src/a.ts", true],
  ["and not from the root", at(nested, ["src/*"]), "/p/src/a.ts", false],
  ["a nested skill without patterns is for its folder", at(nested), "/p/web/x/y.ts", true],
  ["and for no neighbour that begins alike", at(nested), "/p/website/y.ts", false],
  [
    "a person's skill counts from the project's root",
    at("/h/.claude/skills/a", ["src/*"], "user"),
    "/p/src/a.ts",
    true,
  ],
  ["a file outside is for none", at(own, ["**/*.ts"]), "/q/a.ts", false],
  ["a name that begins with two dots is inside", at(own, ["*.ts"]), "/p/..a.ts", true],
] as const)("[SKL-3] whether a skill is for a file: %s", (_, skill, path, expected) => {
  expect(suits(skill, path, "/p")).toBe(expected);
});
