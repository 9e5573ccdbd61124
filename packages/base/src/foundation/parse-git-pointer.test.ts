import { expect, test } from "vitest";
import { parseGitPointer } from "./parse-git-pointer.ts";

test.each([
  ["gitdir: /r/.git/worktrees/w\n", "gitdir: ", "/r/.git/worktrees/w"],
  ["gitdir: ../r/.git\r\n", "gitdir: ", "../r/.git"],
  ["/r/w/.git\n", "", "/r/w/.git"],
  ["gitdir: /r/a b\n\n", "gitdir: ", "/r/a b"],
  ["gitdir: /r/.git/worktrees/w \n", "gitdir: ", undefined],
  ["gitdir:  /r/.git\n", "gitdir: ", undefined],
  ["gitdir:/r/.git\n", "gitdir: ", undefined],
  ["x\ngitdir: /r/.git\n", "gitdir: ", undefined],
  ["gitdir: /r\n/x\n", "gitdir: ", "/r\n/x"],
  ["gitdir: /r\u00a0\n", "gitdir: ", undefined],
  ["", "", undefined],
] as const)("a pointer of git is read as git reads it, or not at all: %j [PRM-11]", (text, sign, path) => {
  expect(parseGitPointer(text, sign)).toBe(path);
});
