import { existsSync } from "node:fs";
import { mkdir, mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createShells, type Shells } from "../command/shells.ts";
import { createSessionFiles } from "../file-ledger.ts";
import type { Sandbox, SandboxOptions, SandboxWrap } from "../sandbox/sandbox.ts";
import { createWall } from "../sandbox/wall.ts";
import type { ToolContext } from "../tool.ts";
import { createBashTool } from "./create-bash-tool.ts";
import type { Sandboxes } from "./enter-sandbox.ts";
import { createShellDirectories } from "./shell-directories.ts";

let root: string;
let shells: Shells;
beforeEach(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), "bash-sandbox-")));
  await mkdir(join(root, "project"));
  shells = createShells({ newId: () => "00000001", now: () => 0, graceMs: 300 });
});
afterEach(async () => {
  await shells[Symbol.asyncDispose]();
  await rm(root, { recursive: true, force: true });
});

async function run(
  sandboxes: Sandboxes,
  input: Readonly<Record<string, unknown>>,
  allowedBy?: ToolContext["allowedBy"],
  more: Partial<ToolContext> = {},
) {
  const bash = createBashTool({ shells, directories: createShellDirectories(), now: () => 0, ...sandboxes });
  return bash.call(input, {
    allowedBy,
    signal: new AbortController().signal,
    directory: join(root, "project"),
    workingDirectories: [join(root, "project")],
    sessionId: "s1",
    agent: { id: "main", name: "main" },
    agentPath: [{ id: "main", name: "main" }],
    callId: "call",
    files: createSessionFiles().forAgent(),
    host: {},
    environment: { PATH: process.env["PATH"] },
    outputDirectory: join(root, "output"),
    progress: () => undefined,
    ...more,
  });
}

const always = (wrap: SandboxWrap): Sandboxes => ({ sandbox: { wrap: async () => wrap } });

describe("Bash with a sandbox", () => {
  it.each([false, true])("does not run what the sandbox refuses (in the background: %s)", async (beside) => {
    const sandbox = always({ type: "refused", reason: "There is no sandbox." });
    const outcome = await run(sandbox, { command: "touch ran", run_in_background: beside });
    expect(outcome).toEqual({ content: "There is no sandbox.", isError: true });
    expect(shells.list()).toEqual([]);
  });

  it("starts what the sandbox says, shows it the command as written, and shows it when all has ended", async () => {
    const seen: unknown[] = [];
    let endings = 0;
    const sandbox: Sandbox = {
      wrap: async (invocation, { command, workingDirectories }) => {
        seen.push(command, workingDirectories);
        return {
          type: "wrapped",
          invocation: {
            file: "/usr/bin/env",
            arguments: ["INSIDE=yes", invocation.file, ...invocation.arguments],
          },
          ended: () => {
            endings += 1;
          },
        };
      },
    };
    const outcome = await run({ sandbox }, { command: "echo $INSIDE; cd /" });
    expect(String(outcome.content)).toContain("yes\nThe command ended in /, outside");
    expect(seen).toEqual(["echo $INSIDE; cd /", [join(root, "project")]]);
    expect(endings).toBe(1);
    await run({ sandbox }, { command: "echo $INSIDE", run_in_background: true });
    await shells.ended("b00000001");
    expect(await shells.output("b00000001")).toBe("yes\n");
    expect(endings).toBe(2);
  });

  it("says so when a command ran without protection", async () => {
    const outcome = await run(always({ type: "unprotected", note: "It ran without a sandbox." }), {
      command: "echo x",
    });
    expect(outcome.content).toBe("x\nIt ran without a sandbox.");
  });
});

const wall = createWall();
const start = await wall.start();
const skipped = start.type === "ready" ? "" : ` (skipped: ${start.why})`;
const made = () => existsSync(join(root, "project", "made"));

describe.skipIf(start.type !== "ready")(`Bash where a command may run${skipped}`, () => {
  it.each([
    false,
    true,
  ])("because it only reads: nothing can be written (in the background: %s) [PRM-9]", async (beside) => {
    const input = { command: "echo read; touch made", run_in_background: beside };
    const outcome = await run({ wall }, input, "read-only");
    await shells.ended("b00000001");
    const text = beside ? await shells.output("b00000001") : String(outcome.content);
    expect(text).toMatch(/^read\ntouch: .*Read-only file system/);
    expect(made()).toBe(false);
  });

  it.each([
    "rule",
    "mode",
    "person",
    "program",
    "hook",
    "sandbox",
    undefined,
  ] as const)("because of %s: it runs as it is [PRM-9]", async (allowedBy) => {
    await run({ wall }, { command: "touch made" }, allowedBy);
    expect(made()).toBe(true);
  });

  it("because it only reads, and settings take it out of the sandbox: nothing can be written [PRM-9]", async () => {
    const sandboxes = { ...always({ type: "unprotected" }), wall };
    await run(sandboxes, { command: "touch made" }, "read-only");
    expect(made()).toBe(false);
  });

  it("and the folder it ends in holds for the next one [PRM-9]", async () => {
    const outcome = await run({ wall }, { command: "cd /" }, "read-only");
    expect(outcome.content).toContain("The command ended in /, outside");
  });

  it("is ended at its time limit with all that it started [PRM-9]", async () => {
    const input = { command: "echo begun; sleep 60 & sleep 60", timeout: 300 };
    const { content } = await run({ wall }, input, "read-only");
    expect(content).toMatch(/^begun\n[\s\S]*300/);
  });
});

describe("where there is no such isolation", () => {
  it("a command does not run where the decision counted on it, or where it cannot be set up [PRM-9]", async () => {
    const missing = createWall({ platform: "linux", helper: () => undefined, find: async () => undefined });
    const refused = await run({ wall: missing }, { command: "touch made" }, "read-only", {
      countsOnWall: true,
    });
    expect(refused).toMatchObject({ isError: true, content: expect.stringContaining("did not run") });
    const wrap = () => Promise.reject(new Error("too many files"));
    const failing = { start: async () => ({ type: "ready", kind: "landlock", wrap }) as const };
    const failed = await run({ wall: failing }, { command: "touch made" }, "read-only");
    expect(failed).toMatchObject({ isError: true, content: expect.stringContaining("too many files") });
    const said = { file: "/bin/sh", arguments: ["-c", "echo 'retinue-wall: no namespaces' >&2; exit 125"] };
    const broken = {
      start: async () => ({ type: "ready", kind: "landlock", wrap: async () => said }) as const,
    };
    const ended = await run({ wall: broken }, { command: "touch made" }, "read-only");
    expect(ended).toMatchObject({
      isError: true,
      content: expect.stringContaining("The command did not run."),
    });
    expect(made()).toBe(false);
  });

  it("a command that only reads runs without it, and the sandbox of settings is reported what it is [PRM-9]", async () => {
    const missing = createWall({ platform: "linux", helper: () => undefined, find: async () => undefined });
    const { content } = await run({ wall: missing }, { command: "echo read" }, "read-only");
    expect(content).toBe("read");
    const reported: (boolean | undefined)[] = [];
    const wrap = async (_: unknown, { readOnly }: SandboxOptions): Promise<SandboxWrap> => {
      reported.push(readOnly);
      return { type: "unprotected" };
    };
    await run({ sandbox: { wrap } }, { command: "echo read" }, "read-only");
    await run({ sandbox: { wrap } }, { command: "echo read" }, "rule");
    expect(reported).toEqual([true, false]);
  });
});
