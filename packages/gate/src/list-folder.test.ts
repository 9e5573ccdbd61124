import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { listFolder } from "./list-folder.ts";

let root = "";

beforeAll(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "retinue-list-")));
  mkdirSync(join(root, "small"));
  writeFileSync(join(root, "small/a"), "");
  symlinkSync("a", join(root, "small/b"));
  mkdirSync(join(root, "large"));
  for (let number = 0; number < 1_000; number += 1)
    writeFileSync(join(root, "large", `a-file-with-a-long-name-${number}`), "");
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

test("a folder is listed whether it is small or large", async () => {
  const small = await listFolder(join(root, "small"));
  expect(small.map((entry) => [entry.name, entry.isSymbolicLink()]).sort()).toEqual([
    ["a", false],
    ["b", true],
  ]);
  expect(await listFolder(join(root, "large"))).toHaveLength(1_000);
});

test.each(["none", "small/a", "small/a/b"])("what is no folder holds nothing: %s", async (path) => {
  expect(await listFolder(join(root, path))).toEqual([]);
});
