import { describe, expect, it } from "vitest";
import { gitStateText, readHeadFile, readStatus } from "./git-state.ts";

describe("reading git's short status", () => {
  it.each([
    ["## main\n", "main", []],
    ["## main...origin/main [ahead 1]\n M a.ts\n", "main", [" M a.ts"]],
    ["## No commits yet on trunk\n", "trunk", []],
    ["## HEAD (no branch)\n?? b\n", undefined, ["?? b"]],
    ["## feat/a.b-c...origin/x\n", "feat/a.b-c", []],
  ])("%j", (output, branch, status) => {
    expect(readStatus(output)).toEqual({ branch, status });
  });

  it("long and odd file names stay within bounds and on their line", () => {
    const { status = [], statusLeftOut } = readStatus(`?? a\u0007b\n${`?? ${"x".repeat(500)}\n`.repeat(30)}`);
    expect(status[0]).toBe("?? a\uFFFDb");
    expect(status.join("\n").length).toBeLessThanOrEqual(2000);
    expect(status.length + (statusLeftOut ?? 0)).toBe(31);
  });
});

it.each([
  ["ref: refs/heads/main\n", "main"],
  ["ref: refs/heads/.invalid\n", undefined],
  ["ref: refs/heads/a b\n", undefined],
  ["0123456789012345678901234567890123456789\n", undefined],
  ["", undefined],
])("the HEAD file %j names the branch %j", (content, expected) => {
  expect(readHeadFile(content)).toBe(expected);
});

it("[SPN-3] the text says that it does not follow the work, and a clean tree is called clean", () => {
  const text = gitStateText({ branch: "main", status: [], commits: ["abc one"], statusLeftOut: 3 });
  expect(text).toContain("does not change while you work");
  expect(text).toContain("Branch: main\nStatus:\n(clean)\n… and at least 3 more\nLast commits:\nabc one");
});
