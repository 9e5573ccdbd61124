import { execFileSync } from "node:child_process";
import { mkdtempSync, realpathSync, renameSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { createRepositoryAsker } from "./create-repository-asker.ts";

const root = realpathSync(mkdtempSync(join(tmpdir(), "asker-")));
afterAll(() => rmSync(root, { recursive: true, force: true }));

let count = 0;

/** A repository whose answer is remembered: from then on there is no git to ask, until `restore` brings it back. */
async function rememberedRepository() {
  count += 1;
  const folder = join(root, `repository ${count}`);
  const home = join(root, `home ${count}`);
  execFileSync("mkdir", ["-p", folder, home]);
  execFileSync("git", ["init", "-q", folder]);
  const path = process.env["PATH"] ?? "";
  const environment: Record<string, string> = { HOME: home, PATH: path };
  // Nothing here has to wait until its files are old enough to be relied on.
  const ask = createRepositoryAsker({ environment, folders: [] }, () => Date.now() + 60_000);
  const wasFound = async (): Promise<boolean> => (await ask(folder)).type === "repository";
  expect(await wasFound()).toBe(true);
  environment["PATH"] = "/nonexistent";
  expect(await wasFound()).toBe(true);
  const restore = () => {
    environment["PATH"] = path;
  };
  return { folder, home, restore, wasFound, ask: () => ask(folder) };
}

test("a folder whose settings stay as they are is asked about once [PRM-9]", async () => {
  const { wasFound } = await rememberedRepository();
  expect([await wasFound(), await wasFound()]).toEqual([true, true]);
});

type Stage = Awaited<ReturnType<typeof rememberedRepository>>;

const changes: readonly (readonly [string, (stage: Stage) => void])[] = [
  [
    "a setting of the repository",
    ({ folder }) => writeFileSync(join(folder, ".git/config"), "[core]\n\tfsmonitor = touch x\n"),
  ],
  [
    "one more setting, with the file's times put back",
    ({ folder }) => {
      const config = join(folder, ".git/config");
      writeFileSync(config, '[filter "x"]\n\tclean = touch x\n', { flag: "a" });
      utimesSync(config, 0, 0);
    },
  ],
  ["settings of the working tree", ({ folder }) => writeFileSync(join(folder, ".git/config.worktree"), "")],
  ["settings of the person", ({ home }) => writeFileSync(join(home, ".gitconfig"), "[user]\n\tname = x\n")],
  [
    "the whole repository",
    ({ folder }) => {
      renameSync(join(folder, ".git"), join(folder, "other"));
      execFileSync("git", ["init", "-q", folder]);
    },
  ],
  ["no repository any more", ({ folder }) => rmSync(join(folder, ".git"), { recursive: true })],
];

test.each(changes)("is asked about again after a change: %s [PRM-9]", async (_, change) => {
  const stage = await rememberedRepository();
  change(stage);
  expect(await stage.wasFound()).toBe(false);
});

test("a folder in a repository is asked about again once it is one itself, or the folder above it is [PRM-9]", async () => {
  for (const place of ["inner", "inner/most"]) {
    const folder = join(root, `outer of ${place.length}`);
    const inner = join(folder, "inner/most");
    execFileSync("mkdir", ["-p", inner]);
    execFileSync("git", ["init", "-q", folder]);
    const environment = { HOME: root, PATH: process.env["PATH"] };
    const ask = createRepositoryAsker({ environment, folders: [] }, () => Date.now() + 60_000);
    expect([await ask(inner), await ask(inner)]).toMatchObject([{ top: folder }, { top: folder }]);
    execFileSync("git", ["init", "-q", join(folder, place)]);
    expect(await ask(inner)).toMatchObject({ top: join(folder, place) });
    const bare = join(root, `bare of ${place.length}`);
    execFileSync("mkdir", ["-p", join(bare, place)]);
    execFileSync("git", ["init", "-q", bare]);
    expect(await ask(join(bare, place))).toMatchObject({ top: bare });
    execFileSync("git", ["init", "-q", "--bare", join(bare, place)]);
    expect(await ask(join(bare, place))).toMatchObject({ gitDirectory: join(bare, place) });
  }
});

test("a folder that is asked about several times at once is asked about in one go [PRM-9]", async () => {
  const { folder, home, restore } = await rememberedRepository();
  restore();
  const environment: Record<string, string> = { HOME: home, PATH: process.env["PATH"] ?? "" };
  const ask = createRepositoryAsker({ environment, folders: [] }, () => Date.now() + 60_000);
  const first = ask(folder);
  environment["PATH"] = "/nonexistent";
  expect([await ask(folder), await first]).toMatchObject([{ type: "repository" }, { type: "repository" }]);
});

test("a linked working tree is asked about once, and again when it leads elsewhere [PRM-9]", async () => {
  const { folder, home, restore } = await rememberedRepository();
  restore();
  const person = ["-c", "user.name=x", "-c", "user.email=x@example.com"];
  execFileSync("git", [...person, "commit", "-q", "--allow-empty", "-m", "one"], { cwd: folder });
  const [tree, other] = [join(folder, "tree"), join(folder, "other")];
  for (const place of [tree, other]) execFileSync("git", ["worktree", "add", "-q", place], { cwd: folder });
  const environment: Record<string, string> = { HOME: home, PATH: process.env["PATH"] ?? "" };
  const ask = createRepositoryAsker({ environment, folders: [] }, () => Date.now() + 60_000);
  const own = join(folder, ".git/worktrees/tree");
  expect(await ask(tree)).toMatchObject({ gitDirectory: own, commonDirectory: join(folder, ".git") });
  environment["PATH"] = "/nonexistent";
  expect(await ask(tree)).toMatchObject({ gitDirectory: own });
  environment["PATH"] = process.env["PATH"] ?? "";
  writeFileSync(join(tree, ".git"), `gitdir: ${join(folder, ".git/worktrees/other")}\n`);
  expect(await ask(tree)).toMatchObject({ gitDirectory: join(folder, ".git/worktrees/other") });
});

test("a folder whose settings include other files is asked about each time [PRM-9]", async () => {
  const { folder, restore, ask, wasFound } = await rememberedRepository();
  writeFileSync(join(folder, ".git/config"), "[include]\n\tpath = more\n");
  restore();
  for (const name of ["one", "two", "three"]) {
    writeFileSync(join(folder, ".git/more"), `[user]\n\tname = ${name}\n`);
    expect(await ask()).toMatchObject({
      settings: expect.arrayContaining([expect.objectContaining({ value: name })]),
    });
  }
  expect(await wasFound()).toBe(true);
});

test("a file that may still change unseen is not relied on [PRM-9]", async () => {
  const folder = join(root, "fresh");
  execFileSync("git", ["init", "-q", folder]);
  const environment: Record<string, string> = { HOME: root, PATH: process.env["PATH"] ?? "" };
  const ask = createRepositoryAsker({ environment, folders: [] }, () => 0);
  await ask(folder);
  expect((await ask(folder)).type).toBe("repository");
  environment["PATH"] = "/nonexistent";
  expect((await ask(folder)).type).toBe("none");
});
