import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { thisProcess } from "@retinue/base/storage/process-identity.ts";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { cleanUpWorktrees } from "../cleanup.ts";
import { makeWorktree, type Worktree } from "./make-worktree.ts";
import { markFile } from "./worktree-mark.ts";
import { listPending, pendingFile } from "./write-pending.ts";

let root: string;
let shop: string;
let environment: Record<string, string | undefined>;

let template: string;

// The repository is made once and copied for each test: three processes fewer for each.
beforeAll(() => {
  template = realpathSync(mkdtempSync(join(tmpdir(), "worktree-recovery-template-")));
  shop = join(template, "shop");
  mkdirSync(shop);
  environment = { PATH: process.env["PATH"], HOME: template, GIT_CONFIG_NOSYSTEM: "1" };
  git("init", "-q", "-b", "main");
  for (const name of readdirSync(join(shop, ".git/hooks"))) rmSync(join(shop, ".git/hooks", name));
  writeFileSync(join(shop, ".gitignore"), "*.secret\nmodules/\n");
  writeFileSync(join(shop, ".worktreeinclude"), "*.secret\n");
  for (const name of ["a.txt", "b.txt"]) writeFileSync(join(shop, name), `the text of ${name}\n`);
  git("add", "-A");
  git("commit", "-q", "-m", "first");
  writeFileSync(join(shop, "my.secret"), "the password\n");
  mkdirSync(join(shop, "modules"));
});
afterAll(() => rmSync(template, { recursive: true, force: true }));

beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "worktree-recovery-")));
  shop = join(root, "shop");
  mkdirSync(join(root, "home"));
  environment = { PATH: process.env["PATH"], HOME: join(root, "home"), GIT_CONFIG_NOSYSTEM: "1" };
  cpSync(join(template, "shop"), shop, { recursive: true, preserveTimestamps: true });
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function git(...words: string[]): string {
  const identity = ["-c", "user.name=a", "-c", "user.email=a@b"];
  return execFileSync("git", [...identity, ...words], {
    cwd: shop,
    env: environment as NodeJS.ProcessEnv,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
  });
}

const request = () => ({
  directory: shop,
  agentName: "Reviewer",
  settings: { symlinkDirectories: ["modules"] },
  environment,
  trusted: true,
  signal: new AbortController().signal,
});

async function made(agentId = "a1"): Promise<Worktree> {
  const start = await makeWorktree({ ...request(), agentId });
  if (start.type === "refused") throw new Error(start.reason);
  return start.worktree;
}

const clean = (changes: object = {}) =>
  cleanUpWorktrees({
    repository: shop,
    now: Date.now(),
    olderThanDays: 30,
    requested: true,
    dryRun: false,
    environment,
    trusted: true,
    signal: new AbortController().signal,
    ...changes,
  });

const namesIn = (folder: string) => (existsSync(join(shop, folder)) ? readdirSync(join(shop, folder)) : []);

/** As git writes them down: no test packs them. */
function branches(): string[] {
  const directory = join(shop, ".git/refs/heads");
  const files = readdirSync(directory, { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  );
  return files.map(({ parentPath, name }) => relative(directory, join(parentPath, name))).sort();
}

function left() {
  return {
    folders: namesIn(".claude/worktrees"),
    branches: branches(),
    records: namesIn(".git/worktrees"),
    own: namesIn(".git").filter((name) => name.includes("retinue")),
  };
}

const nothing = { folders: [], branches: ["main"], records: [], own: [] };

/** As if the process that made it had died: in what it wrote down, and in the mark. */
function die(path: string): void {
  const owner = { ...thisProcess(), started: "before" };
  const name = path.split("/").at(-1) ?? "";
  for (const file of [pendingFile(join(shop, ".git"), path), join(shop, ".git/worktrees", name, markFile)]) {
    if (!existsSync(file)) continue;
    const value: object = JSON.parse(readFileSync(file, "utf8"));
    writeFileSync(file, JSON.stringify({ ...value, owner }));
  }
}

/** A process of its own that makes a worktree and removes it again, and is killed when git is called with some words. */
async function killedAt(words: string, when: "before" | "after"): Promise<void> {
  const bin = join(root, "bin");
  mkdirSync(bin);
  const real = execFileSync("/bin/sh", ["-c", "command -v git"], { encoding: "utf8" }).trim();
  const script = [
    "#!/bin/sh",
    `case "$*" in *"${words}"*)`,
    when === "after" ? `  ${real} "$@"` : "  :",
    '  kill -KILL "$PPID"; exit 1 ;;',
    "esac",
    `exec ${real} "$@"`,
  ];
  writeFileSync(join(bin, "git"), `${script.join("\n")}\n`);
  chmodSync(join(bin, "git"), 0o755);
  const module_ = JSON.stringify(new URL("./make-worktree.ts", import.meta.url).href);
  const program = `
    const { makeWorktree } = await import(${module_});
    const start = await makeWorktree({
      directory: ${JSON.stringify(shop)}, agentId: "a1", agentName: "Reviewer", settings: {},
      environment: process.env, trusted: true, signal: new AbortController().signal,
    });
    if (start.type === "made") await start.worktree.finish();`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", program], {
    env: { ...process.env, ...environment, PATH: bin },
    stdio: "inherit",
  });
  expect(await once(child, "exit")).toEqual([null, "SIGKILL"]);
}

