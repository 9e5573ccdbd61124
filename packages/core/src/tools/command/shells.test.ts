import { mkdtemp, readFile, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { livingCommands } from "@retinue/testing/living-commands.ts";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { TaskView } from "../task-source.ts";
import { createShells, type ShellRequest, type Shells } from "./shells.ts";

/** Part of what the commands are known by: another run of these tests may be under way. */
const mark = process.pid;

let directory: string;
let shells: Shells;
let endings: TaskView[];
let ids: string[];

beforeEach(async () => {
  directory = await realpath(await mkdtemp(join(tmpdir(), "shells-")));
  endings = [];
  ids = ["0000000a", "0000000a", "0000000b", "0000000c", "0000000d"];
  shells = createShells({
    newId: () => ids.shift() ?? "ffffffff",
    now: () => 1_000,
    maxRunning: 2,
    maxEnded: 2,
    graceMs: 200,
    onEnded: (shell) => void endings.push(shell),
  });
});
afterEach(async () => {
  await shells[Symbol.asyncDispose]();
  await rm(directory, { recursive: true, force: true });
});

async function start(command: string, changes: Partial<ShellRequest> = {}): Promise<string> {
  const started = await shells.start(request(command, changes));
  if (started.type === "refused") throw new Error(started.reason);
  return started.shell.id;
}

function request(command: string, changes: Partial<ShellRequest> = {}): ShellRequest {
  return {
    command,
    owner: "main",
    shell: { file: "/bin/sh", options: [] },
    directory,
    environment: { PATH: process.env.PATH ?? "/usr/bin:/bin" },
    outputDirectory: directory,
    outputLimit: 4_000,
    timeLimitMs: 60_000,
    ...changes,
  };
}

/** Resolves when the shell's output holds a text; the test's own limit ends a wait that never ends. */
async function untilWritten(id: string, text: string): Promise<void> {
  while (!(await shells.output(id)).includes(text)) await new Promise((resolve) => setTimeout(resolve, 5));
}

describe("a background shell", () => {
  test("that ends by itself has its code, its output and its file", async () => {
    const id = await start("echo out; echo err >&2; exit 3", { description: "Try it" });
    expect(id).toBe("b0000000a");
    await shells.ended(id);
    expect(shells.find(id)).toMatchObject({
      state: "failed",
      exitCode: 3,
      description: "Try it",
      kind: "shell",
    });
    expect(await shells.output(id)).toBe("out\nerr\n");
    expect(await readFile(join(directory, `${id}.output`), "utf8")).toBe("out\nerr\n");
    expect(endings.map((ending) => ending.id)).toEqual([id]);
  });

  test("shows its output while it runs, an unfinished line too", async () => {
    const id = await start(`echo line; printf begun; sleep 73001.5${mark}`);
    await untilWritten(id, "begun");
    expect(shells.find(id)?.state).toBe("running");
    expect(await shells.output(id)).toBe("line\nbegun");
    expect(await readFile(join(directory, `${id}.output`), "utf8")).toBe("line\n");
  });

  test("is stopped with all its processes, and what it wrote stays [TSK-2]", async () => {
    const id = await start(`echo begun; trap '' TERM; sleep 73002.5${mark} & sleep 73002.5${mark}`);
    await untilWritten(id, "begun");
    await shells.stop(id);
    expect(shells.find(id)).toMatchObject({ state: "stopped" });
    expect(await shells.output(id)).toBe("begun\n");
    expect(livingCommands(`sleep 73002.5${mark}`)).toEqual([]);
    await shells.stop(id);
    expect(endings).toHaveLength(1);
  });

  test("ends at its time limit", async () => {
    const id = await start(`sleep 73003.5${mark}`, { timeLimitMs: 50 });
    await shells.ended(id);
    expect(shells.find(id)).toMatchObject({ state: "timed-out" });
    expect(livingCommands(`sleep 73003.5${mark}`)).toEqual([]);
  });

  test("that cannot be started says why", async () => {
    const id = await start("true", { directory: join(directory, "absent") });
    await shells.ended(id);
    expect(shells.find(id)).toMatchObject({ state: "failed" });
    expect(shells.find(id)?.note).toContain("does not exist");
  });

  test("of long output shows its beginning and end", async () => {
    const id = await start("seq 1 20000");
    await shells.ended(id);
    const text = await shells.output(id);
    expect(text).toMatch(/^1\n2\n[\s\S]*all of it is in [\s\S]*20000\n$/);
    expect(text.length).toBeLessThan(4_300);
  });
});

describe("the shells of a session", () => {
  test("never share an id", async () => {
    expect([await start("true"), await start("true")]).toEqual(["b0000000a", "b0000000b"]);
  });

  test("are limited while they run, also when started together", async () => {
    const results = await Promise.all(
      ["1", "2", "3"].map((part) => shells.start(request(`sleep 73004.${mark}${part}`))),
    );
    expect(results.map(({ type }) => type)).toEqual(["started", "started", "refused"]);
    await shells.stop("b0000000a");
    expect((await shells.start(request("true"))).type).toBe("started");
  });

  test("are forgotten when many have ended, the oldest first", async () => {
    for (let count = 0; count < 3; count += 1) await shells.ended(await start("true"));
    expect(shells.list().map(({ id }) => id)).toEqual(["b0000000b", "b0000000c"]);
  });

  test("of one agent are stopped together", async () => {
    const own = await start(`sleep 73005.5${mark}`, { owner: "child" });
    const other = await start("sleep 73005.6");
    await shells.stopOwned("child");
    expect([shells.find(own)?.state, shells.find(other)?.state]).toEqual(["stopped", "running"]);
  });

  test.skipIf(process.platform !== "linux")(
    "leave nothing in sessions of their own behind their agent, and other agents keep theirs [TSK-2]",
    async () => {
      const leave = async (owner: string, time: string): Promise<void> => {
        await shells.ended(await start(`(setsid sleep ${time} > /dev/null 2>&1 &)`, { owner }));
        await expect.poll(() => livingCommands(`sleep ${time}`), { timeout: 10_000 }).not.toEqual([]);
      };
      const times = ["child", "child/2"].map((_owner, at) => `73007.${mark}${at}`);
      await leave("child", times[0] ?? "");
      await leave("child/2", times[1] ?? "");
      await shells.stopOwned("child");
      expect(times.map((time) => livingCommands(`sleep ${time}`).length)).toEqual([0, 1]);
      await shells[Symbol.asyncDispose]();
      expect(livingCommands(`sleep 73007.${mark}`)).toEqual([]);
    },
  );

  test("all end with the session, those that just begin too, and no other starts", async () => {
    await start(`sleep 73006.${mark}5`);
    const beginning = shells.start(request(`sleep 73006.${mark}6`));
    await shells[Symbol.asyncDispose]();
    await beginning;
    expect(shells.list().map(({ state }) => state)).toEqual(["stopped", "stopped"]);
    expect(livingCommands(`sleep 73006.${mark}`)).toEqual([]);
    expect(await shells.start(request("true"))).toMatchObject({ type: "refused" });
  });
});
