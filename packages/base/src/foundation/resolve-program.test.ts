import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { resolveProgram } from "./resolve-program.ts";

const system = "/usr/bin:/bin";
let root = "";
let project = "";
let own = "";

beforeAll(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "retinue-programs-")));
  project = join(root, "project");
  own = join(root, "bin");
  for (const folder of [project, own]) mkdirSync(folder);
  for (const name of ["gzip", "grep"]) {
    const file = join(project, name);
    writeFileSync(file, "#!/bin/sh\n");
    chmodSync(file, 0o755);
    symlinkSync(file, join(own, name));
  }
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

const isScript = (file: string): boolean => readFileSync(file, "latin1").startsWith("#!");
const resolve = (name: string, searchPath: string) =>
  resolveProgram(name, { searchPath, folders: [project] });

describe("a script of the system is what its name says", () => {
  test.each(["zcat", "gunzip", "egrep", "fgrep", "which"])("%s, on a plain search path [PRM-9]", (name) => {
    expect(["found", "missing"]).toContain(resolve(name, system).type);
  });

  // Where one of them is a binary, it starts nothing.
  test.each(["zcat", "gunzip", "egrep", "fgrep"])("only if what %s starts is so too [PRM-9]", (name) => {
    const found = resolve(name, system);
    if (found.type !== "found" || !isScript(found.file)) return;
    expect(resolve(name, `${own}:${system}`)).toMatchObject({
      type: "unsure",
      reason: expect.stringContaining(project),
    });
  });
});