/** A git that writes down each of its calls. */
function countingGit() {
  const bin = join(root, "counting");
  const log = join(root, "calls.log");
  mkdirSync(bin);
  const real = execFileSync("/bin/sh", ["-c", "command -v git"], { encoding: "utf8" }).trim();
  writeFileSync(join(bin, "git"), `#!/bin/sh\necho "$*" >> ${log}\nexec ${real} "$@"\n`, { mode: 0o755 });
  return { bin, log };
}

describe("[SPN-7] a worktree whose process is killed", () => {
  test.each([
    ["update-ref refs/heads", "after"],
    ["reset --hard", "before"],
    ["worktree remove", "before"],
    ["update-ref -d", "before"],
  ] as const)("at `git %s`, %s it ran, is removed by the next clean-up with its branch", async (words, when) => {
    await killedAt(words, when);
    expect(listPending(join(shop, ".git"))).toHaveLength(1);
    expect(await clean()).toMatchObject({ removed: [{ branch: "retinue/reviewer-a1" }], kept: [] });
    expect(left()).toEqual(nothing);
  });

  test("is removed when the next one is made, and its name is free again, also while other processes mention it", async () => {
    await killedAt("worktree add", "after");
    const [name = ""] = namesIn(".claude/worktrees");
    const other = spawn("sleep", ["60"], { argv0: `retinue --worktree ${name}`, stdio: "ignore" });
    onTestFinished(() => void other.kill("SIGKILL"));
    const { path, markStarted, finish } = await made("a1");
    expect(readFileSync(join(path, "a.txt"), "utf8")).toBe("the text of a.txt\n");
    markStarted();
    expect(await finish()).toMatchObject({ kept: false });
    expect(left()).toEqual(nothing);
  });
});

