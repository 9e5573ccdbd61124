import { once } from "node:events";
import { mkdtemp, readdir, readFile, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { livingCommands } from "@retinue/testing/living-commands.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { findGroupMembers } from "./spawn-process.ts";
import { type RunRequest, runProcess } from "./start-process.ts";

/** Part of what the commands are known by: another run of these tests may be under way. */
const mark = process.pid;

let directory: string;

beforeAll(async () => {
  directory = await realpath(await mkdtemp(join(tmpdir(), "run-process-")));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

function run(script: string, options: Partial<RunRequest> = {}) {
  return runProcess({
    file: "/bin/sh",
    arguments: ["-c", script],
    directory,
    environment: { PATH: process.env.PATH ?? "/usr/bin:/bin" },
    signal: new AbortController().signal,
    graceMs: 300,
    ...options,
  });
}

/** Living processes whose command line holds a text that only one test uses, without the shells that start them. */
function living(marker: string): string[] {
  return livingCommands(marker).filter((line) => !line.includes("sh -c"));
}

describe("a process that ends by itself", () => {
  test("gives its code and both streams", async () => {
    const result = await run("echo out; echo err >&2; exit 3");
    expect(result).toMatchObject({
      exitCode: 3,
      stdout: "out\n",
      stderr: "err\n",
      timedOut: false,
      aborted: false,
    });
    expect(result.truncated).toBe(false);
  });

  test("names the signal that killed it", async () => {
    expect(await run("kill -KILL $$")).toMatchObject({ signal: "SIGKILL" });
  });

  test("reads what it is given, and nothing when nothing is given", async () => {
    expect((await run("cat", { input: "some text" })).stdout).toBe("some text");
    expect((await run("cat; echo done")).stdout).toBe("done\n");
  });

  test("survives that the process does not read its input", async () => {
    expect(await run("exit 0", { input: "x".repeat(1_000_000) })).toMatchObject({ exitCode: 0 });
  });

  test("is distinguished from one that never started", async () => {
    const result = await run("", { file: join(directory, "absent") });
    expect(result.notStarted).toContain("ENOENT");
    expect((await run("a\0b")).notStarted).toContain("null bytes");
  });

  test("reports back through descriptor 3, apart from its output", async () => {
    expect(await run("echo seen; echo reported >&3", { reportsBack: true })).toMatchObject({
      stdout: "seen\n",
      report: "reported\n",
    });
  });
});

describe("merged output", () => {
  const merged = () => ({ merged: { directory, name: "pipe" } });

  test("keeps the order in which stdout and stderr were written", async () => {
    const script = "for i in 1 2 3 4 5; do echo out$i; echo err$i >&2; done";
    const { stdout } = await run(script, merged());
    expect(stdout).toBe([1, 2, 3, 4, 5].map((i) => `out${i}\nerr${i}\n`).join(""));
  });

  test("can be opened by name, and leaves no name behind", async () => {
    expect((await run("echo one > /dev/stderr; echo two > /dev/stdout", merged())).stdout).toBe("one\ntwo\n");
    expect(await readdir(directory)).toEqual([]);
  });

  test("falls back to two pipes where no name can be made", async () => {
    const result = await run("echo out; echo err >&2", {
      merged: { directory: "/nowhere/at/all", name: "pipe" },
    });
    expect(result).toMatchObject({ stdout: "out\n", stderr: "err\n" });
  });
});

test("a flood is read to its end, and only the first part is kept", async () => {
  const result = await run("yes | head -c 100000000; echo end >&2", { maxBytes: 1_000 });
  expect(result).toMatchObject({ exitCode: 0, truncated: true, stderr: "end\n" });
  expect(result.stdout).toHaveLength(1_000);
});

describe("a process that is ended", () => {
  test("at its time limit takes its children along", async () => {
    const result = await run(`echo begun; sleep 71001.5${mark} & sleep 71001.5${mark}; echo never`, {
      timeLimitMs: 150,
    });
    expect(result).toMatchObject({ timedOut: true, aborted: false, stdout: "begun\n", signal: "SIGTERM" });
    expect(living(`sleep 71001.5${mark}`)).toEqual([]);
  });

  test("by its signal says so", async () => {
    const controller = new AbortController();
    const pending = run(`sleep 71002.5${mark}`, { signal: controller.signal });
    setTimeout(() => controller.abort(), 100);
    expect(await pending).toMatchObject({ aborted: true, timedOut: false });
    expect(living(`sleep 71002.5${mark}`)).toEqual([]);
  });

  test("before it began was never started", async () => {
    const result = await run("echo begun", { signal: AbortSignal.abort() });
    expect(result).toMatchObject({ aborted: true, stdout: "" });
    expect(result.exitCode).toBeUndefined();
  });

  test("is killed when it ignores SIGTERM", async () => {
    const script = "trap '' TERM; echo deaf; while :; do sleep 0.05; done";
    const result = await run(script, { timeLimitMs: 200, graceMs: 100 });
    expect(result).toMatchObject({ timedOut: true, signal: "SIGKILL", stdout: "deaf\n" });
  });

  test("takes along a grandchild that ignores SIGTERM although its parent obeys", async () => {
    const script = `sh -c 'trap "" TERM; while :; do sleep 0.05; done' deaf-grandchild-71003${mark} & sleep 71003.5${mark}`;
    const result = await run(script, { timeLimitMs: 200, graceMs: 100 });
    expect(result).toMatchObject({ timedOut: true, signal: "SIGTERM" });
    expect(living(`deaf-grandchild-71003${mark}`).concat(living(`sleep 71003.5${mark}`))).toEqual([]);
  });

  test("takes along what made a group of its own, as `timeout` does", async () => {
    const result = await run(`timeout 71004.5${mark} sleep 71004.5${mark}`, { timeLimitMs: 200 });
    expect(result.timedOut).toBe(true);
    expect(living(`sleep 71004.5${mark}`)).toEqual([]);
  });

  test("may finish within the grace, and its output is received", async () => {
    const script = "trap 'echo tidied; exit 7' TERM; echo begun; while :; do sleep 0.05; done";
    const result = await run(script, { timeLimitMs: 200, graceMs: 5_000 });
    expect(result).toMatchObject({ timedOut: true, exitCode: 7, stdout: "begun\ntidied\n" });
  });
});

describe("what a process leaves behind", () => {
  test("in its group is ended and counted", async () => {
    const result = await run(`sleep 71005.5${mark} > /dev/null 2>&1 & echo started`, { drainMs: 5_000 });
    expect(result).toMatchObject({ exitCode: 0, stdout: "started\n", leftBehind: 1 });
    expect(living(`sleep 71005.5${mark}`)).toEqual([]);
  });

  test("with the pipes in hand does not make it wait", async () => {
    const result = await run(`sleep 71006.5${mark} & echo started`, { drainMs: 50 });
    expect(result).toMatchObject({ exitCode: 0, stdout: "started\n", leftBehind: 1, timedOut: false });
    expect(living(`sleep 71006.5${mark}`)).toEqual([]);
  });

  test("as a daemon in a session of its own is not waited for and not ended", async () => {
    const file = join(directory, "daemon.pid");
    const script = `setsid sh -c 'echo $$ > ${file}; exec sleep 71007.5${mark}' & while ! test -s ${file}; do sleep 0.01; done`;
    const result = await run(script, { drainMs: 50 });
    const daemon = Number(await readFile(file, "utf8"));
    expect(result).toMatchObject({ exitCode: 0, timedOut: false });
    expect(process.kill(daemon, "SIGKILL")).toBe(true);
    await rm(file);
  });
});

describe.skipIf(process.platform !== "linux")("[TSK-2] what a process put into a session of its own", () => {
  const script = (time: string) =>
    `( (setsid sleep ${time} > /dev/null 2>&1 &) & ); (trap '' TERM; exec setsid sleep ${time}) > /dev/null 2>&1 & echo up; sleep ${time}`;
  const sleeping = (time: string) => living(`sleep ${time}`).filter((line) => line.startsWith("sleep"));

  test("ends with it at its time limit", async () => {
    const time = `71008.5${mark}`;
    expect(await run(script(time), { timeLimitMs: 1_000 })).toMatchObject({ timedOut: true });
    expect(sleeping(time)).toEqual([]);
  });

  test("ends with it when it is aborted", async () => {
    const time = `71009.5${mark}`;
    const controller = new AbortController();
    const ended = run(script(time), { signal: controller.signal });
    await expect.poll(() => sleeping(time), { timeout: 10_000 }).toHaveLength(3);
    controller.abort();
    expect(await ended).toMatchObject({ aborted: true });
    expect(sleeping(time)).toEqual([]);
  });
});

test("in a worker thread of a host a command gives back its descriptors [SDK-3]", async () => {
  const module_ = JSON.stringify(new URL("./start-process.ts", import.meta.url).href);
  const program = `
    import { openSync } from "node:fs";
    import { parentPort } from "node:worker_threads";
    import { runProcess } from ${module_};
    const warnings = [];
    process.on("warning", ({ message }) => warnings.push(message));
    const run = await runProcess({
      file: "/bin/sh", arguments: ["-c", "echo out; echo err >&2"], directory: "/", environment: {},
      merged: { directory: ${JSON.stringify(directory)}, name: "pipe" }, signal: new AbortController().signal,
    });
    for (let at = 0; at < 50; at += 1) openSync("/dev/null");
    setImmediate(() => parentPort.postMessage({ out: run.stdout.includes("out"), err: run.output.includes("err"), warnings }));`;
  const worker = new Worker(program, { eval: true });
  const [message] = await once(worker, "message");
  await worker.terminate();
  expect(message).toEqual({ out: true, err: true, warnings: [] });
});

test("a leader that does not exist has no members", () => {
  expect(findGroupMembers(2 ** 30)).toEqual([]);
});
