import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readWorktreeSettings } from "./read-worktree-settings.ts";

describe("the settings of worktrees", () => {
  it.each([
    [undefined, {}],
    [{}, {}],
    [{ baseRef: "head", sparsePaths: ["a"] }, { baseRef: "head" }],
    [
      { location: "~/t", symlinkDirectories: [] },
      { location: "~/t", symlinkDirectories: [] },
    ],
    [JSON.parse('{"__proto__": {"baseRef": 4}}'), {}],
  ])("%j is read as %j", (value, settings) => {
    expect(readWorktreeSettings(value)).toEqual({ type: "read", settings });
  });

  it.each([
    ["yes", "worktree is"],
    [{ baseRef: "HEAD" }, 'worktree.baseRef is "HEAD"; write current, head or fresh'],
    [{ location: "" }, "worktree.location"],
    [{ symlinkDirectories: ["a", 4] }, "worktree.symlinkDirectories"],
    [{ symlinkDirectories: "node_modules" }, "worktree.symlinkDirectories"],
  ])("%j is refused and not guessed at [SPN-7]", (value, reason) => {
    expect(readWorktreeSettings(value)).toEqual({
      type: "refused",
      reason: expect.stringContaining(reason),
    });
  });

  it("are read without throwing, whatever they are", () => {
    fc.assert(
      fc.property(fc.anything(), (value) => ["read", "refused"].includes(readWorktreeSettings(value).type)),
    );
  });
});
