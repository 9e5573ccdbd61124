import { execFileSync } from "node:child_process";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { writeLock } from "@retinue/config/lock/lock-file.ts";
import { describe, expect, it, onTestFinished } from "vitest";
import { matters } from "./compare-lock.ts";
import { gatherAllParts, type LockPlace } from "./gather-parts.ts";
import { judgeLock } from "./judge-lock.ts";

/** A file of the project; a function makes a link to what it returns. */
type Files = Readonly<Record<string, string | (() => string)>>;

async function createFixture(files: Files) {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "retinue-lock-attacks-")));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  const [cwd, home] = [join(root, "project"), join(root, "home")];
  mkdirSync(join(cwd, ".git"), { recursive: true });
  mkdirSync(home);
  const place: LockPlace = { cwd, home, env: {}, platform: process.platform };
  const write = (changes: Files): void => {
    for (const [name, content] of Object.entries(changes)) {
      const path = join(cwd, name);
      mkdirSync(dirname(path), { recursive: true });
      if (typeof content === "string") writeFileSync(path, content);
      else {
        rmSync(path, { force: true });
        symlinkSync(content(), path);
      }
    }
  };
  write(files);
  const lock = join(cwd, "retinue.lock");
  writeFileSync(lock, writeLock((await gatherAllParts(place)).entries));
  return { cwd, lock, place, write, judge: () => judgeLock(place, { isWhole: true }) };
}

/** What may do more after these changes, a sentence each. */
async function widenings(before: Files, after: Files): Promise<readonly string[]> {
  const { judge, write } = await createFixture(before);
  expect(await judge()).toMatchObject({ type: "compared", hashes: [] });
  write(after);
  const judgement = await judge();
  if (judgement.type !== "compared") throw new Error(judgement.type);
  return judgement.differences.filter(matters).flatMap((each) => each.widenings);
}

const hook = (command: string) =>
  JSON.stringify({ hooks: { PreToolUse: [{ matcher: "Bash", hooks: [{ type: "command", command }] }] } });
const agent = (fields: string) => `---\nname: a\ndescription: d\n${fields}\n---\nx\n`;
const skill = (body: string) => `---\nname: s\ndescription: d\n---\n${body}\n`;

