import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { findRepositoryRoot, findWorktreeOwner, realFolder } from "./trust-store.ts";

let root: string;
beforeEach(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), "repository-root-")));
});
afterEach(() => rm(root, { recursive: true, force: true }));

const git = (cwd: string, ...words: string[]) =>
  execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b", ...words], { cwd, stdio: "pipe" });

describe("finding the repository", () => {
  it("walks up to the folder with a .git directory, through links", async () => {
    await mkdir(join(root, "app/.git"), { recursive: true });
    await mkdir(join(root, "app/src/deep"), { recursive: true });
    await symlink(join(root, "app/src"), join(root, "link"));
    expect(await findRepositoryRoot(join(root, "app/src/deep"))).toBe(join(root, "app"));
    expect(await findRepositoryRoot(join(root, "link/deep"))).toBe(join(root, "app"));
    expect(await realFolder(join(root, "link"))).toBe(join(root, "app/src"));
  });

  it("takes a nested repository for its own, also when .git is a file", async () => {
    await mkdir(join(root, "app/.git"), { recursive: true });
    await mkdir(join(root, "app/vendor/lib"), { recursive: true });
    await writeFile(join(root, "app/vendor/lib/.git"), "gitdir: /nowhere\n");
    expect(await findRepositoryRoot(join(root, "app/vendor/lib"))).toBe(join(root, "app/vendor/lib"));
  });

  it("finds nothing outside of a repository, and does not fail on a folder that is not there", async () => {
    expect(await findRepositoryRoot(join(root, "missing"))).toBe(undefined);
  });

  it("knows the owner of a real worktree, and not that of a forged one", async () => {
    const app = join(root, "app");
    await mkdir(app);
    git(app, "init", "-q");
    git(app, "commit", "-q", "--allow-empty", "-m", "start");
    git(app, "worktree", "add", "-q", join(root, "tree"));
    expect(await findWorktreeOwner(join(root, "tree"))).toBe(app);

    await mkdir(join(root, "forged"));
    await writeFile(join(root, "forged/.git"), `gitdir: ${join(app, ".git/worktrees/tree")}\n`);
    expect(await findWorktreeOwner(join(root, "forged"))).toBe(undefined);
    expect(await findWorktreeOwner(app)).toBe(undefined);
  });
});
