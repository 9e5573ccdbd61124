import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { coversPath, matchesName } from "./covers-path.ts";

describe("[PRM-8] path patterns", () => {
  test.each([
    ["src/**", "/p/src/a/b", true],
    ["src/**", "/p/src", true],
    ["src/**", "/p/lib/src/a", false],
    ["*.ts", "/p/deep/a.ts", true],
    ["*.ts", "/p/a.js", false],
    [".env", "/p/x/.env", true],
    [".env", "/p/.env.example", false],
    ["./.env", "/p/.env", true],
    ["./.env", "/p/x/.env", false],
    ["a/*/c", "/p/a/b/c", true],
    ["a/*/c", "/p/a/b/d/c", false],
    ["**/x", "/p/a/b/x", true],
    ["build", "/p/build/out/x", true],
    ["src", "/p-evil/src", false],
    ["../q/**", "/q/x", true],
    ["[a-c].ts", "/p/b.ts", true],
    ["[!a-c].ts", "/p/b.ts", false],
    ["a\\*b", "/p/a*b", true],
    ["a\\*b", "/p/axb", false],
  ])("%s covers %s: %s", (pattern, path, expected) => {
    expect(coversPath(pattern, "/p", path)).toBe(expected);
  });

  test("in a rule that restricts, a folder and a name mean any of that name below", () => {
    expect(coversPath("src/**", "/p", "/p/lib/src/a", { floats: true })).toBe(true);
    expect(coversPath("./.env", "/p", "/p/x/.env", { floats: true })).toBe(true);
    expect(coversPath("a/b/**", "/p", "/p/x/a/b/c", { floats: true })).toBe(false);
  });

  test("without case, composed and invisible characters do not make another name", () => {
    expect(coversPath(".Env", "/P", "/p/.eNV", { foldsCase: true })).toBe(true);
    expect(coversPath("\u00fc", "/p", "/p/u\u0308", { foldsCase: true })).toBe(true);
    expect(coversPath(".git", "/p", "/p/.g\u200cit", { foldsCase: true })).toBe(true);
  });

  test("a name always fits itself with its signs escaped, and a star around it", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), (name) => {
        const escaped = name.replace(/[*?[\]\\]/g, "\\$&");
        expect(matchesName(escaped, name)).toBe(true);
        expect(matchesName(`*${escaped}*`, `a${name}b`)).toBe(true);
      }),
    );
  });

  test("many stars take no noticeable time", () => {
    expect(matchesName(`${"*a".repeat(500)}b`, "a".repeat(5000))).toBe(false);
  });
});
