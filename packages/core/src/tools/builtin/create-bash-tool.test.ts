import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, open, readFile, realpath, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { livingCommands } from "@retinue/testing/living-commands.ts";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createShells, type Shells } from "../command/shells.ts";
import { createSessionFiles } from "../file-ledger.ts";
import type { Tool, ToolContext } from "../tool.ts";
import { type BashToolOptions, createBashTool } from "./create-bash-tool.ts";
import { createShellDirectories } from "./shell-directories.ts";

/** Part of what the commands are known by: another run of these tests may be under way. */
const mark = process.pid;

let root: string;
let project: string;
let shells: Shells;
let clock = 0;
const now = () => ++clock;

beforeEach(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), "bash-tool-")));
  project = join(root, "project");
  await mkdir(join(project, "sub"), { recursive: true });
  let count = 0;
  shells = createShells({ newId: () => (++count).toString(16).padStart(8, "0"), now, graceMs: 300 });
});
afterEach(async () => {
  await shells[Symbol.asyncDispose]();
  await rm(root, { recursive: true, force: true });
});

function createBash(options: Partial<BashToolOptions> = {}): Tool {
  return createBashTool({ shells, directories: createShellDirectories(), now, graceMs: 300, ...options });
}

let calls = 0;
function context(changes: Partial<ToolContext> = {}): ToolContext {
  return {
    signal: new AbortController().signal,
    directory: project,
    workingDirectories: [project],
    sessionId: "s1",
    agent: { id: "main", name: "main" },
    agentPath: [{ id: "main", name: "main" }],
    callId: `call/${++calls}`,
    files: createSessionFiles().forAgent(),
    host: {},
    environment: { PATH: process.env.PATH, HOME: root },
    outputDirectory: join(root, "output"),
    progress: () => undefined,
    ...changes,
  };
}

async function run(tool: Tool, command: string, given: Partial<ToolContext> = {}, input: object = {}) {
  const outcome = await tool.call({ command, ...input }, context(given));
  return { text: String(outcome.content), isError: outcome.isError ?? false, data: outcome.data };
}

