import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { formatMark, parseMark, type WorktreeMark } from "./worktree-mark.ts";

const mark: WorktreeMark = {
  agentId: "a1",
  token: "t",
  path: "/shop/.claude/worktrees/x-a1",
  folder: "42",
  branch: "retinue/x-a1",
  base: "0123456789012345678901234567890123456789",
  started: 5,
  owner: { pid: 1, machine: "m", started: "s" },
};

describe("the mark of a worktree", () => {
  it("is read as it was written", () => {
    expect(parseMark(formatMark(mark))).toEqual(mark);
    expect(parseMark(formatMark({ ...mark, ended: 7 }))).toEqual({ ...mark, ended: 7 });
  });

  it.each([
    { branch: "main" },
    { branch: "retinue/../main" },
    { base: "HEAD" },
    { path: "" },
    { token: 4 },
    { started: "yesterday" },
    { ended: "today" },
    { owner: {} },
    { owner: null },
  ])("with %j in it is none, so that nothing is removed by it [SPN-7]", (change) => {
    expect(parseMark(JSON.stringify({ version: 1, ...mark, ...change }))).toBe(undefined);
  });

  it("is not found in any other text, and reading never throws", () => {
    fc.assert(fc.property(fc.oneof(fc.string(), fc.json()), (text) => parseMark(text) === undefined));
  });
});
