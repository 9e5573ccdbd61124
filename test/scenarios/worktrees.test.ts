import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createSampleRuntime } from "@retinue/testing/sample-runtime.ts";
import type { Step } from "@retinue/testing/script.ts";
import { describe, expect, test } from "vitest";
import { projectRoot } from "../project-files.ts";

function git(directory: string, ...words: readonly string[]): string {
  const identity = [
    "-c",
    "user.name=Test",
    "-c",
    "user.email=test@example.com",
    "-c",
    "commit.gpgsign=false",
  ];
  return execFileSync("git", [...identity, ...words], { cwd: directory, encoding: "utf8" });
}

async function stage(steps: readonly Step[], trusted = true) {
  const sample = await createSampleRuntime(steps, { trusted });
  const { project } = sample.workspace;
  git(project, "init", "-q", "-b", "main");
  writeFileSync(join(project, "a.txt"), "one\n");
  git(project, "add", "-A");
  git(project, "commit", "-q", "-m", "first");
  writeFileSync(join(project, "a.txt"), "one, not committed\n");
  return { sample, project };
}

describe("[SPN-7] a child in a worktree of its own", () => {
  test("sees the current state, changes only its copy, and what it did is kept and reported", async () => {
    const { sample, project } = await stage([
      { calls: [{ name: "Read", input: { file_path: "a.txt" } }] },
      { calls: [{ name: "Write", input: { file_path: "b.txt", content: "made by the child\n" } }] },
      "Done.",
    ]);
    await using _sample = sample;
    const session = await sample.runtime.open({ permissionMode: "acceptEdits" });
    const handle = session.spawn("general-purpose", "Work.", { isolation: "worktree" });
    const result = await handle.result;
    expect(result).toMatchObject({ status: "completed", denials: [] });
    expect(JSON.stringify(sample.requests[1]?.messages)).toContain("not committed");
    expect(existsSync(join(project, "b.txt"))).toBe(false);
    const [worktree = ""] = readdirSync(join(project, ".claude", "worktrees"));
    expect(readFileSync(join(project, ".claude", "worktrees", worktree, "b.txt"), "utf8")).toContain(
      "made by the child",
    );
    expect(git(project, "status", "--short")).toBe(" M a.txt\n");
    await session[Symbol.asyncDispose]();
  });

  test("without trust, nothing that the repository's own configuration names is run [PRM-11]", async () => {
    const { sample, project } = await stage([], false);
    await using _sample = sample;
    const ran = join(project, "../ran");
    git(project, "config", "filter.x.clean", `touch '${ran}'; cat`);
    git(project, "config", "filter.x.smudge", `touch '${ran}'; cat`);
    writeFileSync(join(project, ".git/info/attributes"), "*.txt filter=x\n");
    await expect(
      sample.runtime.spawn("general-purpose", "Work.", { isolation: "worktree" }).result,
    ).rejects.toThrow(
      "this folder is not trusted, and its repository may start programs (the setting filter.x.clean); `retinue trust` trusts it",
    );
    expect(existsSync(ran)).toBe(false);
    git(project, "config", "--remove-section", "filter.x");
    const config = join(project, "../more");
    writeFileSync(config, `[filter "x"]\n\tclean = touch '${ran}'; cat\n\tsmudge = touch '${ran}'; cat\n`);
    git(project, "config", "include.path", config);
    await expect(
      sample.runtime.spawn("general-purpose", "Work.", { isolation: "worktree" }).result,
    ).rejects.toThrow("the setting include.path");
    expect(existsSync(ran)).toBe(false);
  });

  test("[MCP-2] servers of its definition start in the worktree, and nothing is left where it cannot start", async () => {
    const { sample, project } = await stage([]);
    await using _sample = sample;
    const program = join(projectRoot, "test/fixtures/mcp/unruly-server.mjs");
    const mine = { command: process.execPath, args: [program] };
    const mute = { command: process.execPath, args: [program, "mute"] };
    const worker = {
      name: "worker",
      description: "Works.",
      prompt: "You work.",
      isolation: "worktree",
      mcpServers: [{ mine }],
    } as const;
    const { runtime, requests } = sample.restart(
      [{ calls: [{ name: "mcp__mine__place", input: {} }] }, "Done."],
      {
        trusted: true,
        canUseTool: async () => ({ behavior: "allow" }),
        agents: [worker, { ...worker, name: "waiting", mcpServers: [{ mute }] }],
      },
    );
    expect(await runtime.spawn("worker", "Work.").result).toMatchObject({ status: "completed" });
    const [, request] = requests;
    expect(JSON.stringify(request?.messages.at(-1))).toContain(join(project, ".claude", "worktrees"));
    expect(JSON.stringify(request?.system)).toContain("mcp-instructions");
    const worktrees = () => readdirSync(join(project, ".claude", "worktrees"));
    expect(worktrees()).toEqual([]);
    const session = await runtime.open();
    const child = session.spawn("waiting", "Work.").result;
    child.catch(() => undefined);
    await expect.poll(worktrees, { timeout: 20_000 }).toHaveLength(1);
    await session[Symbol.asyncDispose]();
    await expect.poll(worktrees, { timeout: 20_000 }).toEqual([]);
  });

  test("a worktree without changes is removed", async () => {
    let pending: readonly string[] = [];
    const { sample, project } = await stage([
      () => {
        // Its agent is written down now, so a crash leaves it to the process that resumes the agent.
        pending = readdirSync(join(project, ".git")).filter((name) => name === "retinue-worktrees");
        return "Nothing to do.";
      },
    ]);
    await using _sample = sample;
    await sample.runtime.spawn("general-purpose", "Look.", { isolation: "worktree" }).result;
    expect(pending).toEqual([]);
    expect(readdirSync(join(project, ".claude", "worktrees"))).toEqual([]);
    expect(git(project, "branch", "--list").trim()).toBe("* main");
  });

  test("it cannot write into the shared tree", async () => {
    const target = { path: "" };
    const { sample, project } = await stage([
      () => ({ calls: [{ name: "Write", input: { file_path: target.path, content: "x" } }] }),
      "It was refused.",
    ]);
    await using _sample = sample;
    target.path = join(project, "outside.txt");
    const session = await sample.runtime.open({ permissionMode: "acceptEdits" });
    const result = await session.spawn("general-purpose", "Work.", { isolation: "worktree" }).result;
    expect(result.denials).toHaveLength(1);
    expect(existsSync(target.path)).toBe(false);
    await session[Symbol.asyncDispose]();
  });

  test("outside of git it is refused, not run without", async () => {
    await using sample = await createSampleRuntime(["Never."]);
    await expect(
      sample.runtime.spawn("general-purpose", "Work.", { isolation: "worktree" }).result,
    ).rejects.toThrow(/not started/);
    expect(sample.requests).toHaveLength(0);
  });
});
