import { type ChildProcess, spawn } from "node:child_process";
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
import { identifyProcess, thisProcess } from "@retinue/base/storage/process-identity.ts";
import { describe, expect, onTestFinished, test } from "vitest";
import { type CommandRecord, formatCommandRecord, parseCommandRecord } from "./command-record.ts";
import { createCommandRecords, recoverCommands } from "./recover-commands.ts";
import { createShells } from "./shells.ts";

const gone = { ...thisProcess(), started: "before" };

function createFolder(): string {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "commands-")));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  return join(root, "commands");
}

function startSleep(): ChildProcess & { readonly pid: number } {
  const child = spawn("sleep", ["600"], { detached: true, stdio: "ignore" });
  onTestFinished(() => void child.kill("SIGKILL"));
  if (child.pid === undefined) throw new Error("sleep did not start");
  return child as ChildProcess & { readonly pid: number };
}

function leave(folder: string, changes: Partial<CommandRecord>): CommandRecord {
  const record: CommandRecord = {
    id: "f1",
    kind: "foreground",
    agentId: "main",
    command: "sleep 600",
    description: "waits",
    startedAt: 1_000,
    owner: gone,
    leader: { ...gone, pid: 2 ** 30 },
    ...changes,
  };
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, `${record.id}.json`), formatCommandRecord(record));
  return record;
}

const isAlive = ({ exitCode, signalCode }: ChildProcess) => exitCode === null && signalCode === null;

describe.skipIf(process.platform !== "linux")("[TRN-4] commands that a dead process has left", () => {
  test("are ended, and their record goes; a dry run only shows", async () => {
    const folder = createFolder();
    const child = startSleep();
    leave(folder, { leader: identifyProcess(child.pid) ?? gone });
    expect((await recoverCommands({ folder, dryRun: true })).ended).toHaveLength(1);
    expect([isAlive(child), readdirSync(folder)]).toEqual([true, ["f1.json"]]);
    expect((await recoverCommands({ folder })).ended).toMatchObject([{ leader: { pid: child.pid } }]);
    await expect.poll(() => isAlive(child)).toBe(false);
    expect(readdirSync(folder)).toEqual([]);
  });

  test.each<[string, { readonly owner: typeof gone; readonly isOther?: boolean }]>([
    ["the process that started them runs", { owner: thisProcess() }],
    ["their number was given to somebody else", { owner: gone, isOther: true }],
  ])("are left alone when %s", async (_what, { owner, isOther = false }) => {
    const folder = createFolder();
    const child = startSleep();
    const leader = identifyProcess(child.pid) ?? gone;
    const [boot] = leader.started.split("/");
    leave(folder, { owner, leader: isOther ? { ...leader, started: `${boot}/1` } : leader });
    expect((await recoverCommands({ folder })).ended).toEqual([]);
    expect(isAlive(child)).toBe(true);
  });

  test("in the background are known to the next process as ended, with their output [TSK-1]", async () => {
    const folder = createFolder();
    const outputFile = join(folder, "../b1.output");
    leave(folder, { id: "b1", kind: "background", outputFile });
    leave(folder, {
      id: "b2",
      kind: "background",
      startedAt: 2_000,
      end: { state: "failed", exitCode: 3, at: 5_000 },
    });
    // Cut off in the middle of being written: it never ran.
    writeFileSync(join(folder, "b3.json"), '{"version":1,"id":"b');
    writeFileSync(outputFile, `begin${"x".repeat(100_000)}end`);
    const { background } = await recoverCommands({ folder });
    await using shells = createShells({ newId: () => "1", now: () => 0, earlier: background });
    expect(shells.list()).toMatchObject([
      { id: "b1", state: "stopped", note: expect.stringContaining("ended together with the agent") },
      { id: "b2", state: "failed", exitCode: 3, endedAt: 3_000 },
    ]);
    expect(shells.find("b3")).toBeUndefined();
    const output = await shells.output("b1");
    expect(output).toMatch(/^beginx+\n\n\[… 70008 bytes left out; all of it is in .*\n\nx+end$/);
    expect(await shells.output("b2")).toBe("");
    await shells.stop("b1");
    expect(parseCommandRecord(readFileSync(join(folder, "b1.json"), "utf8"))?.end?.isCutOff).toBe(true);
  });
});

test.skipIf(process.platform === "win32")(
  "a command is written down while it runs, and one in the background afterwards",
  async () => {
    const folder = createFolder();
    const directory = join(folder, "..");
    const records = createCommandRecords(folder, () => 1_000);
    const foreground = records.begin(
      { kind: "foreground", agentId: "main", command: "x", description: "" },
      process.pid,
    );
    expect(readdirSync(folder)).toHaveLength(1);
    foreground.end({ state: "completed" });
    expect(readdirSync(folder)).toEqual([]);
    const shells = createShells({ newId: () => "0a", now: () => 0, graceMs: 200, records });
    await shells.start({
      command: "touch begun; sleep 600",
      owner: "a1",
      shell: { file: "/bin/sh", options: [] },
      directory,
      environment: { PATH: process.env.PATH ?? "/usr/bin:/bin" },
      outputDirectory: directory,
      outputLimit: 4_000,
      timeLimitMs: 60_000,
    });
    const read = () => parseCommandRecord(readFileSync(join(folder, "b0a.json"), "utf8"));
    expect(read()).toMatchObject({ agentId: "a1", owner: thisProcess(), command: "touch begun; sleep 600" });
    expect(read()?.end).toBeUndefined();
    await expect.poll(() => existsSync(join(directory, "begun"))).toBe(true);
    await shells.stopOwned("a1");
    expect(read()?.end).toMatchObject({ state: "stopped", isCutOff: true });
  },
);
