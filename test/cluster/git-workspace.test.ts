import { execFileSync, spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findWorkspace } from "@retinue/cluster/workspace/find-workspace.ts";
import { makeWorkspaceRoot, openWorkspace } from "@retinue/cluster/workspace/open-workspace.ts";
import {
  describeWorkspace,
  readWorkspacePlan,
  type WorkspacePlan,
  workspaceNeeds,
} from "@retinue/cluster/workspace/workspace-plan.ts";
import { describe, expect, onTestFinished, test } from "vitest";

const { signal } = new AbortController();

describe("a git workspace", () => {
  test("another worker continues with the files of the last finished turn, without those of an unfinished one [CLU-6]", async () => {
    const { plan, root } = await createRepository();
    const first = await open(plan, { root: join(root, "one"), saved: undefined });
    writeFileSync(join(first.directory, "new file.txt"), "from the first worker\n");
    rmSync(join(first.directory, "old.txt"));
    const saved = await first.save("Turn 1");
    writeFileSync(join(first.directory, "unfinished.txt"), "half\n");

    const second = await open(plan, { root: join(root, "two"), saved });
    expect(readFileSync(join(second.directory, "new file.txt"), "utf8")).toBe("from the first worker\n");
    expect(existsSync(join(second.directory, "old.txt"))).toBe(false);
    expect(existsSync(join(second.directory, "unfinished.txt"))).toBe(false);
    expect(await second.save("nothing changed")).toBe(saved);

    // The first one does not recognize yet that it was replaced; what it still pushes does not count.
    await first.save("too late");
    writeFileSync(join(second.directory, "more.txt"), "from the second\n");
    const last = await second.save("Turn 2");
    const third = await open(plan, { root: join(root, "three"), saved: last });
    expect(existsSync(join(third.directory, "more.txt"))).toBe(true);
    expect(existsSync(join(third.directory, "unfinished.txt"))).toBe(false);
    await third.close();
    expect(existsSync(third.directory)).toBe(false);
  });

  test("what an agent puts into the configuration and hooks of its clone is not run by the worker [CLU-6]", async () => {
    const { plan, root } = await createRepository();
    const { directory, save } = await open(plan, { root: join(root, "one"), saved: undefined });
    const mark = join(root, "was-run");
    const hooks = join(directory, ".git", "hooks");
    mkdirSync(hooks, { recursive: true });
    for (const name of ["pre-commit", "pre-push", "post-index-change"]) {
      writeFileSync(join(hooks, name), `#!/bin/sh\ntouch ${mark}\n`);
      chmodSync(join(hooks, name), 0o755);
    }
    const own = (...words: readonly string[]) => execFileSync("git", words, { cwd: directory });
    own("config", "core.fsmonitor", `touch ${mark}; false`);
    own("config", "filter.evil.clean", `touch ${mark}; cat`);
    writeFileSync(join(directory, ".gitattributes"), "* filter=evil\n");
    writeFileSync(join(directory, "file.txt"), "x\n");
    await save("Turn 1");
    expect(existsSync(mark)).toBe(false);
  });

  test("the clones of a worker that was killed are removed by the next one, and no others [CLU-6]", async () => {
    const base = await mkdtemp(join(tmpdir(), "roots-"));
    onTestFinished(() => rm(base, { recursive: true, force: true }));
    const ended = spawnSync(process.execPath, ["-e", ""]);
    const dead = join(base, `retinue-workspaces-${ended.pid}-abc`);
    const other = join(base, "retinue-workspaces-of-mine");
    for (const folder of [dead, other]) mkdirSync(folder);
    const own = await makeWorkspaceRoot(base);
    const again = await makeWorkspaceRoot(base);
    expect([dead, other, own.folder, again.folder].map((folder) => existsSync(folder))).toEqual([
      false,
      true,
      true,
      true,
    ]);
    await own.remove();
    expect(existsSync(own.folder)).toBe(false);
  });

  test("a shared folder is one that a worker announces, or waits for such a worker [CLU-6]", async () => {
    const find = (directory: string) =>
      findWorkspace({
        type: "shared",
        directory,
        agent: "a1",
        environment: {},
        signal,
        workers: [{ has: ["folder:/mnt", "folder:/mnt/team", "git"] }],
      });
    expect(workspaceNeeds(await find("/mnt/team/project"))).toEqual(["folder:/mnt/team"]);
    expect(workspaceNeeds(await find("/home/me"))).toEqual(["folder:/home/me"]);
  });

  test("is planned from a clean, pushed checkout, and says otherwise what is missing [CLU-6]", async () => {
    const { checkout, git } = await createRepository();
    const find = () =>
      findWorkspace({ type: "git", directory: checkout, agent: "a1", environment: process.env, signal });
    const plan = await find();
    expect(plan).toMatchObject({ type: "git", branch: "retinue/a1", base: git("rev-parse", "HEAD") });
    expect(readWorkspacePlan(JSON.parse(JSON.stringify(plan)))).toEqual(plan);
    expect(describeWorkspace(plan)).toContain("continues with the files of the last finished turn");
    writeFileSync(join(checkout, "loose.txt"), "x");
    await expect(find()).rejects.toThrow("uncommitted changes");
    git("add", "--all");
    git("commit", "--quiet", "-m", "more");
    await expect(find()).rejects.toThrow("was not pushed");
  });

  test.each([
    { repository: "ext::sh -c touch% /tmp/x" },
    { repository: "--upload-pack=touch" },
    { branch: "-x" },
    { branch: "a/../../b" },
    { base: "HEAD" },
    { subdirectory: "../.." },
  ])("a plan that would run something or leave its folder is refused: %o [CLU-6]", (change) => {
    const plan = { type: "git", repository: "https://host/x.git", base: "a".repeat(40), branch: "retinue/a" };
    expect(readWorkspacePlan(plan)).toEqual(plan);
    expect(() => readWorkspacePlan({ ...plan, ...change })).toThrow("cannot be understood");
  });
});

function open(
  plan: WorkspacePlan,
  { root, saved }: { readonly root: string; readonly saved: string | undefined },
) {
  const confirm = async (): Promise<void> => undefined;
  return openWorkspace({ plan, agent: "a", saved, root, environment: process.env, signal, confirm });
}

async function createRepository() {
  const root = await mkdtemp(join(tmpdir(), "workspace-"));
  onTestFinished(() => rm(root, { recursive: true, force: true }));
  const repository = join(root, "origin.git");
  const checkout = join(root, "checkout");
  const identity = ["-c", "user.name=T", "-c", "user.email=t@localhost"];
  const git = (...words: readonly string[]): string =>
    execFileSync("git", [...identity, ...words], { cwd: checkout, encoding: "utf8" }).trim();
  execFileSync("git", ["init", "--quiet", "--bare", "--initial-branch=main", repository]);
  execFileSync("git", ["clone", "--quiet", repository, checkout], { stdio: "ignore" });
  writeFileSync(join(checkout, "old.txt"), "old\n");
  git("checkout", "--quiet", "-B", "main");
  git("add", "--all");
  git("commit", "--quiet", "-m", "first");
  git("push", "--quiet", "origin", "main");
  const plan: WorkspacePlan = {
    type: "git",
    repository,
    base: git("rev-parse", "HEAD"),
    branch: "retinue/a",
  };
  return { root, repository, checkout, git, plan };
}
