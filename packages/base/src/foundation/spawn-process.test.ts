import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { livingCommands } from "@retinue/testing/living-commands.ts";
import { describe, expect, onTestFinished, test } from "vitest";
import { createGroupWatchdog } from "./spawn-process.ts";
import { startProcess } from "./start-process.ts";

/** Part of what the commands are known by: another run of these tests may be under way. */
const mark = process.pid;

const isWindows = process.platform === "win32";

function createFolder(): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "watch-groups-")));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Living processes whose command line holds a text that only one test uses, without the shells that start them. */
function living(marker: string): string[] {
  return livingCommands(marker).filter((line) => !line.includes("sh -c"));
}

/** A process of its own that starts a command, says so, and waits; `onStart` is what it does before the command runs. */
async function startHolder(
  command: string,
  { directory = "/", onStart = "undefined", mark = "undefined", then = "" } = {},
) {
  const module_ = JSON.stringify(new URL("./start-process.ts", import.meta.url).href);
  const watchdog = JSON.stringify(new URL("./spawn-process.ts", import.meta.url).href);
  const program = `
    const { startProcess } = await import(${module_});
    const { groupWatchdog } = await import(${watchdog});
    const running = await startProcess({
      file: "bash",
      arguments: ["-c", ${JSON.stringify(command)}],
      directory: ${JSON.stringify(directory)},
      environment: { PATH: process.env.PATH },
      signal: new AbortController().signal,
      onOutput: (chunk) => process.stdout.write(chunk),
      onStart: ${onStart},
      mark: ${mark},
    });
    await running.ended;
    ${then}`;
  const holder = spawn(process.execPath, ["--input-type=module", "-e", program], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(() => void holder.kill("SIGKILL"));
  return holder;
}

describe.skipIf(isWindows)("[TRN-4] a command whose process is killed", () => {
  test.each([
    [
      "ends immediately with everything it started",
      `sleep 71201.5${mark} & echo up; sleep 71201.5${mark}`,
      `71201.5${mark}`,
    ],
    [
      "is killed when it ignores SIGTERM",
      `trap '' TERM; echo up; while :; do sleep 71202.5${mark}; done`,
      `71202.5${mark}`,
    ],
    [
      "takes along what left its group",
      `set -m; (trap '' TERM; sleep 71203.5${mark}) & echo up; wait`,
      `71203.5${mark}`,
    ],
  ])("%s", async (_what, command, marker) => {
    const holder = await startHolder(command);
    await once(holder.stdout, "data");
    expect(living(`sleep ${marker}`)).not.toEqual([]);
    holder.kill("SIGKILL");
    await expect.poll(() => living(`sleep ${marker}`), { timeout: 10_000 }).toEqual([]);
  });

  test.skipIf(process.platform !== "linux").each([
    ["while it runs", 5, `sleep 71207.55${mark}`, ""],
    // The watchdog has no group to watch any more, and stays for what is marked.
    [
      "after it has ended",
      6,
      "true",
      "groupWatchdog.rest(); setInterval(() => console.log('waited'), 1000);",
    ],
  ])(
    "takes along what made a session of its own, %s",
    async (_what, digit, last, then) => {
      const time = `71207.${digit}${mark}`;
      const command = `(setsid sleep ${time} > /dev/null 2>&1 &); (setsid sh -c "trap '' TERM; while :; do sleep ${time}; done" > /dev/null 2>&1 &); echo up; ${last}`;
      const holder = await startHolder(command, { mark: "groupWatchdog.markRoot() + 'a'", then });
      await expect.poll(() => living(`sleep ${time}`), { timeout: 10_000 }).toHaveLength(2);
      // Longer than a watchdog stays that has nothing to watch.
      if (then !== "") await once(holder.stdout, "data");
      holder.kill("SIGKILL");
      await expect.poll(() => living(`sleep ${time}`), { timeout: 10_000 }).toEqual([]);
    },
    20_000,
  );

  test("before it was written down never runs", async () => {
    const directory = createFolder();
    const onStart = "() => process.kill(process.pid, 'SIGKILL')";
    const holder = await startHolder(`touch ran; sleep 71204.5${mark}`, { directory, onStart });
    expect(await once(holder, "exit")).toEqual([null, "SIGKILL"]);
    await expect.poll(() => living(`71204.5${mark}`), { timeout: 10_000 }).toEqual([]);
    expect(existsSync(join(directory, "ran"))).toBe(false);
  });
});

test.skipIf(isWindows)("a command that cannot be written down is not run, and says why", async () => {
  const directory = createFolder();
  const running = await startProcess({
    file: "/bin/sh",
    arguments: ["-c", "touch ran"],
    directory,
    environment: {},
    signal: new AbortController().signal,
    onOutput: () => undefined,
    onStart() {
      throw new Error("the disk is full");
    },
  });
  expect(await running.ended).toMatchObject({ notStarted: "the disk is full" });
  expect(existsSync(join(directory, "ran"))).toBe(false);
});

describe.skipIf(process.platform !== "linux")("the watchdog", () => {
  const dogs = (parent = process.pid): readonly string[] =>
    readdirSync("/proc").filter(
      (pid) =>
        /^\d+$/.test(pid) && read(pid, "cmdline").includes("retinue-watchdog") && parentOf(pid) === parent,
    );
  const parentOf = (pid: string) => {
    const status = read(pid, "stat");
    return Number(status.slice(status.lastIndexOf(")") + 2).split(" ")[1]);
  };
  const read = (pid: string, file: string) => {
    try {
      return readFileSync(`/proc/${pid}/${file}`, "latin1");
    } catch {
      return "";
    }
  };

  test("leaves groups alone that were released, and goes when it has nothing to watch", async () => {
    // This process may have others, of tests before.
    const others = new Set(dogs());
    const own = () => dogs().filter((dog) => !others.has(dog));
    const child = spawn("sleep", [`71205.5${mark}`], { detached: true, stdio: "ignore" });
    onTestFinished(() => void child.kill("SIGKILL"));
    const watchdog = createGroupWatchdog();
    const group = watchdog.watch(child.pid ?? 0);
    expect(own()).toHaveLength(1);
    watchdog.rest();
    expect(own()).toHaveLength(1);
    group.release();
    watchdog.rest();
    await expect.poll(own).toEqual([]);
    expect(living(`sleep 71205.5${mark}`)).toHaveLength(1);
  });

  test("does not touch a process that was given the number of one that ended", async () => {
    const child = spawn("sleep", [`71206.5${mark}`], { detached: true, stdio: "ignore" });
    onTestFinished(() => void child.kill("SIGKILL"));
    const module_ = JSON.stringify(new URL("./spawn-process.ts", import.meta.url).href);
    const program = `
      const { createGroupWatchdog } = await import(${module_});
      createGroupWatchdog(() => "1").watch(${child.pid});
      console.log("watching");
      setInterval(() => undefined, 1000);`;
    const holder = spawn(process.execPath, ["--input-type=module", "-e", program], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    onTestFinished(() => void holder.kill("SIGKILL"));
    await once(holder.stdout, "data");
    const [dog] = dogs(holder.pid);
    holder.kill("SIGKILL");
    await expect.poll(() => existsSync(`/proc/${dog}`), { timeout: 10_000 }).toBe(false);
    expect(living(`sleep 71206.5${mark}`)).toHaveLength(1);
  });
});
