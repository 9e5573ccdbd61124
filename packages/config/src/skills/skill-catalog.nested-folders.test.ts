import { mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createNestedFolders } from "./skill-catalog.ts";

let base: string;
let root: string;
beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), "nested-")));
  root = join(base, "project");
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

const make = (folder: string): void => void mkdirSync(join(root, folder), { recursive: true });

describe("[SKL-1] folders with skills of their own", () => {
  test("are found above a touched file, each once, and never the root itself", () => {
    for (const folder of [".claude/skills", "web/.claude/skills", "web/app/.claude/commands"]) make(folder);
    const nested = createNestedFolders(root);
    expect(nested.touch([join(root, "a.ts"), join(root, "api/b.ts")])).toBe(false);
    expect(nested.touch([join(root, "web/app/src/c.ts")])).toBe(true);
    expect(nested.found()).toEqual([join(root, "web"), join(root, "web/app")]);
    expect(nested.touch([join(root, "web/app/src/d.ts")])).toBe(false);
    expect(nested.found()).toHaveLength(2);
  });

  test.each([
    "node_modules/evil/x.js",
    "web/node_modules/evil/x.js",
    ".git/evil/x",
    "web/.venv/evil/x.py",
    "../outside/x.ts",
  ])("%s leads to none", (path) => {
    make(join(path, "../.claude/skills"));
    expect(createNestedFolders(root).touch([join(root, path)])).toBe(false);
  });

  test("are no more than a hundred", () => {
    const paths = Array.from({ length: 120 }, (_, index) => {
      make(`p${index}/.claude/skills`);
      return join(root, `p${index}/a.ts`);
    });
    const nested = createNestedFolders(root);
    nested.touch(paths);
    expect(nested.found()).toHaveLength(100);
  });
});