describe("a script that the configuration runs", () => {
  it.each([
    './scripts/guard.sh "$1"',
    '"$CLAUDE_PROJECT_DIR"/scripts/guard.sh',
    `\${CLAUDE_PROJECT_DIR:-.}/scripts/guard.sh`,
    "$(git rev-parse --show-toplevel)/scripts/guard.sh",
    'bash -c "./scripts/guard.sh --strict"',
    "sh -c 'exec ./scripts/guard.sh'",
    "cd scripts && ./guard.sh",
    "node --require=./scripts/guard.sh main.js",
    "CONFIG=scripts/guard.sh run",
    "`scripts/guard.sh`",
    "sh <scripts/guard.sh",
  ])("is part of the hook %s [PRT-4]", async (command) => {
    const settings = { ".claude/settings.json": hook(command) };
    const found = await widenings(
      { ...settings, "scripts/guard.sh": "exit 2" },
      { "scripts/guard.sh": "exit 0" },
    );
    expect(found).toEqual(["it includes scripts/guard.sh, which is different"]);
  });

  it("is missed where it guards and is gone, or leads out of the project [PRT-4]", async () => {
    const before = { ".claude/settings.json": hook("./scripts/guard.sh"), "scripts/guard.sh": "exit 2" };
    expect(await widenings(before, { "scripts/guard.sh": () => "/nowhere/at/all" })).toEqual([
      "it is guarded by scripts/guard.sh, which is gone",
    ]);
    expect(await widenings(before, { "scripts/guard.sh": () => "/bin/sh" })).toEqual([
      "it includes scripts/guard.sh, which is different",
    ]);
  });

  it.skipIf(process.platform === "win32")(
    "is missed where it guards and may not be run any more, and only there [PRT-4]",
    async () => {
      const files = { ".claude/settings.json": hook("./scripts/guard.sh"), "scripts/guard.sh": "exit 2" };
      const { cwd, place, lock, judge } = await createFixture(files);
      const guard = join(cwd, "scripts/guard.sh");
      const found = async () => {
        const judgement = await judge();
        if (judgement.type !== "compared") throw new Error(judgement.type);
        return judgement.differences.flatMap((each) => each.widenings);
      };
      // One that is started by an interpreter never could, and one that can be run now guards no less.
      chmodSync(guard, 0o755);
      expect(await found()).toEqual([]);
      const accepted = writeLock((await gatherAllParts(place)).entries);
      writeFileSync(lock, accepted);
      chmodSync(guard, 0o644);
      expect(await found()).toEqual(["it is guarded by scripts/guard.sh, which cannot be run any more"]);
      // A lock from a system that does not report this, or from before, misses nothing.
      writeFileSync(lock, accepted.replace(/,\s*"executable": \[[^\]]*\]/, ""));
      expect(await found()).toEqual([]);
    },
  );

  const settings = (value: unknown) => ({ ".claude/settings.json": JSON.stringify(value) });
  const servers = (value: unknown) => ({ ".mcp.json": JSON.stringify({ mcpServers: { x: value } }) });
  it.each<[string, Files]>([
    ["a helper of the settings", settings({ apiKeyHelper: "./run.sh" })],
    ["a status line", settings({ statusLine: { type: "command", command: "./run.sh" } })],
    ["checks of the settings", settings({ verify: { main: ["./run.sh --all"] } })],
    ["a check of an agent", { ".claude/agents/a.md": agent("verify: ./run.sh") }],
    ["a runner", { ".claude/agents/a.md": agent("runner: { acp: ./run.sh }") }],
    [
      "headers of a server",
      servers({ type: "http", url: "https://example.com/", headersHelper: "./run.sh" }),
    ],
    ["a command of a skill", { ".claude/skills/s/SKILL.md": skill("!`./run.sh`") }],
    ["a command file", { ".claude/commands/c.md": skill("!`./run.sh`") }],
  ])("is part of %s [PRT-4]", async (_of, files) => {
    expect(await widenings({ ...files, "run.sh": "1" }, { "run.sh": "2" })).toEqual([
      "it includes run.sh, which is different",
    ]);
  });

  it("is found in the folder of a server, and in that of the settings [PRT-4]", async () => {
    const server = servers({ command: "node", args: ["run.js"], cwd: "tools" });
    const below = { "packages/api/.claude/settings.json": hook("$CLAUDE_PROJECT_DIR/run.sh") };
    const before = { ...server, ...below, "tools/run.js": "1", "packages/api/run.sh": "1" };
    expect((await widenings(before, { "tools/run.js": "2", "packages/api/run.sh": "2" })).toSorted()).toEqual(
      ["it includes packages/api/run.sh, which is different", "it includes tools/run.js, which is different"],
    );
  });

  it("is part of a skill in a linked folder, and links in a circle end [PRT-4]", async () => {
    const before = {
      ".claude/skills/s/SKILL.md": skill("Run it."),
      "lib/run.sh": "1",
      "lib/again": () => ".",
      ".claude/skills/s/scripts": () => "../../../lib",
    };
    expect(await widenings(before, { "lib/run.sh": "2" })).toEqual([
      "it includes .claude/skills/s/scripts/run.sh, which is different",
    ]);
  });
});

describe("a lock", () => {
  it("sees agents and settings behind links below the project [PRT-4]", async () => {
    const before = {
      "common/agents/a.md": agent("tools: Read"),
      "packages/api/x": "",
      "packages/api/.claude": () => "../../common",
    };
    expect(await widenings(before, { "common/agents/a.md": agent("tools: Read, Bash") })).toEqual([
      "Bash is new",
    ]);
  });

  it("has the runner of an agent among what it may do [PRT-4]", async () => {
    const path = ".claude/agents/a.md";
    const found = await widenings(
      { [path]: agent("tools: Read") },
      { [path]: agent("tools: Read\nrunner: { acp: other-agent --fast, unguarded: true }") },
    );
    expect(found).toEqual([
      "it has a runner that starts although rules cannot be enforced on it",
      "it is run by other-agent '--fast'",
    ]);
  });

  it("with two entries about one part cannot be used [PRT-4]", async () => {
    const { judge, lock } = await createFixture({ ".claude/agents/a.md": agent("tools: Read") });
    const read = JSON.parse(readFileSync(lock, "utf8"));
    writeFileSync(lock, JSON.stringify({ ...read, entries: [...read.entries, ...read.entries] }));
    expect(await judge()).toMatchObject({
      type: "broken",
      diagnostics: [{ message: "agent a of .claude/agents/a.md is in the lock twice." }],
    });
  });

  it("that is a pipe, endless, huge, a folder or a link to nothing cannot be used, and is not waited for [PRT-4]", async () => {
    const { judge, lock } = await createFixture({ ".claude/agents/a.md": agent("tools: Read") });
    const makers: readonly (() => void)[] = [
      () => execFileSync("mkfifo", [lock]),
      () => symlinkSync("/dev/zero", lock),
      () => {
        writeFileSync(lock, "");
        truncateSync(lock, 3_000_000_000);
      },
      () => mkdirSync(lock),
      () => symlinkSync("nowhere", lock),
    ];
    for (const make of makers) {
      rmSync(lock, { recursive: true, force: true });
      make();
      expect(await judge()).toMatchObject({ type: "broken", diagnostics: [{ code: "unreadable-file" }] });
    }
  });
});
