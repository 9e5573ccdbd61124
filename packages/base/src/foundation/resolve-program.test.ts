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
import { createProgramFinder, resolveProgram, searchPathOutside } from "./resolve-program.ts";

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

describe("a finder that looks only as far as it must finds what the whole search path leads to", () => {
  const paths = (): readonly (readonly [string, string | undefined])[] => [
    ["the system's folders", system],
    ["the system's folders twice, and one that is not there", `/nowhere:${system}:${system}`],
    ["a folder of the project first", `${project}:${system}`],
    ["the project by a detour", `${own}/../project:${system}`],
    ["the project by a link", `${linkToProject()}:${system}`],
    ["links into the project", `${own}:${system}`],
    ["folders that depend on where it runs", `.:bin:${system}`],
    ["nothing but the project", project],
    ["nothing but a folder that is not there", "/nowhere"],
    ["nothing", ""],
    ["no search path", undefined],
  ];
  const linkToProject = (): string => {
    const link = join(root, "link");
    rmSync(link, { force: true });
    symlinkSync(project, link);
    return link;
  };

  test("for each of several search paths and programs [PRM-9]", () => {
    for (const [what, path] of paths()) {
      const find = createProgramFinder(path, [project]);
      for (const name of ["grep", "gzip", "zcat", "sh", "node", "none-of-this-name"]) {
        const whole = resolve(name, searchPathOutside(path, [project]));
        expect({ what, name, found: find(name) }).toEqual({ what, name, found: whole });
      }
    }
  });
});
