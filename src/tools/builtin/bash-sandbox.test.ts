import { mkdir, mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createSessionFiles } from "../file-ledger.ts";
import type { Sandbox, SandboxWrap } from "../sandbox.ts";
import { createShells, type Shells } from "../shells.ts";
import { createBashTool } from "./bash.ts";
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

async function run(sandbox: Sandbox, input: Readonly<Record<string, unknown>>) {
  const bash = createBashTool({ shells, directories: createShellDirectories(), now: () => 0, sandbox });
  return bash.call(input, {
    signal: new AbortController().signal,
    directory: join(root, "project"),
    workingDirectories: [join(root, "project")],
    agent: { id: "main", name: "main" },
    callId: "call",
    files: createSessionFiles().forAgent(),
    host: {},
    environment: { PATH: process.env["PATH"] },
    outputDirectory: join(root, "output"),
    progress: () => undefined,
  });
}

const always = (wrap: SandboxWrap): Sandbox => ({ wrap: async () => wrap });

describe("Bash with a sandbox", () => {
  it.each([false, true])("does not run what the sandbox refuses (in the background: %s)", async (beside) => {
    const sandbox = always({ type: "refused", because: "There is no sandbox." });
    const outcome = await run(sandbox, { command: "touch ran", run_in_background: beside });
    expect(outcome).toEqual({ content: "There is no sandbox.", isError: true });
    expect(shells.list()).toEqual([]);
  });

  it("starts what the sandbox says, tells it the command as written, and tells it when all has ended", async () => {
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
    const outcome = await run(sandbox, { command: "echo $INSIDE; cd /" });
    expect(String(outcome.content)).toContain("yes\nThe command ended in /, outside");
    expect(seen).toEqual(["echo $INSIDE; cd /", [join(root, "project")]]);
    expect(endings).toBe(1);
    await run(sandbox, { command: "echo $INSIDE", run_in_background: true });
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
