import { spawn } from "node:child_process";
import { once } from "node:events";
import { livingCommands } from "@retinue/testing/living-commands.ts";
import { describe, expect, onTestFinished, test } from "vitest";
import { followProcessTree } from "./process-tree.ts";
import { treeVariable } from "./spawn-process.ts";

/** Part of what the commands are known by: another run of these tests may be under way. */
const mark = `${process.pid}`;

const living = (time: string) => livingCommands(`sleep ${time}`).filter((line) => line.startsWith("sleep "));
const timeOf = (number: number): string => `${73200 + number}.5${mark}`;

/** A leader that runs a script, once its first line is out, which may be a number. */
async function lead(script: string) {
  const leader = spawn("bash", ["-c", script], {
    detached: true,
    env: { PATH: process.env["PATH"], [treeVariable]: mark },
    stdio: ["ignore", "pipe", "ignore"],
  });
  onTestFinished(() => void leader.kill("SIGKILL"));
  const [line]: unknown[] = await once(leader.stdout, "data");
  return { pid: leader.pid ?? 0, process: leader, said: Number(String(line)) };
}

/** Before a command that gets none of the variables of the leader. */
const bare = `env -i PATH="$PATH"`;

describe.skipIf(process.platform !== "linux")("[FRN-1] everything a leader has started ends with it", () => {
  test.each([
    ["in a session of its own", (time: string) => `setsid sleep ${time} & `],
    ["without the leader's variables", (time: string) => `${bare} setsid sleep ${time} & `],
    ["as an orphan", (time: string) => `(setsid sleep ${time} &) ; `],
    ["that ignores SIGTERM", (time: string) => `(trap '' TERM; exec setsid sleep ${time}) & `],
  ])("what it has started %s", async (what, start) => {
    const time = timeOf(10 + what.length);
    const leader = await lead(`${start(time)} echo up; sleep ${time}`);
    await expect.poll(() => living(time), { timeout: 10_000 }).toHaveLength(2);
    await followProcessTree(leader.pid, mark).end({ graceMs: 200 });
    expect(living(time)).toEqual([]);
  });

  test("what was seen, and has neither its parent nor its variables any more", async () => {
    const time = timeOf(1);
    // As a shell with a terminal of its own, which `timeout` leaves for a group of its own.
    const shell = `set -m; sleep ${time} & wait`;
    const leader = await lead(`${bare} setsid bash -c '${shell}' & echo $!; wait; sleep ${time}`);
    const tree = followProcessTree(leader.pid, mark);
    await expect.poll(() => living(time), { timeout: 10_000 }).toHaveLength(1);
    tree.look();
    process.kill(leader.said, "SIGKILL");
    await expect.poll(() => living(time), { timeout: 10_000 }).toHaveLength(2);
    await tree.end({ graceMs: 200 });
    expect(living(time)).toEqual([]);
  });

  test("also when the leader itself has ended before", async () => {
    const time = timeOf(2);
    const leader = await lead(`setsid sleep ${time} & echo up`);
    const tree = followProcessTree(leader.pid, mark);
    if (leader.process.exitCode === null) await once(leader.process, "exit");
    await expect.poll(() => living(time), { timeout: 10_000 }).toHaveLength(1);
    await tree.end({ graceMs: 200 });
    expect(living(time)).toEqual([]);
  });

  test("and nothing else", async () => {
    const time = timeOf(3);
    const other = spawn("sleep", [time], {
      detached: true,
      env: { ...process.env, [treeVariable]: `${mark}0` },
      stdio: "ignore",
    });
    onTestFinished(() => void other.kill("SIGKILL"));
    const leader = await lead(`echo up; sleep ${time}`);
    await expect.poll(() => living(time), { timeout: 10_000 }).toHaveLength(2);
    await followProcessTree(leader.pid, mark).end({ graceMs: 200 });
    expect(living(time)).toHaveLength(1);
  });
});
