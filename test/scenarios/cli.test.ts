import { type ChildProcess, type SpawnSyncReturns, spawn, spawnSync } from "node:child_process";
import {
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
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { startFakeProvider } from "@retinue/testing/fake-provider.ts";
import { describe, expect, onTestFinished, test } from "vitest";
import packageJson from "../../package.json" with { type: "json" };
import { projectRoot } from "../project-files.ts";
import { createPlace, runCommand, runInProcess } from "./run-command.ts";

const program = join(projectRoot, "bin/retinue.js");
const description = "Reviews SQL migrations for locks. Use when a migration changes. Not for tuning queries.";
const hasTerminal = process.platform === "linux" && spawnSync("script", ["--version"]).status === 0;

function createFolders(): { readonly cwd: string; readonly home: string } {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "retinue-scenario-")));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  const folders = { cwd: join(root, "project"), home: join(root, "home") };
  mkdirSync(join(folders.cwd, ".claude/agents"), { recursive: true });
  mkdirSync(folders.home);
  return folders;
}

type Folders = ReturnType<typeof createFolders>;

function options({ cwd, home }: Folders) {
  const environment = { HOME: home, PATH: process.env["PATH"], TERM: "xterm", RETINUE_LOCAL_MODELS: "0" };
  return { cwd, env: environment, encoding: "utf8", input: "", timeout: 20_000 } as const;
}

function retinue(folders: Folders, ...arguments_: string[]): SpawnSyncReturns<string> {
  return spawnSync(process.execPath, [program, ...arguments_], options(folders));
}

interface TypedAnswer {
  /** What the screen must show before a person types. */
  readonly at: string;
  readonly type: string;
}

/** Runs the program in a terminal of its own, with a person who waits for each question before typing. */
function inTerminal(
  folders: Folders,
  command: string,
  answers: readonly TypedAnswer[] = [],
): Promise<{ readonly status: number | null; readonly screen: string }> {
  const { cwd, env } = options(folders);
  const child = spawn("script", ["-qec", command, "/dev/null"], { cwd, env });
  onTestFinished(() => void child.kill("SIGKILL"));
  const waiting = [...answers];
  let screen = "";
  let seen = 0;
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    screen += text;
    for (let next = waiting[0]; next !== undefined; next = waiting[0]) {
      const at = screen.indexOf(next.at, seen);
      if (at === -1) return;
      seen = at + next.at.length;
      waiting.shift();
      child.stdin.write(next.type);
    }
  });
  return new Promise((resolve) => {
    child.on("close", (status) => resolve({ status, screen }));
  });
}

const quoted = `"${process.execPath}" "${program}"`;

describe("the built command", () => {
  test("lists agents without escape codes where no terminal is [CLI-2, CLI-6]", () => {
    const { status, stdout, stderr } = retinue(createFolders(), "agents");
    expect(status).toBe(0);
    expect(stdout).toMatch(/^general-purpose +built-in/m);
    expect(stdout + stderr).not.toContain("\u001b");
  });

  test("keeps stdout for JSON alone [CLI-2]", async () => {
    const folders = createFolders();
    writeFileSync(join(folders.cwd, ".claude/agents/bad.md"), "---\nname: bad\n---\n");
    expect(JSON.parse(retinue(folders, "agents", "list", "--json").stdout)).toMatchObject({ version: 1 });
    for (const command of [
      ["agents", "check", "--json"],
      ["doctor", "--json"],
    ]) {
      expect(JSON.parse((await runInProcess(folders, command)).out)).toMatchObject({ version: 1 });
    }
  });

  test("exits with 0 when all is well, 1 when something is wrong, 2 when it is misused [CLI-2, CLI-6]", async () => {
    const folders = createFolders();
    expect(retinue(folders, "agents", "check").status).toBe(0);
    expect(retinue(folders, "agnets").status).toBe(2);
    expect((await runInProcess(folders, ["agents", "check", "nowhere"])).code).toBe(2);
    writeFileSync(join(folders.cwd, ".claude/agents/bad.md"), "---\nname: bad\n---\n");
    expect(retinue(folders, "agents", "check").status).toBe(1);
    expect((await runInProcess(folders, ["doctor"])).code).toBe(1);
  });

  test("ends with a clear error for bad JSON in --agents [DEF-9]", async () => {
    const { code, out, err } = await runInProcess(createFolders(), ["--agents", '{"a": }', "agents"]);
    expect({ code, out }).toEqual({ code: 2, out: "" });
    expect(err).toMatch(/^retinue: --agents:1:7: The agents cannot be used/);
  });

  test("makes an agent from flags that its own check accepts [CLI-2]", async () => {
    const folders = createFolders();
    const made = retinue(
      folders,
      "agents",
      "new",
      "--name",
      "sql",
      "--description",
      description,
      "--tools",
      "Read,Grep",
    );
    expect(made.status, made.stderr).toBe(0);
    expect((await runInProcess(folders, ["agents", "check", "--strict"])).code).toBe(0);
    expect((await runInProcess(folders, ["agents", "show", "sql"])).out).toContain(".claude/agents/sql.md:4");
  });

  test("prints its version, also among other options", () => {
    expect(retinue(createFolders(), "--verbose", "--version").stdout).toBe(`${packageJson.version}\n`);
  });

  test.runIf(process.platform !== "win32")("ends quietly when its reader goes away [CLI-6]", () => {
    const folders = createFolders();
    const pipe = `"${process.execPath}" "${program}" agents | true; echo "\${PIPESTATUS[0]}"`;
    const { stdout, stderr } = spawnSync("bash", ["-c", pipe], options(folders));
    expect(stdout).toBe("0\n");
    expect(stderr).not.toMatch(/EPIPE|^\s+at /m);
  });
});

