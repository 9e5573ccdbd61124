import { execFileSync } from "node:child_process";
import { appendFileSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { gitParts } from "./project-trust.ts";

let project: string;
beforeEach(() => {
  project = realpathSync(mkdtempSync(join(tmpdir(), "retinue-git-parts-")));
});
afterEach(() => rmSync(project, { recursive: true, force: true }));

const environment = { PATH: process.env["PATH"], GIT_CONFIG_NOSYSTEM: "1", HOME: "/nowhere" };
const show = () =>
  gitParts({ directory: project, environment, pathText: (file) => file.slice(project.length + 1) });

it("what git would run or set in a folder is shown before it is trusted, behind comments and includes too [PRM-11]", async () => {
  expect(await show()).toEqual([]);
  execFileSync("git", ["init", "-q", project]);
  expect(await show()).toEqual([]);
  writeFileSync(join(project, "more"), "[alias]\n\tst = !./x\n[pull]\n\trebase = true\n");
  appendFileSync(
    join(project, ".git/config"),
    ';\\\n[filter "x"]\n\tclean = ./evil\n[include] path = ../more ; x\n',
  );
  expect(await show()).toEqual([
    { kind: "runs", name: "git filter.x.clean", value: "./evil", from: ".git/config" },
    { kind: "runs", name: "git include.path", value: "../more", from: ".git/config" },
    { kind: "runs", name: "git alias.st", value: "!./x", from: "more" },
    { kind: "setting", name: "git pull.rebase", value: "true", from: "more" },
  ]);
});