/** What is still reachable, in bytes: garbage comes and goes with the load of the machine. */
function liveMemory(): number {
  setFlagsFromString("--expose-gc");
  runInNewContext("gc")();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

describe("what a command gives back", () => {
  test("is what it wrote, stdout and stderr in order", async () => {
    const { text, isError } = await run(
      createBash(),
      "echo one; echo two >&2; echo three; echo four > /dev/stderr",
    );
    expect(text).toBe("one\ntwo\nthree\nfour");
    expect(isError).toBe(false);
  });

  test("ends with the exit code when it is not 0", async () => {
    expect(await run(createBash(), "echo no; exit 3")).toMatchObject({
      text: "no\nExit code 3",
      isError: true,
    });
    expect(await run(createBash(), "false")).toMatchObject({ text: "Exit code 1", isError: true });
    expect((await run(createBash(), "kill -KILL $$")).text).toBe("Ended by SIGKILL");
  });

  test("says so when there is nothing", async () => {
    expect((await run(createBash(), "true")).text).toBe("(no output)");
  });

  test("names what bash could not read", async () => {
    const { text, isError } = await run(createBash(), "if true; then echo 'open");
    expect(text).toMatch(/unexpected|matching/);
    expect(isError).toBe(true);
  });

  test("knows nothing of the script around it", async () => {
    const { text } = await run(createBash(), 'echo "[$#] [$1]"; echo leak >&3');
    expect(text).toContain("[0] []");
    expect(text).toContain("Bad file descriptor");
  });

  test.each([
    ["cat <<'EOF'\nhere $HOME\nEOF", "here $HOME"],
    ["# only a comment", "(no output)"],
    ['f() { echo "in $1"; }; f x', "in x"],
    ['echo hi | while read -r x; do echo "<$x>"; done', "<hi>"],
    ["diff <(echo a) <(echo a) && echo same", "same"],
  ])("%j works as in a shell", async (command, expected) => {
    expect((await run(createBash(), command)).text).toBe(expected);
  });

  test("is clean of escapes, redrawn lines and binary", async () => {
    const command =
      "printf '\\033[31mred\\033[0m\\n1%%\\r50%%\\r100%%\\n'; head -c 5000 /dev/zero; echo; printf '\\200\\n'";
    expect((await run(createBash(), command)).text).toBe("red\n100%\n\ufffd\n\ufffd");
  });

  test("reads nothing from a terminal or from us", async () => {
    expect(
      (await run(createBash(), "cat; test -t 0 || echo none; (: < /dev/tty) 2>/dev/null || echo no tty"))
        .text,
    ).toBe("none\nno tty");
  });

  test("is refused with a NUL character", async () => {
    expect(await run(createBash(), "echo a\0b")).toMatchObject({ isError: true });
  });

  test("shows a watcher the last line", async () => {
    const seen: string[] = [];
    await run(createBash(), "echo first", { progress: (text) => void seen.push(text) });
    expect(seen).toEqual(["first"]);
  });
});

describe("long output", () => {
  test("is cut in the middle and kept whole in a private file", async () => {
    const { text, data } = await run(createBash(), "seq 1 20000");
    expect(text.length).toBeLessThan(30_500);
    expect(text).toMatch(/^1\n2\n/);
    expect(text).toMatch(/19999\n20000$/);
    const file = /all of it is in (\S+)/.exec(text)?.[1] ?? "";
    expect(data).toMatchObject({ persistedOutputPath: file });
    expect(await readFile(file, "utf8")).toBe(
      `${Array.from({ length: 20_000 }, (_, at) => at + 1).join("\n")}\n`,
    );
    expect((await stat(file)).mode & 0o777).toBe(0o600);
  });

  test("obeys BASH_MAX_OUTPUT_LENGTH", async () => {
    const environment = { PATH: process.env.PATH, BASH_MAX_OUTPUT_LENGTH: "4000" };
    expect((await run(createBash(), "seq 1 20000", { environment })).text.length).toBeLessThan(4_500);
  });

  test("of 75 MB takes neither the memory nor the disk for it", async () => {
    const gate = join(root, "gate");
    execFileSync("mkfifo", [gate]);
    const before = liveMemory();
    const running = run(createBash(), `yes | head -c 75000000; echo the end; read -r _ < ${gate}`);
    // Opened for writing as soon as the command reads it, which is when all of its output has been taken.
    const opened = await Promise.race([open(gate, "w"), running]);
    if ("text" in opened) throw new Error(`The command ended early: ${opened.text.slice(-200)}`);
    const during = liveMemory();
    await opened.write("\n");
    await opened.close();
    const { text } = await running;
    expect(text).toMatch(/the end$/);
    const file = /the first \d+ bytes are in (\S+)/.exec(text)?.[1] ?? "";
    expect((await stat(file)).size).toBeLessThan(66 * 1024 * 1024);
    expect(during - before).toBeLessThan(30 * 1024 * 1024);
  });

  test("still comes when it cannot be kept", async () => {
    await writeFile(join(root, "blocked"), "");
    const { text } = await run(createBash(), "seq 1 20000", { outputDirectory: join(root, "blocked", "x") });
    expect(text).toContain("could not be kept");
    expect(text).toMatch(/20000$/);
  });
});

describe("the folder of a command", () => {
  test("is where the last one ended", async () => {
    const bash = createBash();
    await run(bash, "cd sub");
    expect((await run(bash, "pwd")).text).toBe(join(project, "sub"));
    await run(bash, "cd ..; exit 4");
    expect((await run(bash, "pwd")).text).toBe(project);
    await run(bash, "trap 'echo bye' EXIT; cd sub");
    expect((await run(bash, "pwd")).text).toBe(join(project, "sub"));
  });

  test("does not follow what is printed", async () => {
    const bash = createBash();
    await run(bash, `echo ${join(project, "sub")}; exec true`);
    expect((await run(bash, "pwd")).text).toBe(project);
  });

  test("goes back when a command ends outside, and the result mentions it", async () => {
    const bash = createBash();
    const { text, isError } = await run(bash, "cd /; echo there");
    expect(text).toBe(
      `there\nThe command ended in /, outside the working directories; the next one starts in ${project}.`,
    );
    expect(isError).toBe(false);
    expect((await run(bash, "pwd")).text).toBe(project);
  });

  test("goes back also when a link leads outside", async () => {
    await symlink("/", join(project, "way-out"));
    const bash = createBash();
    expect((await run(bash, "cd way-out")).text).toContain("outside the working directories");
    expect((await run(bash, "pwd")).text).toBe(project);
  });

  test("may be any of the working directories", async () => {
    const other = join(root, "other");
    await mkdir(other);
    const bash = createBash();
    await run(bash, `cd ${other}`, { workingDirectories: [project, other] });
    expect((await run(bash, "pwd", { workingDirectories: [project, other] })).text).toBe(other);
  });

  test("that was removed gives way to the project", async () => {
    const bash = createBash();
    await run(bash, "cd sub");
    await rm(join(project, "sub"), { recursive: true });
    expect((await run(bash, "pwd")).text).toBe(
      `${project}\n${join(project, "sub")} is gone; the command started in ${project}.`,
    );
  });

  test("is each agent's own, and held only for those for whom it is kept", async () => {
    const bash = createBash({ keepsDirectory: ({ id }) => id === "main" });
    await run(bash, "cd sub");
    expect((await run(bash, "pwd", { agent: { id: "child", name: "child" } })).text).toBe(project);
    await run(bash, "cd sub", { agent: { id: "child", name: "child" } });
    expect((await run(bash, "pwd", { agent: { id: "child", name: "child" } })).text).toBe(project);
  });
});

describe("the environment of a command", () => {
  test("runs no start file and no foreign function, and holds no provider key", async () => {
    const startFile = join(root, "start.sh");
    await writeFile(startFile, "echo start file ran\n");
    await writeFile(join(root, ".bashrc"), "echo bashrc ran\n");
    const environment = {
      PATH: process.env.PATH,
      HOME: root,
      BASH_ENV: startFile,
      ENV: startFile,
      "BASH_FUNC_ls%%": "() { echo fake ls; }",
      ANTHROPIC_API_KEY: "sk-secret",
      MY_OWN: "kept",
    };
    const { text } = await run(createBash(), "ls >/dev/null; env", { environment });
    expect(text).not.toMatch(/start file ran|bashrc ran|fake ls|sk-secret|retinue/);
    expect(text).toContain("MY_OWN=kept");
    expect(text).toContain("CLAUDECODE=1");
    expect(text).toContain("CLAUDE_CODE_CHILD_SESSION=1");
    expect(text).toContain(`CLAUDE_PROJECT_DIR=${project}`);
  });

  test("holds a provider key where the setting passes it on", async () => {
    const bash = createBash({
      passVariables: ["ANTHROPIC_API_KEY"],
      variables: { CLAUDE_CODE_SESSION_ID: "s1" },
    });
    const environment = { PATH: process.env.PATH, ANTHROPIC_API_KEY: "sk-passed" };
    expect((await run(bash, "echo $ANTHROPIC_API_KEY $CLAUDE_CODE_SESSION_ID", { environment })).text).toBe(
      "sk-passed s1",
    );
  });
});

describe("a command that is ended", () => {
  test("at its time limit gives what it wrote and says what to do", async () => {
    const { text, isError, data } = await run(
      createBash(),
      `echo begun; sleep 72001.5${mark}`,
      {},
      { timeout: 800 },
    );
    expect(text).toMatch(/^begun\nThe command was stopped after 800 ms/);
    expect(isError).toBe(true);
    expect(data).toMatchObject({ interrupted: true });
    expect(livingCommands(`sleep 72001.5${mark}`)).toEqual([]);
  });

  test("although it ignores SIGTERM leaves nothing", async () => {
    const command = `trap '' TERM; (trap '' TERM; exec sleep 72002.5${mark}) & sleep 72002.5${mark}`;
    expect((await run(createBash(), command, {}, { timeout: 800 })).text).toContain("stopped after 800 ms");
    expect(livingCommands(`sleep 72002.5${mark}`)).toEqual([]);
  });

  test("by an abort is interrupted", async () => {
    const controller = new AbortController();
    const seen = Promise.withResolvers<void>();
    const pending = run(createBash(), `echo begun; sleep 72003.5${mark}`, {
      signal: controller.signal,
      progress: () => seen.resolve(),
    });
    await seen.promise;
    controller.abort();
    const { text, data } = await pending;
    expect(text).toBe("begun\nThe command was interrupted before it ended.");
    expect(data).toMatchObject({ interrupted: true });
    expect(livingCommands(`sleep 72003.5${mark}`)).toEqual([]);
  });

  test("takes along what it left in the background, and says so", async () => {
    const { text, isError } = await run(createBash(), `sleep 72004.5${mark} & echo started`);
    expect(text).toMatch(/^started\nProcesses it had left behind were ended \(1\)/);
    expect(isError).toBe(false);
    expect(livingCommands(`sleep 72004.5${mark}`)).toEqual([]);
  });
});

describe("a command in the background", () => {
  test("gives its task immediately and writes to its file", async () => {
    const { text, data } = await run(
      createBash(),
      `echo hello; sleep 72005.5${mark}`,
      {},
      { run_in_background: true },
    );
    expect(text).toContain("task b00000001");
    expect(data).toMatchObject({
      backgroundTaskId: "b00000001",
      outputFile: join(root, "output", "b00000001.output"),
    });
    expect(shells.find("b00000001")).toMatchObject({ state: "running", owner: "main" });
    await shells[Symbol.asyncDispose]();
    expect(await readFile(join(root, "output", "b00000001.output"), "utf8")).toMatch(/^(hello\n)?$/);
    expect(livingCommands(`sleep 72005.5${mark}`)).toEqual([]);
  });

  test("is refused where background tasks are switched off", async () => {
    const environment = { PATH: process.env.PATH, CLAUDE_CODE_DISABLE_BACKGROUND_TASKS: "1" };
    const outcome = await run(createBash(), "true", { environment }, { run_in_background: true });
    expect(outcome).toMatchObject({ isError: true });
  });
});