describe.runIf(hasTerminal)("in a terminal", () => {
  test("the command uses colours, and NO_COLOR stops them [CLI-6]", async () => {
    const folders = createFolders();
    expect((await inTerminal(folders, `${quoted} agents list`)).screen).toContain("\u001b[36m");
    const { screen } = await inTerminal(folders, `NO_COLOR=1 ${quoted} agents list`);
    expect(screen).toContain("general-purpose");
    expect(screen).not.toContain("\u001b[");
  });

  test("agents new asks, and writes what was answered [CLI-2]", async () => {
    const folders = createFolders();
    const { status, screen } = await inTerminal(folders, `NO_COLOR=1 ${quoted} agents new`, [
      { at: "Scope: ", type: "project\r" },
      { at: "Name: ", type: "Bad Name\r" },
      { at: "hard to type", type: "" },
      { at: "Name: ", type: "sql\r" },
      { at: "Description: ", type: `${description}\r` },
      { at: "Tools: ", type: "Read, Grep\r" },
      { at: "Model: ", type: "haiku\r" },
    ]);
    expect(status, screen).toBe(0);
    const text = readFileSync(join(folders.cwd, ".claude/agents/sql.md"), "utf8");
    expect(text).toContain("tools: Read, Grep\nmodel: haiku\n");
    expect((await runInProcess(folders, ["agents", "check", "--strict"])).code).toBe(0);
  });

  test("Ctrl+C at a question leaves nothing behind and exits with 130 [CLI-6]", async () => {
    const folders = createFolders();
    const { status, screen } = await inTerminal(folders, `NO_COLOR=1 ${quoted} agents new`, [
      { at: "Scope: ", type: "project\r" },
      { at: "Name: ", type: "\u0003" },
    ]);
    expect(status, screen).toBe(130);
    expect(readdirSync(join(folders.cwd, ".claude/agents"))).toEqual([]);
  });
});

describe("a store in a folder, for one process at a time", () => {
  test("-p runs its agent itself, and serve continues one that waited for a person [CLU-1, CLU-4]", async () => {
    const write = { calls: [{ name: "Write", input: { file_path: "a.txt", content: "text" } }] };
    // A call that waited is repeated by the model, and the answer covers it.
    const provider = await startFakeProvider({ script: ["Hello.", write, write, "Written."] });
    onTestFinished(() => provider[Symbol.asyncDispose]());
    const place = createPlace();
    const store = ["--store", pathToFileURL(join(place.home, "store")).href];
    const environment = { ANTHROPIC_BASE_URL: provider.url, ANTHROPIC_API_KEY: "x" };
    const run = (
      words: readonly string[],
      received: (err: string, child: ChildProcess) => void = () => {},
    ) => {
      let err = "";
      const listen = (child: ChildProcess) =>
        child.stderr?.on("data", (text) => {
          err += text;
          received(err, child);
        });
      return runCommand(place, [...words, ...store], { environment, started: listen });
    };
    expect(await run(["-p", "Hi."])).toMatchObject({ code: 0, out: "Hello.\n" });

    const left = await run(["-p", "Write."], (err, child) => {
      if (/leave with Ctrl\+C.*\n$/.test(err)) child.kill("SIGINT");
    });
    expect(left).toMatchObject({
      code: 130,
      err: expect.stringContaining("`retinue serve --store …` continues"),
    });
    const id = /agent (\S+)/.exec(left.err)?.[1] ?? "";
    const approval = /retinue approve (\S+)/.exec(left.err)?.[1] ?? "";
    const here = (words: readonly string[]) => runInProcess(place, [...words, ...store], { environment });
    expect(await here(["approve", approval])).toMatchObject({ code: 0 });

    const serving = Promise.withResolvers<ChildProcess>();
    const served = run(["serve"], (err, child) => {
      if (err.includes(" serves ")) serving.resolve(child);
    });
    const worker = await serving.promise;
    await expect.poll(() => existsSync(join(place.cwd, "a.txt"))).toBe(true);
    // It stays, and keeps others out, also when there is nothing to do.
    expect(await run(["tasks"])).toMatchObject({
      code: 1,
      err: expect.stringContaining(`process ${worker.pid},`),
    });
    worker.kill("SIGTERM");
    expect(await served).toMatchObject({ code: 0 });
    expect((await here(["logs", id])).out).toContain("assistant: Written.");
  });
});