describe("[SPN-7] what a git that was killed with its process leaves", () => {
  test.each<[string, (path: string, record: string) => void]>([
    [
      "a folder and nothing else",
      (path, record) => {
        rmSync(record, { recursive: true });
        rmSync(path, { recursive: true });
        mkdirSync(path);
        git("update-ref", "-d", "refs/heads/retinue/reviewer-a1");
      },
    ],
    [
      "a lock of its branch",
      () => {
        writeFileSync(join(shop, ".git/refs/heads/retinue/reviewer-a1.lock"), "");
      },
    ],
    [
      "a record without its pointers",
      (path, record) => {
        for (const name of ["gitdir", "HEAD", markFile, "index"]) rmSync(join(record, name), { force: true });
        writeFileSync(join(record, "commondir"), "");
        writeFileSync(join(record, "locked"), "initializing");
        rmSync(path, { recursive: true });
        mkdirSync(path);
      },
    ],
    [
      "a pointer that is empty",
      (path, record) => {
        writeFileSync(join(path, ".git"), "");
        writeFileSync(join(record, "commondir"), "");
      },
    ],
    [
      "half of the files, one of them broken off",
      (path, record) => {
        rmSync(join(record, "index"));
        writeFileSync(join(record, "index.lock"), "");
        rmSync(join(path, "a.txt"));
        writeFileSync(join(path, "b.txt"), "the te");
        writeFileSync(join(path, "my.secret"), "the pass");
      },
    ],
  ])("as %s is removed", async (_what, destroy) => {
    const { path } = await made();
    destroy(path, join(shop, ".git/worktrees/reviewer-a1"));
    die(path);
    expect((await clean({ dryRun: true })).removed).toMatchObject([{ path }]);
    expect(await clean()).toMatchObject({ removed: [{ path }], kept: [] });
    expect(left()).toEqual(nothing);
  });

  test.each<[string, (path: string) => void, RegExp]>([
    ["a file that no one put there", (path) => writeFileSync(join(path, "mine.txt"), "mine"), /mine\.txt/],
    ["a changed file", (path) => writeFileSync(join(path, "a.txt"), "mine"), /a\.txt in it was changed/],
    [
      "a file that is longer than the copied one",
      (path) => writeFileSync(join(path, "my.secret"), "the password\n and mine"),
      /my\.secret/,
    ],
  ])("with %s stays, and it is said why", async (_what, change, why) => {
    const { path } = await made();
    change(path);
    die(path);
    expect(await clean()).toMatchObject({
      removed: [],
      kept: [{ path, reason: expect.stringMatching(why) }],
    });
    expect(existsSync(join(path, "b.txt"))).toBe(true);
  });

  test("of many files is looked at by a handful of git processes, however many were broken off", async () => {
    for (let index = 0; index < 2000; index += 1)
      writeFileSync(join(shop, `file-${index}.txt`), `the text of ${index}\n`);
    git("add", "-A");
    git("commit", "-q", "-m", "many");
    const { path } = await made();
    for (let index = 0; index < 300; index += 1) writeFileSync(join(path, `file-${index}.txt`), "the");
    die(path);
    const { bin, log } = countingGit();
    const counted = { environment: { ...environment, PATH: bin } };
    expect(await clean(counted)).toMatchObject({ removed: [{ path }], kept: [] });
    expect(left()).toEqual(nothing);
    const processes = readFileSync(log, "utf8").trim().split("\n");
    expect(processes.filter((line) => line.includes("diff-files"))).toHaveLength(1);
    expect(processes.length).toBeLessThan(20);
  });

  test("in a foreign worktree is fixed, so that others can be made", async () => {
    git("worktree", "add", "-q", "../theirs");
    const file = join(shop, ".git/worktrees/theirs/commondir");
    writeFileSync(file, "");
    expect(() => git("worktree", "list")).toThrow();
    const { finish } = await made();
    expect(readFileSync(file, "utf8")).toBe("../..\n");
    expect(git("worktree", "list")).toContain("theirs");
    await finish();
    expect(existsSync(join(root, "theirs/a.txt"))).toBe(true);
  });

  test("of an index of its own is removed, and that of a living process stays", async () => {
    const [dead, living] = ["dead", "living"].map((name) => join(shop, ".git", `retinue-index-${name}`));
    for (const [folder = "", owner] of [
      [dead, { ...thisProcess(), started: "before" }],
      [living, thisProcess()],
    ] as const) {
      mkdirSync(folder);
      writeFileSync(join(folder, "owner.json"), JSON.stringify(owner));
    }
    mkdirSync(join(shop, ".git/retinue-worktrees"));
    for (const name of [
      "retinue-worktrees.lock.aa.tmp",
      "retinue-worktrees/x.json.bb.tmp",
      "retinue-worktrees.lock.lock",
    ])
      writeFileSync(join(shop, ".git", name), JSON.stringify({ ...thisProcess(), started: "before" }));
    git("worktree", "add", "-q", "../theirs");
    await clean();
    expect(left().own).toEqual(["retinue-index-living"]);
  });
});

describe("[SPN-7] a worktree whose agent has started", () => {
  test("is no longer one that is being made; after a crash it stays until its removal is requested, and goes only unchanged", async () => {
    const [first, second] = [await made("a1"), await made("a2")];
    for (const { markStarted } of [first, second]) markStarted();
    expect(listPending(join(shop, ".git"))).toEqual([]);
    writeFileSync(join(second.path, "new.txt"), "work");
    for (const { path } of [first, second]) die(path);
    expect((await clean({ requested: false })).kept).toHaveLength(2);
    expect(await clean()).toMatchObject({
      removed: [{ path: first.path }],
      kept: [{ path: second.path, reason: "it contains uncommitted changes" }],
    });
  });

  test("stays while its process runs", async () => {
    const { path } = await made();
    expect(await clean()).toMatchObject({ removed: [], kept: [{ path }] });
  });
});
