import { expect, test } from "vitest";
import { worktreeOption } from "./worktree-option.ts";

test("the command that continues a session names its worktree, where it has one [CLI-8]", () => {
  expect(worktreeOption({})).toBe("");
  expect(worktreeOption({ worktree: "team/parser" })).toBe(" --worktree team/parser");
});
