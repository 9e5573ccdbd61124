import { execFileSync } from "node:child_process";
import {
  mkdirSync,
  mkdtempSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
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

/** A folder whose answer is remembered, below a repository or below none; there is no git to ask from then on, until `restore`. */
async function rememberedFolder(isInRepository: boolean) {
  count += 1;
  const top = join(root, `top ${count}`);
  const folder = join(top, "a/b");
  mkdirSync(folder, { recursive: true });
  if (isInRepository) execFileSync("git", ["init", "-q", top]);
  const path = process.env["PATH"] ?? "";
  const environment: Record<string, string> = { HOME: join(root, "no home"), PATH: path };
  const ask = createRepositoryAsker({ environment, folders: [] }, () => Date.now() + 60_000);
  const expected = isInRepository ? { type: "repository", top } : { type: "none" };
  for (const _ of [1, 2]) expect(await ask(folder)).toMatchObject(expected);
  environment["PATH"] = "/nonexistent";
  const remembered = await ask(folder);
  expect(remembered).toMatchObject(expected);
  expect(remembered).not.toHaveProperty("hasNoGit");
  const restore = () => {
    environment["PATH"] = path;
  };
  return { top, folder, ask: () => ask(folder), restore };
}

const bare = (folder: string): void => void execFileSync("git", ["init", "-q", "--bare", folder]);
const moves: readonly (readonly [
  string,
  (place: { readonly top: string; readonly folder: string }) => void,
])[] = [
  ["a repository is made in it", ({ folder }) => execFileSync("git", ["init", "-q", folder])],
  ["a repository is made between", ({ top }) => execFileSync("git", ["init", "-q", join(top, "a")])],
  ["it becomes the data of a repository", ({ folder }) => bare(folder)],
  ["a folder between becomes the data of a repository", ({ top }) => bare(join(top, "a"))],
  [
    "a folder `.git` gets all that a repository needs, one thing after another",
    ({ folder }) => bare(join(folder, ".git")),
  ],
  [
    "a file `.git` names a repository elsewhere",
    ({ top, folder }) => {
      bare(join(top, "elsewhere"));
      writeFileSync(join(folder, ".git"), `gitdir: ${join(top, "elsewhere")}\n`);
    },
  ],
  [
    "a link `.git` leads to a repository elsewhere",
    ({ top, folder }) => {
      bare(join(top, "elsewhere"));
      symlinkSync(join(top, "elsewhere"), join(folder, ".git"));
    },
  ],
  [
    "a link is put in its place",
    ({ top, folder }) => {
      execFileSync("git", ["init", "-q", join(top, "elsewhere")]);
      rmSync(folder, { recursive: true });
      symlinkSync(join(top, "elsewhere"), folder);
    },
  ],
];

test.each(
  [true, false].flatMap((isInRepository) =>
    moves.map(([what, move]) => [what, isInRepository, move] as const),
  ),
)("a folder is asked about again when %s (in a repository: %s) [PRM-9]", async (_, isInRepository, move) => {
  const { top, folder, ask, restore } = await rememberedFolder(isInRepository);
  const before = await ask();
  move({ top, folder });
  expect(await ask()).toEqual({ type: "none", hasNoGit: true });
  restore();
  expect(await ask()).not.toEqual(before);
});

test("an unfinished `.git` is asked about again when it is finished [PRM-9]", async () => {
  const { folder, ask, restore } = await rememberedFolder(false);
  mkdirSync(join(folder, ".git/objects"), { recursive: true });
  restore();
  for (const _ of [1, 2, 3]) expect(await ask()).toMatchObject({ type: "none" });
  writeFileSync(join(folder, ".git/HEAD"), "ref: refs/heads/main\n");
  for (const _ of [1, 2, 3]) expect(await ask()).toMatchObject({ type: "none" });
  mkdirSync(join(folder, ".git/refs"));
  expect(await ask()).toMatchObject({ type: "repository" });
});

test("a repository that loses its HEAD is asked about again, and its parent is found [PRM-9]", async () => {
  const { top, folder, ask, restore } = await rememberedFolder(true);
  restore();
  execFileSync("git", ["init", "-q", folder]);
  for (const _ of [1, 2, 3]) expect(await ask()).toMatchObject({ top: folder });
  rmSync(join(folder, ".git/HEAD"));
  expect(await ask()).toMatchObject({ top });
});
