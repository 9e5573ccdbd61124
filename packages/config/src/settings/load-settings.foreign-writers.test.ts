import { chmod, chown, lchown, mkdir, mkdtemp, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { findForeignWriters } from "./load-settings.ts";

let root: string;
let file: string;
beforeEach(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), "foreign-writers-")));
  await mkdir(join(root, "managed"), { mode: 0o755 });
  file = join(root, "managed/managed-settings.json");
  await writeFile(file, "{}", { mode: 0o644 });
});
afterEach(() => rm(root, { recursive: true }));

const isRoot = process.getuid?.() === 0;

describe("who can write a file of the organisation [PRM-11]", () => {
  it("no one but its owner, in the usual case", async () => {
    expect(await findForeignWriters(file)).toBeUndefined();
    expect(await findForeignWriters(join(root, "not-there.json"))).toBeUndefined();
  });

  it.each([
    ["everybody", 0o666],
    ["a group", 0o664],
    ["everybody else", 0o646],
  ])("%s, by the rights of the file", async (_, mode) => {
    await chmod(file, mode);
    expect(await findForeignWriters(file)).toBe(
      `${file} can be written by others (mode ${mode.toString(8)})`,
    );
  });

  it("everyone who can replace it, by the rights of a folder on the way to it", async () => {
    await chmod(join(root, "managed"), 0o777);
    expect(await findForeignWriters(file)).toContain(`${join(root, "managed")} can be written by others`);
    await chmod(join(root, "managed"), 0o755);
    await chmod(root, 0o775);
    expect(await findForeignWriters(file)).toContain(`${root} can be written by others`);
  });

  it("no other user in a folder where each may only replace what is their own", async () => {
    await chmod(root, 0o1777);
    expect(await findForeignWriters(file)).toBeUndefined();
  });

  it("the one that can write what a link in its place leads to, or the folder the link is in", async () => {
    await mkdir(join(root, "elsewhere"));
    await writeFile(join(root, "elsewhere/settings.json"), "{}");
    const link = join(root, "managed/link.json");
    await symlink(join(root, "elsewhere/settings.json"), link);
    expect(await findForeignWriters(link)).toBeUndefined();
    await chmod(join(root, "elsewhere"), 0o777);
    expect(await findForeignWriters(link)).toContain("elsewhere can be written by others");
    await chmod(join(root, "elsewhere"), 0o755);
    await chmod(join(root, "managed"), 0o777);
    expect(await findForeignWriters(link)).toContain("managed can be written by others");
  });

  it.skipIf(!isRoot)("another user, where it belongs to one", async () => {
    await chown(file, 12_345, 12_345);
    expect(await findForeignWriters(file)).toBe(`${file} belongs to another user (12345)`);
    expect(await findForeignWriters(file, { userId: 12_345 })).toBeUndefined();
    await chown(file, 0, 0);
    const link = join(root, "managed/link.json");
    await symlink(file, link);
    await lchown(link, 12_345, 12_345);
    expect(await findForeignWriters(link)).toBe(`${link} belongs to another user (12345)`);
  });
});
