import { mkdir, symlink } from "node:fs/promises";
import { createWorkspace } from "@retinue/testing/sample-runtime.ts";
import { expect, test } from "vitest";
import { findRealPath } from "./find-real-path.ts";

test("a link to a file or a folder leads to what it names", async () => {
  await using space = await createWorkspace();
  const file = await space.write("real/a.txt", "a");
  await symlink("real", space.path("folder"));
  await symlink("folder/a.txt", space.path("file"));
  expect(await findRealPath(space.path("folder/a.txt"))).toBe(file);
  expect(await findRealPath(space.path("file"))).toBe(file);
});

test("what does not exist yet lies below the real path of its nearest ancestor", async () => {
  await using space = await createWorkspace();
  await mkdir(`${space.root}/outside`);
  await symlink(`${space.root}/outside`, space.path("way-out"));
  expect(await findRealPath(space.path("way-out/new/file.txt"))).toBe(`${space.root}/outside/new/file.txt`);
  expect(await findRealPath(space.path("a/b"))).toBe(space.path("a/b"));
});

test("a dangling link is followed, because writing through it would be", async () => {
  await using space = await createWorkspace();
  await symlink("../../outside.txt", space.path("dangling"));
  expect(await findRealPath(space.path("dangling"))).toBe(
    `${space.root.slice(0, space.root.lastIndexOf("/"))}/outside.txt`,
  );
  await symlink("second", space.path("first"));
  await symlink("nowhere/deep", space.path("second"));
  expect(await findRealPath(space.path("first/x"))).toBe(space.path("nowhere/deep/x"));
});

test("links in a circle end", async () => {
  await using space = await createWorkspace();
  await symlink("b", space.path("a"));
  await symlink("a", space.path("b"));
  await expect(findRealPath(space.path("a"))).rejects.toThrow(/ELOOP|links/);
});
