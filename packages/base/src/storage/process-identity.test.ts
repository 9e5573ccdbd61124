import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, it } from "vitest";
import { isOnThisMachine, isRunning, thisProcess } from "./process-identity.ts";

const linux = process.platform === "linux";

it("this process runs, on this machine", () => {
  expect(isOnThisMachine(thisProcess())).toBe(true);
  expect(isRunning(thisProcess())).toBe(true);
});

it.runIf(linux)(
  "[TRN-4] a number that another process was given later does not represent the one before",
  () => {
    const own = thisProcess();
    expect(own.started).toMatch(/^[0-9a-f-]{36}\/\d+$/);
    const [boot = "", ticks] = own.started.split("/");
    expect(isRunning({ ...own, started: `${boot}/${Number(ticks) - 1}` })).toBe(false);
    expect(isRunning({ ...own, started: `another-boot/${ticks}` })).toBe(false);
  },
);

it("a process that has ended does not run", async () => {
  const child = spawn(process.execPath, ["-e", ""]);
  await once(child, "exit");
  expect(isRunning({ ...thisProcess(), pid: child.pid ?? 0 })).toBe(false);
});

it.runIf(linux)("a process of another machine or container is not judged by its number", () => {
  expect(isOnThisMachine({ ...thisProcess(), machine: "elsewhere" })).toBe(false);
});
