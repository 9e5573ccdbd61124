import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runProcess } from "@retinue/base/foundation/start-process.ts";
import { parseRule } from "@retinue/gate/rules/parse-rule.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createSandbox, type Sandbox } from "./sandbox.ts";
import { createSandboxRuntime, type SandboxManager } from "./sandbox-runtime.ts";
import { readSandboxSettings } from "./sandbox-settings.ts";

const signal = new AbortController().signal;
const invocation = { file: "/bin/bash", arguments: ["-c", "true"] };
const sandboxWith = (written: Record<string, unknown>, load: () => Promise<unknown>) =>
  createSandbox({
    runtime: createSandboxRuntime({ load }),
    settings: readSandboxSettings(written),
    home: "/home/ada",
    deny: [],
  });
const missing = () => Promise.reject(new Error("ERR_MODULE_NOT_FOUND"));
const wrapOptions = { signal, command: "true", workingDirectories: ["/projects/app"] };

describe("where there is no sandbox", () => {
  it("does not exist when settings do not ask for it", () => {
    expect(sandboxWith({}, missing)).toBeUndefined();
  });

  it("refuses the command and says what to do", async () => {
    const wrap = await sandboxWith({ enabled: true }, missing)?.wrap(invocation, wrapOptions);
    expect(wrap).toMatchObject({ type: "refused" });
    expect(wrap?.type === "refused" && wrap.reason).toContain("npm install @anthropic-ai/sandbox-runtime");
  });

  it("runs it with a note only when a setting explicitly allows it", async () => {
    const sandbox = sandboxWith({ enabled: true, failIfUnavailable: false }, missing);
    expect(await sandbox?.wrap(invocation, wrapOptions)).toEqual({
      type: "unprotected",
      note: "The command ran without a sandbox: the package @anthropic-ai/sandbox-runtime is not installed.",
    });
  });

  it("refuses where the helper programs are missing, and tries again at the next command", async () => {
    let starts = 0;
    const manager: Partial<SandboxManager> = {
      isSupportedPlatform: () => true,
      getConfig: () => undefined,
      initialize: async () => {
        starts += 1;
        throw new Error("bubblewrap (bwrap) not found");
      },
      reset: async () => undefined,
    };
    const sandbox = sandboxWith({ enabled: true }, async () => ({ SandboxManager: manager }));
    for (const expected of [1, 2]) {
      const wrap = await sandbox?.wrap(invocation, wrapOptions);
      expect(wrap?.type === "refused" && wrap.reason).toContain("bwrap) not found");
      expect(starts).toBe(expected);
    }
  });

  it("refuses where the system forbids it, although all programs are there", async () => {
    const manager: Partial<SandboxManager> = {
      isSupportedPlatform: () => true,
      getConfig: () => undefined,
      initialize: async () => undefined,
      wrapWithSandboxArgv: async () => ({
        argv: ["/bin/sh", "-c", "echo 'bwrap: No permissions to create new namespace' >&2; exit 1"],
      }),
      cleanupAfterCommand: () => undefined,
      reset: async () => undefined,
    };
    const wrap = await sandboxWith({ enabled: true }, async () => ({ SandboxManager: manager }))?.wrap(
      invocation,
      wrapOptions,
    );
    expect(wrap?.type === "refused" && wrap.reason).toContain("No permissions to create new namespace");
  });

  it("refuses on a system that has none, and beside another user of it in the same process", async () => {
    const foreign = { isSupportedPlatform: () => false };
    const taken = { isSupportedPlatform: () => true, getConfig: () => ({}) };
    for (const [manager, words] of [
      [foreign, "there is no sandbox for"],
      [taken, "already uses the sandbox"],
    ] as const) {
      const sandbox = sandboxWith({ enabled: true }, async () => ({ SandboxManager: manager }));
      const wrap = await sandbox?.wrap(invocation, wrapOptions);
      expect(wrap?.type === "refused" && wrap.reason).toContain(words);
    }
  });

  it("is had by one runtime after the other, though the package keeps its configuration", async () => {
    let configuration: object | undefined;
    const manager: Partial<SandboxManager> = {
      isSupportedPlatform: () => true,
      getConfig: () => configuration as never,
      initialize: async (given) => {
        configuration = given;
      },
      wrapWithSandboxArgv: async () => ({ argv: ["true"] }),
      cleanupAfterCommand: () => undefined,
      reset: async () => undefined,
    };
    const load = async () => ({ SandboxManager: manager });
    const first = createSandboxRuntime({ load });
    const second = createSandboxRuntime({ load });
    const settings = readSandboxSettings({ enabled: true });
    expect(await first.start(settings)).toMatchObject({ type: "ready" });
    expect(await second.start(settings)).toMatchObject({ type: "unavailable" });
    await first[Symbol.asyncDispose]();
    expect(await second.start(settings)).toMatchObject({ type: "ready" });
    await second[Symbol.asyncDispose]();
  });
});

const runtime = createSandboxRuntime();
const reason = await unavailableHere();

async function unavailableHere(): Promise<string | undefined> {
  if (process.platform !== "linux") return "tried on Linux only";
  const start = await runtime.start(readSandboxSettings({ enabled: true }));
  return start.type === "ready" ? undefined : start.why;
}

