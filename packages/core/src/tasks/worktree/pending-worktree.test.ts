import { expect, test } from "vitest";
import { formatPending, type PendingWorktree, parsePending } from "./pending-worktree.ts";

const pending: PendingWorktree = {
  stage: "adding",
  agentId: "a1",
  path: "/w/a1",
  branch: "retinue/a1",
  base: "0".repeat(40),
  top: "/w",
  links: [],
  started: 1,
  owner: { pid: 5, started: "boot/7", machine: "here" },
};

test.each([
  ["/w/a1", true],
  ["D:\\trees\\a1", true],
  ["D:/trees/a1", true],
  ["\\\\server\\share\\a1", true],
  ["w/a1", false],
  ["..\\a1", false],
  ["", false],
])("a worktree at %j is found again: %s [PUB-3]", (path, isFound) => {
  const written = { ...pending, path };
  expect(parsePending(formatPending(written))).toEqual(isFound ? written : undefined);
});
