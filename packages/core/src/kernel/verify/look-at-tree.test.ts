import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createWorkspace } from "@retinue/testing/sample-runtime.ts";
import { expect, test } from "vitest";
import { lookAtTree } from "./look-at-tree.ts";

test("in a folder of many files without git, an edit of the last one is seen [VRF-2]", async () => {
  await using workspace = await createWorkspace();
  const { project: directory } = workspace;
  for (let folder = 0; folder < 21; folder += 1) {
    mkdirSync(join(directory, `d${folder}`));
    for (let file = 0; file < 1000; file += 1) writeFileSync(join(directory, `d${folder}`, `${file}`), "");
  }
  await workspace.write("d9/last/f.txt", "good");
  const { signal } = new AbortController();
  const look = () =>
    lookAtTree({ directory, changed: [], environment: {}, trusted: true, signal, kind: "files" });
  const before = await look();
  await workspace.write("d9/last/f.txt", "bad!");
  const after = await look();
  expect(after.mark).not.toBe(before.mark);
  expect(after.isCut).toBe(false);
}, 60_000);