describe.skipIf(reason !== undefined)(
  `a real sandbox${reason === undefined ? "" : ` (skipped: ${reason})`}`,
  () => {
    let root: string;
    let work: string;
    let sandbox: Sandbox | undefined;
    beforeAll(async () => {
      root = await realpath(await mkdtemp(join(tmpdir(), "sandbox-")));
      work = join(root, "work");
      await mkdir(work);
      await writeFile(join(root, "secret"), "hush");
      const reading = parseRule(`Read(/${join(root, "secret")})`, { list: "deny" });
      if (reading.type === "invalid") throw new Error(reading.reason);
      sandbox = createSandbox({
        runtime,
        settings: readSandboxSettings({ enabled: true }),
        home: join(root, "home"),
        deny: [{ rule: reading.rule, anchor: root }],
      });
    });
    afterAll(async () => {
      await runtime[Symbol.asyncDispose]();
      await rm(root, { recursive: true, force: true });
    });

    const run = async (command: string, directory = work, readOnly = false) => {
      const wrap = await sandbox?.wrap(
        { file: "/bin/bash", arguments: ["--norc", "-c", 'eval "$1"', "bash", command] },
        { signal, command, workingDirectories: [directory], readOnly },
      );
      if (wrap?.type !== "wrapped") throw new Error(JSON.stringify(wrap));
      const result = await runProcess({
        ...wrap.invocation,
        directory,
        environment: { PATH: process.env["PATH"] ?? "", HOME: join(root, "home"), GIVEN: "it's $HOME" },
        reportsBack: true,
        signal,
        timeLimitMs: 20_000,
      });
      wrap.ended();
      return result;
    };

    it("runs the command as it is, with its environment, exit code and descriptor 3", async () => {
      const result = await run(`printf '%s|' "$GIVEN" "a'b" "\\$x"; pwd >&3; exit 7`);
      expect(result).toMatchObject({ stdout: "it's $HOME|a'b|$x|", exitCode: 7, report: `${work}\n` });
    });

    it("lets it write in the working directory and in a place for temporary files, and nowhere else", async () => {
      const result = await run(
        `echo in > in.txt; t=$(mktemp) && echo temporary; echo out > ${join(root, "out.txt")}; echo done`,
      );
      expect(result.stdout).toBe("temporary\ndone\n");
      expect(await readFile(join(work, "in.txt"), "utf8")).toBe("in\n");
      expect(existsSync(join(root, "out.txt"))).toBe(false);
    });

    it("lets a command that may run because it only reads write nothing but temporary files [PRM-9]", async () => {
      const { stdout } = await run(
        "echo x > read-only.txt; t=$(mktemp) && echo $GIT_OPTIONAL_LOCKS",
        work,
        true,
      );
      expect(stdout).toBe("0\n");
      expect(existsSync(join(work, "read-only.txt"))).toBe(false);
    });

    it("keeps what a deny rule names unreadable for any program", async () => {
      const result = await run(`cat ${join(root, "secret")}; python3 -c 'print(1)' 2>/dev/null || true`);
      expect(result.output).not.toContain("hush");
    });

    it("keeps the files that steer agents and git unwritable, also those that are not there yet", async () => {
      execFileSync("git", ["init", "-q", work]);
      const names = [
        ".claude/settings.json",
        ".claude/settings.local.json",
        ".claude/agents/x.md",
        ".git/hooks/post-checkout",
      ];
      const before = await readFile(join(work, ".git", "config"), "utf8");
      await run(
        `mkdir -p .claude/agents; for n in ${names.join(" ")} .mcp.json; do echo evil > $n; done; echo x >> .git/config`,
      );
      for (const name of [...names, ".mcp.json"]) {
        const text = await readFile(join(work, name), "utf8").catch(() => "");
        expect(text, name).toBe("");
      }
      expect(await readFile(join(work, ".git", "config"), "utf8")).toBe(before);
    });

    it("leaves no trace of the files it kept from being made", async () => {
      const other = join(root, "other");
      await mkdir(other);
      const command = "mkdir -p .claude; echo evil > .claude/settings.json; echo evil > .mcp.json; echo done";
      expect((await run(command, other)).stdout).toBe("done\n");
      expect(existsSync(join(other, ".mcp.json"))).toBe(false);
      expect(existsSync(join(other, ".claude", "settings.json"))).toBe(false);
    });

    it("lets it reach no host that settings do not name", async () => {
      const result = await run(
        "exec 9<>/dev/tcp/127.0.0.1/22 && echo reached; (echo > /dev/tcp/192.0.2.1/80) && echo reached; true",
      );
      expect(result.stdout).not.toContain("reached");
    });

    it("leaves nothing running behind", async () => {
      const begun = await run("sleep 74001.5 & disown; echo started");
      expect(begun.stdout).toBe("started\n");
      const left = execFileSync("ps", ["-eo", "args"], { encoding: "utf8" });
      expect(left.split("\n").filter((line) => line.startsWith("sleep 74001.5"))).toEqual([]);
    });
  },
);
