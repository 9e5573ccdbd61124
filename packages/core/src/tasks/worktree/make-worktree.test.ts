import { execFileSync } from "node:child_process";
import { cpSync, existsSync, lstatSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import {
  chmod,
  cp,
  mkdir,
  mkdtemp,
  readFile,
  realpath,
  rename,
  rm,
  symlink,
  utimes,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { askRepository } from "@retinue/gate/git/ask-repository.ts";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { cleanUpWorktrees, type WorktreeCleanup } from "../cleanup.ts";
import { makeWorktree, type Worktree, type WorktreeRequest } from "./make-worktree.ts";
import { markFile, parseMark } from "./worktree-mark.ts";

let root: string;
let shop: string;
let environment: Record<string, string | undefined>;

let template: string;

// The repository is made once and copied for each test: three processes fewer for each.
beforeAll(async () => {
  template = await realpath(await mkdtemp(join(tmpdir(), "worktree-template-")));
  environment = { PATH: process.env["PATH"], HOME: template, GIT_CONFIG_NOSYSTEM: "1" };
  const repository = join(template, "shop");
  await mkdir(repository);
  git(repository, "init", "-q", "-b", "main");
  for (const name of readdirSync(join(repository, ".git/hooks")))
    await rm(join(repository, ".git/hooks", name));
  await put("a.txt", "one\n", repository);
  await put("src/deep/b.txt", "two\n", repository);
  await put(".gitignore", "node_modules/\n*.secret\n/build\n", repository);
  commit(repository, "first");
});
afterAll(() => rm(template, { recursive: true, force: true }));

beforeEach(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), "worktree ü-")));
  shop = join(root, "my shöp");
  const home = join(root, "home");
  await mkdir(home);
  environment = { PATH: process.env["PATH"], HOME: home, GIT_CONFIG_NOSYSTEM: "1" };
  cpSync(join(template, "shop"), shop, { recursive: true, preserveTimestamps: true });
});
afterEach(() => rm(root, { recursive: true, force: true }));

const identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always"];

function git(cwd: string, ...words: string[]): string {
  return execFileSync("git", [...identity, ...words], {
    cwd,
    env: environment as NodeJS.ProcessEnv,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
  });
}

function commit(cwd: string, message: string): void {
  git(cwd, "add", "-A");
  git(cwd, "commit", "-q", "-m", message);
}

async function put(name: string, text: string, folder = shop): Promise<void> {
  await mkdir(dirname(join(folder, name)), { recursive: true });
  await writeFile(join(folder, name), text);
}

function ask(changes: Partial<WorktreeRequest> = {}): Promise<Awaited<ReturnType<typeof makeWorktree>>> {
  return makeWorktree({
    directory: shop,
    agentId: "a1",
    agentName: "Reviewer",
    settings: {},
    environment,
    trusted: true,
    signal: new AbortController().signal,
    ...changes,
  });
}

async function made(changes: Partial<WorktreeRequest> = {}): Promise<Worktree> {
  const start = await ask(changes);
  if (start.type === "refused") throw new Error(start.reason);
  return start.worktree;
}

async function refusal(changes: Partial<WorktreeRequest> = {}): Promise<string> {
  const start = await ask(changes);
  if (start.type === "made") throw new Error(`made ${start.worktree.path}`);
  return start.reason;
}

function read(folder: string, name: string): string {
  return readFileSync(join(folder, name), "utf8");
}

/** Everything about the user's repository that a worktree must not change. */
function userState(folder = shop): unknown {
  const directory = git(folder, "rev-parse", "--absolute-git-dir").trim();
  const bytes = (name: string) =>
    existsSync(join(directory, name)) ? readFileSync(join(directory, name)).toString("hex") : "";
  return {
    index: bytes("index"),
    stash: bytes("logs/refs/stash"),
    head: bytes("HEAD"),
    config: bytes("config"),
    status: git(folder, "--no-optional-locks", "status", "--porcelain=v2", "--branch"),
    files: readdirSync(directory).filter((name) => name.startsWith("sharedindex")),
  };
}

