import { describe, expect, test } from "vitest";
import type { ShellUnit } from "../shell/model.ts";
import { grantsUnit, matchesText } from "./grants-unit.ts";
import { parseRule } from "./parse-rule.ts";
import { restrictsUnit } from "./restricts-unit.ts";

function specifier(text: string) {
  const reading = parseRule(`Bash(${text})`);
  if (reading.type === "invalid" || reading.rule.specifier.type !== "command") throw new Error(text);
  return reading.rule.specifier;
}

function unit(grantText: string, more: Partial<ShellUnit> = {}): ShellUnit {
  return {
    words: [],
    written: grantText,
    restrictTexts: [grantText],
    grantText,
    readOnly: false,
    operands: [],
    obeysDirectory: false,
    directories: [""],
    ...more,
  };
}

describe("[PRM-8] command texts", () => {
  test.each([
    ["npm test", "npm test", true],
    ["npm test", "npm test x", false],
    ["npm *", "npm", true],
    ["npm *", "npmx", false],
    ["ls*", "lsof", true],
    ["git * main", "git push origin main", true],
    ["* stop *", "systemctl stop", true],
    ["* --version", "git --version", true],
  ])("%s speaks of %s: %s", (rule, text, expected) => {
    expect(matchesText(specifier(rule), text)).toBe(expected);
  });

  test("what only an exact rule may allow, no wildcard allows, unless it names as much", () => {
    const shell = unit("sh -c ls", { exactOnly: "it runs a text", wildcardHead: "sh -c" });
    expect(grantsUnit(specifier("sh *"), shell)).toBe(false);
    expect(grantsUnit(specifier("* ls"), shell)).toBe(false);
    expect(grantsUnit(specifier("sh -c *"), shell)).toBe(true);
    expect(grantsUnit(specifier("sh -c ls"), shell)).toBe(true);
    expect(grantsUnit(specifier("find *"), unit("find . -delete", { exactOnly: "it removes" }))).toBe(false);
  });

  test("an exact rule may keep its quotes", () => {
    expect(grantsUnit(specifier("echo 'a b'"), unit("echo a b", { written: "echo 'a b'" }))).toBe(true);
  });

  test.each([
    ["rm -rf *", "rm -fr x", true],
    ["rm -rf *", "rm --recursive --force x", true],
    ["rm -rf *", "rm -f x", false],
    ["git push --force *", "git push origin --force", true],
    ["find -delete *", "find . -type d -name let", false],
  ])("a restriction on %s holds for %s: %s", (rule, text, expected) => {
    expect(restrictsUnit(specifier(rule), [text])).toBe(expected);
  });
});
