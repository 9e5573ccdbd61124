import { execFileSync } from "node:child_process";
import {
  existsSync,
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
import { afterEach, beforeEach, expect, test } from "vitest";
import { guardGitFolders } from "./guard-git-folders.ts";

let project: string;
beforeEach(() => {
  project = realpathSync(mkdtempSync(join(tmpdir(), "guard-git-")));
  git("init", "-q");
  git(
    "-c",
    "user.name=Ada",
    "-c",
    "user.email=ada@example.com",
    "commit",
    "-q",
    "--allow-empty",
    "-m",
    "First",
  );
});
afterEach(() => rmSync(project, { recursive: true, force: true }));

function git(...words: readonly string[]): void {
  execFileSync("git", ["-C", project, ...words], { stdio: "ignore" });
}

test("what makes git obey other settings is removed where a command has made it, and stays where it was there [PRM-11]", () => {
  const worktree = join(project, ".git/config.worktree");
  writeFileSync(worktree, "[core]\n");
  const guarded = guardGitFolders([project]);
  expect(guarded.present).toEqual([worktree]);
  mkdirSync(join(project, "evil"));
  writeFileSync(join(project, ".git/commondir"), "../evil\n");
  guarded.end();
  expect(existsSync(join(project, ".git/commondir"))).toBe(false);
  expect(readFileSync(worktree, "utf8")).toBe("[core]\n");
  symlinkSync("../evil", join(project, ".git/commondir"));
  guarded.end();
  expect([existsSync(join(project, ".git/commondir")), existsSync(join(project, "evil"))]).toEqual([
    false,
    true,
  ]);
});

test("linked worktrees and submodules are guarded like the repository itself [PRM-11]", () => {
  const linked = join(project, "linked");
  git("worktree", "add", "-q", linked);
  const module = join(project, ".git/modules/group/part");
  execFileSync("git", ["init", "-q", "--bare", module]);
  const { present } = guardGitFolders([project, linked, join(project, "absent")]);
  expect(new Set(present)).toEqual(
    new Set([
      join(project, ".git/worktrees/linked/commondir"),
      join(module, "config"),
      ...(existsSync(join(module, "hooks")) ? [join(module, "hooks")] : []),
      join(linked, ".git"),
    ]),
  );
});