/** As git writes them down: no test packs them. */
function branches(folder = shop): string[] {
  const directory = join(folder, ".git/refs/heads");
  const files = readdirSync(directory, { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  );
  return files.map(({ parentPath, name }) => relative(directory, join(parentPath, name))).sort();
}

function administrations(folder = shop): string[] {
  const directory = join(folder, ".git/worktrees");
  return existsSync(directory) ? readdirSync(directory) : [];
}

function expectNothingLeft(): void {
  expect(branches()).toEqual(["main"]);
  expect(administrations()).toEqual([]);
  const folder = join(shop, ".claude/worktrees");
  expect(existsSync(folder) ? readdirSync(folder) : []).toEqual([]);
  expect(readdirSync(join(shop, ".git")).filter((name) => name.includes("retinue"))).toEqual([]);
}

describe("a worktree of the current state", () => {
  it("is in .claude/worktrees on a branch of its own and stays out of the status [SPN-7]", async () => {
    const { path, branch, directory } = await made();
    expect(path).toBe(join(shop, ".claude/worktrees/reviewer-a1"));
    expect(directory).toBe(path);
    expect(branch).toBe("retinue/reviewer-a1");
    expect(git(path, "symbolic-ref", "--short", "HEAD").trim()).toBe(branch);
    expect(git(shop, "status", "--porcelain")).toBe("");
    await made({ agentId: "a2" });
    const lines = read(shop, ".git/info/exclude").split("\n");
    expect(lines.filter((line) => line === "/.claude/worktrees/")).toHaveLength(1);
  });

  it("needs no snapshot where nothing has changed", async () => {
    const { path } = await made();
    expect(git(path, "rev-parse", "HEAD")).toBe(git(shop, "rev-parse", "HEAD"));
  });

  it("has staged, unstaged, untracked, renamed and deleted files as they are, and leaves index and stash alone [SPN-7]", async () => {
    await put("gone.txt", "g\n");
    await put("old name.txt", "a text that is long enough to be seen as renamed\n");
    await put("run.sh", "#!/bin/sh\n");
    await put("stashed.txt", "s\n");
    commit(shop, "second");
    await put("stashed.txt", "in the stash\n");
    git(shop, "stash", "-q");
    await put("a.txt", "staged\n");
    git(shop, "add", "a.txt");
    await put("a.txt", "and changed again\n");
    await rm(join(shop, "gone.txt"));
    git(shop, "mv", "old name.txt", "neuer näme.txt");
    await chmod(join(shop, "run.sh"), 0o755);
    await put("untracked/ü – 日本 \"q\" 'x'.txt", "u\n");
    await put("key.secret", "ignored\n");
    await symlink("a.txt", join(shop, "link"));
    await symlink("/nowhere/at/all", join(shop, "dangling"));
    const before = userState();
    const { path, finish } = await made();
    expect(userState()).toEqual(before);
    expect(read(path, "a.txt")).toBe("and changed again\n");
    expect(read(path, "stashed.txt")).toBe("s\n");
    expect(existsSync(join(path, "gone.txt"))).toBe(false);
    expect(existsSync(join(path, "old name.txt"))).toBe(false);
    expect(read(path, "neuer näme.txt")).toContain("long enough");
    expect(lstatSync(join(path, "run.sh")).mode & 0o111).toBe(0o111);
    expect(read(path, "untracked/ü – 日本 \"q\" 'x'.txt")).toBe("u\n");
    expect(existsSync(join(path, "key.secret"))).toBe(false);
    expect(readlinkSync(join(path, "link"))).toBe("a.txt");
    expect(readlinkSync(join(path, "dangling"))).toBe("/nowhere/at/all");
    expect(git(path, "status", "--porcelain")).toBe("");
    expect(git(path, "rev-parse", "HEAD^")).toBe(git(shop, "rev-parse", "HEAD"));
    expect(await finish()).toMatchObject({ kept: false });
    expect(userState()).toEqual(before);
    expectNothingLeft();
  });

  it("sees a change that left the size and the second of a file as git last saw them", async () => {
    const second = new Date("2024-01-01T00:00:00Z");
    git(shop, "config", "core.trustctime", "false");
    await put("a.txt", "eins\n");
    await utimes(join(shop, "a.txt"), second, second);
    git(shop, "add", "a.txt");
    await put("a.txt", "zwei\n");
    await utimes(join(shop, "a.txt"), second, second);
    await utimes(join(shop, ".git/index"), second, second);
    const { path } = await made();
    expect(read(path, "a.txt")).toBe("zwei\n");
  });

  it("is taken from a split index without splitting it anew", async () => {
    git(shop, "update-index", "--split-index");
    git(shop, "config", "core.splitIndex", "true");
    await put("a.txt", "changed\n");
    const before = userState();
    const { path } = await made();
    expect(read(path, "a.txt")).toBe("changed\n");
    expect(userState()).toEqual(before);
  });

  it("is taken in a repository with long object names too", async () => {
    const long = join(root, "long");
    git(root, "init", "-q", "--object-format=sha256", "-b", "main", long);
    await put("a.txt", "one\n", long);
    commit(long, "first");
    await put("a.txt", "two\n", long);
    const { path, finish } = await made({ directory: long });
    expect(read(path, "a.txt")).toBe("two\n");
    expect(await finish()).toMatchObject({ kept: false });
    expect(branches(long)).toEqual(["main"]);
  });

  it("is taken in a folder whose name contains a line break too", async () => {
    const broken = join(root, "my\nshop");
    await rename(shop, broken);
    await put("a.txt", "two\n", broken);
    const { path, finish } = await made({ directory: broken });
    expect(path).toBe(join(broken, ".claude/worktrees/reviewer-a1"));
    expect(read(path, "a.txt")).toBe("two\n");
    expect(await finish()).toMatchObject({ kept: false });
  });

  it("takes a conflict along as the file shows it", async () => {
    git(shop, "checkout", "-q", "-b", "side");
    await put("a.txt", "side\n");
    commit(shop, "side");
    git(shop, "checkout", "-q", "main");
    await put("a.txt", "main\n");
    commit(shop, "main");
    expect(() => git(shop, "merge", "side")).toThrow();
    const before = userState();
    const { path } = await made();
    expect(read(path, "a.txt")).toContain("<<<<<<<");
    expect(userState()).toEqual(before);
  });

  it("leaves out repositories that lie in this one, also those without a commit", async () => {
    git(shop, "init", "-q", "empty clone");
    git(shop, "init", "-q", "vendor/lib");
    await put("vendor/lib/x", "x", shop);
    commit(join(shop, "vendor/lib"), "x");
    await put("vendor/own.txt", "own\n");
    const { path } = await made();
    expect(existsSync(join(path, "empty clone"))).toBe(false);
    expect(existsSync(join(path, "vendor/lib"))).toBe(false);
    expect(read(path, "vendor/own.txt")).toBe("own\n");
  });

  it("starts no hook and no file-system monitor, and shows git-lfs to fetch nothing", async () => {
    const trace = join(root, "trace");
    await writeFile(join(shop, ".git/hooks/post-checkout"), `#!/bin/sh\necho hook >> '${trace}'\n`, {
      mode: 0o755,
    });
    await writeFile(join(shop, ".git/hooks/reference-transaction"), `#!/bin/sh\necho ref >> '${trace}'\n`, {
      mode: 0o755,
    });
    git(shop, "config", "core.fsmonitor", `sh -c 'echo monitor >> "${trace}"'`);
    await put("a.txt", "changed\n");
    const lfs = join(root, "lfs");
    git(
      shop,
      "config",
      "--global",
      "filter.lfs.smudge",
      `sh -c 'echo "skip $GIT_LFS_SKIP_SMUDGE" > "${lfs}"; cat'`,
    );
    await put(".gitattributes", "a.txt filter=lfs\n");
    const worktree = await made();
    await worktree.finish();
    expect(existsSync(trace)).toBe(false);
    expect(read(root, "lfs")).toBe("skip 1\n");
  });

  it("asks git nothing in a repository without trust whose settings may start programs, to clean up either", async () => {
    const trace = join(root, "trace");
    const worktree = await made();
    await put("a.txt", "changed\n", worktree.path);
    git(shop, "config", "filter.x.clean", `touch '${trace}'; cat`);
    await writeFile(join(shop, ".git/info/attributes"), "*.txt filter=x\n");
    const reason =
      "this folder is not trusted, and its repository may start programs (the setting filter.x.clean); `retinue trust` trusts it";
    expect(await refusal({ trusted: false })).toContain(reason);
    const cleaned = await cleanUpWorktrees({
      repository: shop,
      now: Number.MAX_SAFE_INTEGER,
      olderThanDays: 0,
      requested: true,
      dryRun: false,
      environment,
      trusted: false,
      signal: new AbortController().signal,
    });
    expect(cleaned).toEqual({ removed: [], kept: [], diagnostic: reason });
    expect(existsSync(trace)).toBe(false);
    // Git's own folder is the same repository.
    for (const folder of [".git", ".git/objects"])
      expect(await askRepository(join(shop, folder), { environment, folders: [] })).toMatchObject({
        steering: expect.stringMatching(/^filter\..*\.clean$/),
      });
  });

  it("does not mistake the repository of a surrounding git command for this one", async () => {
    const other = join(root, "other");
    await mkdir(other);
    git(other, "init", "-q");
    const inHook = {
      ...environment,
      GIT_DIR: join(other, ".git"),
      GIT_INDEX_FILE: join(other, "index"),
      GIT_WORK_TREE: other,
    };
    const { path } = await made({ environment: inHook });
    expect(read(path, "a.txt")).toBe("one\n");
  });
});

describe("the settings of worktrees", () => {
  it("`head` leaves uncommitted changes out", async () => {
    await put("a.txt", "changed\n");
    await put("new.txt", "new\n");
    const { path } = await made({ settings: { baseRef: "head" } });
    expect(read(path, "a.txt")).toBe("one\n");
    expect(existsSync(join(path, "new.txt"))).toBe(false);
  });

  it("`fresh` begins with the default branch: that of origin, or the local one", async () => {
    git(shop, "checkout", "-q", "-b", "feature");
    await put("a.txt", "feature\n");
    commit(shop, "feature");
    const local = await made({ settings: { baseRef: "fresh" } });
    expect(read(local.path, "a.txt")).toBe("one\n");
    const clone = join(root, "clone");
    git(root, "clone", "-q", "-b", "feature", shop, clone);
    git(clone, "remote", "set-head", "origin", "main");
    const remote = await made({ directory: clone, settings: { baseRef: "fresh" } });
    expect(read(remote.path, "a.txt")).toBe("one\n");
  });

  it("`fresh` is refused where there is no default branch", async () => {
    git(shop, "branch", "-q", "-m", "trunk");
    expect(await refusal({ settings: { baseRef: "fresh" } })).toContain("no default branch");
  });

  it("a location in the repository stays out of its status, one outside leaves its exclude file alone", async () => {
    const inside = await made({ settings: { location: "trees of [mine]" } });
    expect(inside.path).toBe(join(shop, "trees of [mine]", "reviewer-a1"));
    expect(git(shop, "status", "--porcelain")).toBe("");
    const exclude = read(shop, ".git/info/exclude");
    const outside = await made({ agentId: "a2", settings: { location: "../trees" } });
    expect(outside.path).toBe(join(root, "trees", "reviewer-a2"));
    expect(read(shop, ".git/info/exclude")).toBe(exclude);
    expect((await outside.finish()).kept).toBe(false);
  });

  it("a link in the repository does not lead the worktree elsewhere", async () => {
    await mkdir(join(root, "elsewhere"));
    await mkdir(join(shop, ".claude"));
    await symlink(join(root, "elsewhere"), join(shop, ".claude/worktrees"));
    expect(await refusal()).toContain("links on the way are not followed");
    expect(readdirSync(join(root, "elsewhere"))).toEqual([]);
    expect(branches()).toEqual(["main"]);
  });

  it("folders to share are linked, do not count as a change, and outlive the worktree", async () => {
    await put("node_modules/pack/index.js", "x\n");
    await put("packages/a/node_modules/y.js", "y\n");
    await symlink("a", join(shop, "packages/linked"));
    const behindLink = "packages/linked/node_modules";
    const symlinkDirectories = ["node_modules", "packages/a/node_modules", "src", "missing", behindLink];
    const { path, finish } = await made({ settings: { symlinkDirectories } });
    expect(readlinkSync(join(path, "node_modules"))).toBe(join(shop, "node_modules"));
    expect(read(path, "packages/a/node_modules/y.js")).toBe("y\n");
    expect(lstatSync(join(path, "src")).isDirectory()).toBe(true);
    expect(existsSync(join(path, "missing"))).toBe(false);
    expect(readlinkSync(join(path, "packages/linked"))).toBe("a");
    expect(git(path, "status", "--porcelain")).toBe("");
    expect(await finish()).toMatchObject({ kept: false });
    expect(read(shop, "node_modules/pack/index.js")).toBe("x\n");
    expect(existsSync(path)).toBe(false);
  });

  it("ignored files that .worktreeinclude names are copied, and no others", async () => {
    await put(".worktreeinclude", "*.secret\n!no.secret\nplain.txt\nbuild/keep\nnode_modules/x\n");
    commit(shop, "include");
    await put("key.secret", "k\n");
    await put("no.secret", "n\n");
    await put("sub dir/ü.secret", "u\n");
    await put("plain.txt", "not ignored\n");
    await put("build/keep", "kept\n");
    await put("build/other", "other\n");
    await put("node_modules/x", "x\n");
    await chmod(join(shop, "key.secret"), 0o600);
    await symlink("key.secret", join(shop, "link.secret"));
    const settings = { baseRef: "head", symlinkDirectories: ["node_modules"] } as const;
    const { path, finish } = await made({ settings });
    expect(read(path, "key.secret")).toBe("k\n");
    expect(lstatSync(join(path, "key.secret")).mode & 0o777).toBe(0o600);
    expect(readlinkSync(join(path, "link.secret"))).toBe(join(shop, "key.secret"));
    expect(read(path, "sub dir/ü.secret")).toBe("u\n");
    expect(readdirSync(join(path, "build"))).toEqual(["keep"]);
    expect(existsSync(join(path, "no.secret"))).toBe(false);
    expect(existsSync(join(path, "plain.txt"))).toBe(false);
    expect(await finish()).toMatchObject({ kept: false });
    expect(read(shop, "node_modules/x")).toBe("x\n");
  });

  it("a copy that the base does not ignore is no change either", async () => {
    git(shop, "checkout", "-q", "-b", "feature");
    await put(".gitignore", "*.local\n");
    await put(".worktreeinclude", "*.local\n");
    commit(shop, "ignore more");
    await put("we?rd [x].local", "l\n");
    const { path, finish } = await made({ settings: { baseRef: "fresh" } });
    expect(read(path, "we?rd [x].local")).toBe("l\n");
    expect(await finish()).toMatchObject({ kept: false });
  });

  it("a copy is never written through a link that leads out of the worktree", async () => {
    await mkdir(join(root, "victim"));
    await symlink(join(root, "victim"), join(shop, "conf"));
    await put(".worktreeinclude", "*.secret\n");
    commit(shop, "a link");
    await rm(join(shop, "conf"));
    await put("conf/key.secret", "k\n");
    const { path } = await made({ settings: { baseRef: "head" } });
    expect(readlinkSync(join(path, "conf"))).toBe(join(root, "victim"));
    expect(readdirSync(join(root, "victim"))).toEqual([]);
  });
});

describe("where the caller is", () => {
  it("has its counterpart in the worktree, also behind a link and where git knows no such folder", async () => {
    const deep = await made({ directory: join(shop, "src/deep") });
    expect(deep.directory).toBe(join(deep.path, "src/deep"));
    expect(read(deep.directory, "b.txt")).toBe("two\n");
    await symlink(join(shop, "src"), join(root, "src link"));
    const linked = await made({ agentId: "a2", directory: join(root, "src link/deep") });
    expect(linked.directory).toBe(join(linked.path, "src/deep"));
    await mkdir(join(shop, "build/out"), { recursive: true });
    const ignored = await made({ agentId: "a3", directory: join(shop, "build/out") });
    expect(readdirSync(ignored.directory)).toEqual([]);
    expect(await ignored.finish()).toMatchObject({ kept: false });
  });

  it("may be another worktree: its state counts, and the new one is in the main working tree", async () => {
    const side = join(root, "side");
    git(shop, "worktree", "add", "-q", "-b", "side", side);
    await put("a.txt", "in the side\n", side);
    const { path, finish } = await made({ directory: join(side, "src") });
    expect(path).toBe(join(shop, ".claude/worktrees/reviewer-a1"));
    expect(read(path, "a.txt")).toBe("in the side\n");
    expect(await finish()).toMatchObject({ kept: false });
    expect(branches()).toEqual(["main", "side"]);
  });

  it("may be a worktree of a bare repository", async () => {
    git(root, "clone", "-q", "--bare", shop, join(root, "bare.git"));
    git(join(root, "bare.git"), "worktree", "add", "-q", join(root, "tree"), "main");
    const { path, finish } = await made({ directory: join(root, "tree") });
    expect(path).toBe(join(root, "tree/.claude/worktrees/reviewer-a1"));
    expect(git(join(root, "tree"), "status", "--porcelain")).toBe("");
    expect(await finish()).toMatchObject({ kept: false });
  });

  it("may be a submodule, and a repository with submodules works too", async () => {
    const outer = join(root, "outer");
    await mkdir(outer);
    git(outer, "init", "-q", "-b", "main");
    git(outer, "submodule", "--quiet", "add", shop, "sub");
    commit(outer, "sub");
    git(outer, "config", "submodule.recurse", "true");
    await put("a.txt", "in the submodule\n", join(outer, "sub"));
    const inner = await made({ directory: join(outer, "sub/src") });
    expect(inner.path).toBe(join(outer, "sub/.claude/worktrees/reviewer-a1"));
    expect(read(inner.path, "a.txt")).toBe("in the submodule\n");
    expect(await inner.finish()).toMatchObject({ kept: false });
    const whole = await made({ directory: outer });
    expect(readdirSync(join(whole.path, "sub"))).toEqual([]);
    expect(await whole.finish()).toMatchObject({ kept: false });
    expect(branches(outer)).toEqual(["main"]);
    expect(git(join(outer, "sub"), "branch", "--format=%(refname:short)")).toBe("main\n");
  });
});

describe("a worktree that cannot be had is refused in one sentence", () => {
  it("outside of git [SPN-7]", async () => {
    const plain = join(root, "plain");
    await mkdir(plain);
    const closed = { ...environment, GIT_CEILING_DIRECTORIES: root };
    expect(await refusal({ directory: plain, environment: closed })).toBe(
      `No worktree was made, because ${plain} is not in a git repository; run git init and make a first commit.`,
    );
    expect(readdirSync(plain)).toEqual([]);
  });

  it.each([
    ["in a folder that is not there", "missing", "is not a folder"],
    ["in git's own data", ".git/refs", "git's own data"],
  ])("%s", async (_, folder, reason) => {
    expect(await refusal({ directory: join(shop, folder) })).toContain(reason);
  });

  it("in a bare repository", async () => {
    git(root, "init", "-q", "--bare", "bare.git");
    expect(await refusal({ directory: join(root, "bare.git") })).toContain("bare repository");
  });

  it("before the first commit", async () => {
    git(root, "init", "-q", "new");
    expect(await refusal({ directory: join(root, "new") })).toContain("has no commit yet");
  });

  it("without git", async () => {
    expect(await refusal({ environment: { PATH: join(root, "nothing") } })).toContain("git was not found");
  });

  it("when the folder or the branch already exists, and both stay as they are [SPN-7]", async () => {
    await put(".claude/worktrees/reviewer-a1/mine.txt", "mine\n");
    expect(await refusal()).toContain("already exists");
    expect(read(shop, ".claude/worktrees/reviewer-a1/mine.txt")).toBe("mine\n");
    git(shop, "branch", "retinue/reviewer-a2");
    expect(await refusal({ agentId: "a2" })).toContain("already exists");
    expect(branches()).toEqual(["main", "retinue/reviewer-a2"]);
    expect(existsSync(join(shop, ".claude/worktrees/reviewer-a2"))).toBe(false);
  });

  it("when a branch called retinue leaves no room for others", async () => {
    git(shop, "branch", "retinue");
    expect(await refusal()).toContain("'refs/heads/retinue' exists");
    expect(existsSync(join(shop, ".claude/worktrees/reviewer-a1"))).toBe(false);
  });

  it("when the files cannot be written, and nothing is left of the attempt", async () => {
    git(shop, "config", "--global", "filter.broken.clean", "cat");
    git(shop, "config", "--global", "filter.broken.smudge", "false");
    git(shop, "config", "--global", "filter.broken.required", "true");
    await put(".gitattributes", "a.txt filter=broken\n");
    commit(shop, "filter");
    expect(await refusal()).toContain("git reset");
    expectNothingLeft();
  });

  it("when the base is an unknown word", async () => {
    const settings = JSON.parse('{"baseRef":"tomorrow"}') as WorktreeRequest["settings"];
    expect(await refusal({ settings })).toContain('"tomorrow"');
  });
});

describe("many and stopped ones", () => {
  it("six can be made and removed at the same time [SPN-7]", async () => {
    await put("a.txt", "changed\n");
    const before = userState();
    const worktrees = await Promise.all(
      Array.from({ length: 6 }, (_, index) => made({ agentId: `a${index}` })),
    );
    expect(new Set(worktrees.map(({ path }) => path)).size).toBe(6);
    for (const { path } of worktrees) expect(read(path, "a.txt")).toBe("changed\n");
    expect(git(shop, "worktree", "list").trim().split("\n")).toHaveLength(7);
    const ends = await Promise.all(worktrees.map((worktree) => worktree.finish()));
    expect(ends.map(({ kept, reason }) => [kept, reason])).toEqual(
      ends.map(() => [false, "nothing was changed in it"]),
    );
    expect(userState()).toEqual(before);
    expectNothingLeft();
  }, 60_000);

  it("of two with one id, one is made and the other is refused", async () => {
    const starts = await Promise.all([ask(), ask()]);
    expect(starts.map(({ type }) => type).sort()).toEqual(["made", "refused"]);
  });

  it("one stopped before it begins leaves nothing", async () => {
    expect(await refusal({ signal: AbortSignal.abort() })).toBe(
      "No worktree was made, because it was stopped.",
    );
    expectNothingLeft();
  });

  it("one stopped while its files are written leaves nothing half made [SPN-7]", async () => {
    const reached = join(root, "reached");
    git(shop, "config", "--global", "filter.slow.smudge", `sh -c 'echo x >> "${reached}"; sleep 60'`);
    await put(".gitattributes", "a.txt filter=slow\n");
    commit(shop, "filter");
    const before = userState();
    const stop = new AbortController();
    const start = ask({ signal: stop.signal });
    await expect.poll(() => existsSync(reached), { timeout: 20_000, interval: 10 }).toBe(true);
    stop.abort();
    expect(await start).toMatchObject({ type: "refused", reason: expect.stringContaining("stopped") });
    expectNothingLeft();
    expect(userState()).toEqual(before);
  }, 60_000);

  it("one stopped while the snapshot is taken leaves nothing, no temporary index either", async () => {
    const reached = join(root, "reached");
    git(shop, "config", "--global", "filter.slow.clean", `sh -c 'echo x >> "${reached}"; sleep 60'`);
    await put(".gitattributes", "a.txt filter=slow\n");
    await put("a.txt", "changed\n");
    const stop = new AbortController();
    const start = ask({ signal: stop.signal });
    await expect.poll(() => existsSync(reached), { timeout: 20_000, interval: 10 }).toBe(true);
    stop.abort();
    expect((await start).type).toBe("refused");
    expectNothingLeft();
  }, 60_000);
});

describe("the end of a worktree", () => {
  it("unchanged, it goes together with its branch, and asking twice is harmless [SPN-7]", async () => {
    const { path, branch, finish } = await made();
    const end = { kept: false, path, branch, reason: "nothing was changed in it" };
    expect(await finish()).toEqual(end);
    expect(await finish()).toEqual(end);
    expectNothingLeft();
  });

  it.each<[string, string, (path: string) => unknown]>([
    [
      "a commit",
      "1 commit",
      async (path) => {
        await put("a.txt", "x\n", path);
        commit(path, "mine");
      },
    ],
    ["an empty commit", "1 commit", (path) => git(path, "commit", "-q", "--allow-empty", "-m", "x")],
    ["a changed file", "uncommitted", (path) => put("a.txt", "x\n", path)],
    ["an untracked file", "uncommitted", (path) => put("new/x.txt", "x\n", path)],
    ["a deleted file", "uncommitted", (path) => rm(join(path, "a.txt"))],
    ["all files deleted", "uncommitted", (path) => git(path, "rm", "-rq", ".")],
    [
      "a staged file put back in the folder",
      "uncommitted",
      async (path) => {
        await put("a.txt", "x\n", path);
        git(path, "add", "a.txt");
        await put("a.txt", "one\n", path);
      },
    ],
    ["a changed mode", "uncommitted", (path) => chmod(join(path, "a.txt"), 0o755)],
    ["another branch", "another branch", (path) => git(path, "checkout", "-q", "-b", "mine")],
    ["a detached commit", "another branch", (path) => git(path, "checkout", "-q", "--detach")],
    [
      "a commit that was undone",
      "on no branch",
      async (path) => {
        await put("a.txt", "x\n", path);
        commit(path, "mine");
        git(path, "reset", "-q", "--hard", "HEAD^");
      },
    ],
    ["a repository in it", "uncommitted", (path) => git(path, "clone", "-q", shop, "inner")],
    [
      "a worktree in it",
      "it contains another worktree",
      (path) => {
        git(path, "worktree", "add", "-q", "-b", "inner", "build/inner");
      },
    ],
  ])("with %s it is kept and reported [SPN-7]", async (_, reason, work) => {
    const { path, branch, finish } = await made();
    await work(path);
    expect(await finish()).toEqual({ kept: true, path, branch, reason: expect.stringContaining(reason) });
    expect(existsSync(join(path, ".git"))).toBe(true);
    expect(branches()).toContain(branch);
  });

  it("a visit to another branch and back is no change", async () => {
    git(shop, "branch", "other");
    const { path, branch, finish } = await made();
    git(path, "checkout", "-q", "other");
    git(path, "checkout", "-q", branch);
    expect(await finish()).toMatchObject({ kept: false });
  });

  it("a stopped agent's worktree still comes to its end", async () => {
    const stop = new AbortController();
    const { finish } = await made({ signal: stop.signal });
    stop.abort();
    expect(await finish()).toMatchObject({ kept: false });
  });

  it.each<[string, string, (path: string) => unknown]>([
    ["locked by somebody", "locked", (path) => git(shop, "worktree", "lock", path)],
    ["moved away by hand", "folder is gone", (path) => rename(path, join(root, "mine"))],
    [
      "replaced by a folder",
      "something else",
      async (path) => {
        await rename(path, join(root, "mine"));
        await put("precious.txt", "p\n", path);
      },
    ],
    [
      "replaced by a copy of itself",
      "something else",
      async (path) => {
        await rename(path, join(root, "mine"));
        await cp(join(root, "mine"), path, { recursive: true });
      },
    ],
    [
      "replaced by a link",
      "folder is gone",
      async (path) => {
        await rename(path, join(root, "mine"));
        await symlink(join(root, "mine"), path);
      },
    ],
    [
      "pointed at another repository",
      "something else",
      async (path) => {
        git(root, "init", "-q", "trap");
        await writeFile(join(path, ".git"), `gitdir: ${join(root, "trap/.git")}\n`);
      },
    ],
    ["without its mark", "no longer lists it", () => rm(join(shop, ".git/worktrees/reviewer-a1", markFile))],
    [
      "removed and made anew by somebody",
      "no longer lists it",
      (path) => {
        git(shop, "worktree", "remove", path);
        git(shop, "worktree", "add", "-q", path, "retinue/reviewer-a1");
      },
    ],
  ])("%s, it is left alone [SPN-7]", async (_, reason, happen) => {
    const { path, branch, finish } = await made();
    await happen(path);
    const before = existsSync(path) ? readdirSync(path) : [];
    expect(await finish()).toMatchObject({ kept: true, reason: expect.stringContaining(reason) });
    expect(existsSync(path) ? readdirSync(path) : []).toEqual(before);
    expect(branches()).toContain(branch);
  });

  it("moved by git, it is left alone and its new place is reported", async () => {
    const { path, finish } = await made();
    git(shop, "worktree", "move", path, join(root, "moved"));
    expect(await finish()).toMatchObject({ kept: true, path: join(root, "moved") });
    expect(read(join(root, "moved"), "a.txt")).toBe("one\n");
  });
});

describe("an agent that continues", () => {
  it("gets its kept worktree again, with what it did there, and only when it asks", async () => {
    const first = await made();
    await put("src/new.txt", "new\n", first.path);
    await first.finish();
    expect(await refusal()).toContain("already exists");
    const second = await made({ resume: true, directory: join(shop, "src") });
    expect(second.path).toBe(first.path);
    expect(read(second.directory, "new.txt")).toBe("new\n");
    expect(await second.finish()).toMatchObject({ kept: true });
    const third = await made({ resume: true });
    await rm(join(third.path, "src/new.txt"));
    expect(await third.finish()).toMatchObject({ kept: false });
    expectNothingLeft();
  });

  it("gets a new one where the old one was removed", async () => {
    await (await made()).finish();
    expect((await made({ resume: true })).branch).toBe("retinue/reviewer-a1");
  });

  it("gets none while the old one is in use or is not what was made", async () => {
    const first = await made();
    expect(await refusal({ resume: true })).toContain("still running");
    await put("new.txt", "new\n", first.path);
    await first.finish();
    git(shop, "worktree", "lock", first.path);
    expect(await refusal({ resume: true })).toContain("locked");
  });
});

describe("cleaning up", () => {
  const day = 24 * 60 * 60 * 1000;
  const clean = (changes: Partial<WorktreeCleanup> = {}) =>
    cleanUpWorktrees({
      repository: shop,
      now: 10 * day,
      olderThanDays: 5,
      dryRun: false,
      environment,
      trusted: true,
      signal: new AbortController().signal,
      ...changes,
    });

  /** As if the process that made it had ended without a word. */
  async function orphan(name: string): Promise<void> {
    const file = join(shop, ".git/worktrees", name, markFile);
    const mark = parseMark(await readFile(file, "utf8"));
    if (mark === undefined) throw new Error(`no mark in ${file}`);
    const owner = { ...mark.owner, started: "another boot/1" };
    await writeFile(file, JSON.stringify({ version: 1, ...mark, owner }));
  }

  it("removes only what is ours, old, unchanged and not running [SPN-7]", async () => {
    git(shop, "worktree", "add", "-q", "-b", "theirs", join(shop, ".claude/worktrees/theirs"));
    const now = () => 2 * day;
    await made({ agentId: "dead", now });
    await made({ agentId: "running", now });
    await made({ agentId: "young", now: () => 9 * day });
    const changed = await made({ agentId: "changed", now });
    await put("a.txt", "x\n", changed.path);
    const ended = await made({ agentId: "ended", now });
    await put("new.txt", "x\n", ended.path);
    expect(await ended.finish()).toMatchObject({ kept: true });
    await rm(join(ended.path, "new.txt"));
    for (const id of ["dead", "young", "changed"]) await orphan(`reviewer-${id}`);

    const shown = await clean({ dryRun: true });
    expect(administrations()).toHaveLength(6);
    const done = await clean();
    expect(done).toEqual(shown);
    expect(done.removed.map(({ branch }) => branch)).toEqual([
      "retinue/reviewer-dead",
      "retinue/reviewer-ended",
    ]);
    expect(done.kept.map(({ branch, reason }) => [branch, reason])).toEqual([
      ["retinue/reviewer-changed", "it contains uncommitted changes"],
      ["retinue/reviewer-running", "the process that made it is still running"],
      ["retinue/reviewer-young", "it is younger than 5 days"],
    ]);
    expect(administrations()).toEqual(["reviewer-changed", "reviewer-running", "reviewer-young", "theirs"]);
    expect(read(shop, ".claude/worktrees/theirs/a.txt")).toBe("one\n");
  }, 120_000);

  it("leaves alone what was started on another machine", async () => {
    await made({ now: () => 0 });
    const file = join(shop, ".git/worktrees/reviewer-a1", markFile);
    const mark = parseMark(await readFile(file, "utf8"));
    const owner = { pid: 1, machine: "elsewhere", started: "" };
    await writeFile(file, JSON.stringify({ version: 1, ...mark, owner }));
    expect(await clean()).toMatchObject({
      removed: [],
      kept: [{ reason: expect.stringContaining("machine") }],
    });
  });

  it("says so where there is no repository", async () => {
    const closed = { ...environment, GIT_CEILING_DIRECTORIES: dirname(root) };
    expect(await clean({ repository: root, environment: closed })).toMatchObject({
      removed: [],
      kept: [],
      diagnostic: expect.stringContaining("not in a git repository"),
    });
  });
});
