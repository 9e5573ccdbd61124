import { execFileSync } from "node:child_process";
import { mkdirSync, realpathSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import type { AgentInput } from "@retinue/config/agents/define-agent.ts";
import type { RuntimeOptions } from "@retinue/core/kernel/options/runtime-options.ts";
import type { ModelRequest } from "@retinue/core/models/model.ts";
import { createSampleRuntime } from "@retinue/testing/sample-runtime.ts";
import type { Step } from "@retinue/testing/script.ts";
import { describe, expect, test } from "vitest";

const show: Step = { calls: [{ name: "Bash", input: { command: "pwd; printenv MY_FLAG CI; true" } }] };
const starting = (more: object): Step => ({
  calls: [
    { name: "Agent", input: { description: "work", prompt: "Work.", subagent_type: "worker", ...more } },
  ],
});
const reported = (request: ModelRequest | undefined) => JSON.stringify(request?.messages.at(-1));
const least = { origin: "program", agentType: "worker", description: "", prompt: "" } as const;
const worker: AgentInput = { name: "worker", description: "Works.", prompt: "You work." };
const allowAll: RuntimeOptions = { permissionMode: "bypassPermissions", trusted: true };

async function stage(steps: readonly Step[], options: RuntimeOptions = {}) {
  const sample = await createSampleRuntime([...steps], { agents: [worker], ...allowAll, ...options });
  mkdirSync(join(sample.workspace.project, "packages/api"), { recursive: true });
  return { sample, project: realpathSync(sample.workspace.project) };
}

describe("[DEF-2, AGT-1] where an agent starts", () => {
  test("is set by its definition, and its prompt knows it", async () => {
    const { sample, project } = await stage([show, "Done."], {
      agents: [{ ...worker, cwd: "packages/api" }],
    });
    await using _ = sample;
    await using session = await sample.runtime.open();
    expect(await session.spawn("worker", "Work.").result).toMatchObject({ status: "completed" });
    expect(reported(sample.requests[1])).toContain(join(project, "packages/api"));
    expect(JSON.stringify(sample.requests[0]?.system)).toContain(join(project, "packages/api"));
  });

  test("is set by a call, before the definition, and kept when it is resumed", async () => {
    const { sample, project } = await stage(
      [starting({ cwd: "packages" }), show, "One.", starting({ resume: "x" }), "Two."],
      { agents: [{ ...worker, cwd: "packages/api" }] },
    );
    await using _ = sample;
    await using session = await sample.runtime.open();
    await session.prompt("Go.").result;
    expect(reported(sample.requests[2])).toContain(`"${join(project, "packages")}"`);
    const [{ id } = { id: "" }] = session.tasks.list();
    const again = await session.planAgent({ ...least, resume: id });
    expect(again).toMatchObject({ plan: { cwd: { value: join(project, "packages"), from: "the call" } } });
  });

  test.each([
    ["outside", "..", "outside the folders"],
    ["elsewhere", "/", "outside the folders"],
    ["behind a link", "link", "outside the folders"],
    ["missing", "nowhere", "does not exist"],
    ["a file", "a.txt", "is not a folder"],
  ])("a folder that is %s refuses the start", async (_what, cwd, reason) => {
    const { sample, project } = await stage([starting({ cwd }), "Refused."]);
    await using _ = sample;
    await sample.workspace.write("a.txt", "x");
    symlinkSync("/usr", join(project, "link"));
    await sample.runtime.run("Go.").result;
    expect(reported(sample.requests[1])).toContain(reason);
    expect(sample.requests).toHaveLength(2);
  });

  test("is the same folder of the copy for one in a worktree, which must have it", async () => {
    const { sample, project } = await stage([show, "Done."], {
      agents: [{ ...worker, isolation: "worktree" }],
    });
    await using _ = sample;
    await sample.workspace.write("packages/api/a.txt", "x");
    const git = (...words: string[]) =>
      execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b", ...words], { cwd: project });
    git("init", "-q");
    git("add", ".");
    git("commit", "-qm", "first");
    mkdirSync(join(project, "untracked"));
    await using session = await sample.runtime.open();
    const child = await session.spawn("worker", "Work.", { cwd: "packages/api" }).result;
    expect(child).toMatchObject({ status: "completed" });
    expect(reported(sample.requests[1])).toMatch(/worktrees[^"]*\/packages\/api"/);
    await expect(session.spawn("worker", "Work.", { cwd: "untracked" }).result).rejects.toThrow(
      "is not a folder",
    );
  });

  test("does not move the rules of its definition", async () => {
    const write: Step = { calls: [{ name: "Write", input: { file_path: "../../secrets/a", content: "x" } }] };
    const { sample } = await stage([starting({ cwd: "packages/api" }), write, "Refused.", "Done."], {
      agents: [{ ...worker, disallowedTools: ["Write(secrets/**)"] }],
    });
    await using _ = sample;
    await sample.runtime.run("Go.").result;
    expect(reported(sample.requests[2])).toContain("not allowed");
  });
});

describe("[DEF-2, AGT-1] variables of an agent", () => {
  test("reach its commands: those of the definition, and over them those of the call", async () => {
    const { sample } = await stage([starting({ env: { CI: "call" } }), show, "Done.", "End."], {
      agents: [{ ...worker, env: { MY_FLAG: "mine", CI: "definition" } }],
    });
    await using _ = sample;
    await sample.runtime.run("Go.").result;
    expect(reported(sample.requests[2])).toContain("mine\\ncall");
  });

  test.each([
    ["a model", { MY_FLAG: "x" }, "a model sets only"],
    ["a model", { PATH: "/tmp" }, "a model sets only"],
    ["a model", { LD_PRELOAD: "/tmp/x.so" }, "a model sets only"],
  ])("%s that names %j starts nothing", async (_who, env, reason) => {
    const { sample } = await stage([starting({ env }), "Refused."]);
    await using _ = sample;
    await sample.runtime.run("Go.").result;
    expect(reported(sample.requests[1])).toContain(reason);
    expect(sample.requests).toHaveLength(2);
  });

  test("that steer programs refuse the start, from a program and from a definition too", async () => {
    const { sample } = await stage([], {
      agents: [worker, { ...worker, name: "steered", env: { NODE_OPTIONS: "--require x" } }],
    });
    await using _ = sample;
    await using session = await sample.runtime.open();
    await expect(session.spawn("worker", "Work.", { env: { PATH: "/tmp" } }).result).rejects.toThrow(
      "PATH changes",
    );
    await expect(session.spawn("steered", "Work.").result).rejects.toThrow("NODE_OPTIONS changes");
  });

  test("that a program has set stay when a model resumes the agent, which may not set them itself", async () => {
    const { sample } = await stage([]);
    await using _ = sample;
    const first = sample.restart([show, "One."], { agents: [worker], ...allowAll, transcripts: true });
    await using session = await first.runtime.open();
    const { agentId } = await session.spawn("worker", "Work.", { env: { MY_FLAG: "mine" } }).result;
    const planned = await session.planAgent({ ...least, origin: "model", resume: agentId });
    expect(planned).toMatchObject({ plan: { env: { MY_FLAG: { value: "mine", from: "the call" } } } });
  });

  test("of a project's file count only in a trusted folder", async () => {
    const file = "---\nname: mine\ndescription: Works.\nenv:\n  MY_FLAG: project\n---\nWork.\n";
    const { sample } = await stage([]);
    await using _ = sample;
    await sample.workspace.write(".claude/agents/mine.md", file);
    for (const trusted of [false, true]) {
      const { runtime } = sample.restart([], { trusted });
      await using session = await runtime.open({ planOnly: true });
      const planned = await session.planAgent({
        origin: "program",
        agentType: "mine",
        description: "",
        prompt: "",
      });
      expect(planned.type === "planned" ? planned.plan.env : planned).toEqual(
        trusted ? { MY_FLAG: { value: "project", from: "the definition" } } : undefined,
      );
    }
  });
});

test("[AGT-1, LIM-3] a timeout is a limit of time: the smallest of all counts", async () => {
  const { sample } = await stage([], { agents: [{ ...worker, timeout: 60, limits: { seconds: 90 } }] });
  await using _ = sample;
  await using session = await sample.runtime.open({ planOnly: true });
  const timeOf = async (timeout?: number) => {
    const planned = await session.planAgent({ ...least, timeout });
    return planned.type === "planned" ? planned.plan.limits?.timeMs : planned.reason;
  };
  expect(await timeOf()).toEqual({ value: 60_000, from: "the definition" });
  expect(await timeOf(5)).toEqual({ value: 5_000, from: "the call" });
  expect(await timeOf(500)).toEqual({ value: 60_000, from: "the definition" });
  expect(await timeOf(-1)).toContain("timeout");
});

describe("[AGT-2] an agent that a prompt names with @", () => {
  test.each([
    ["@agent-worker look at it", "Start it with the Agent tool"],
    ['please ask @"worker (agent)", then stop', "Start it with the Agent tool"],
    ["let @agent-denied look", "denies"],
    ["mail agent-worker@example.com about @agent-nobody.", undefined],
  ])("%s", async (prompt, expected) => {
    const { sample } = await stage(["Done."], {
      agents: [worker, { ...worker, name: "denied" }],
      disallowedTools: ["Agent(denied)"],
    });
    await using _ = sample;
    await sample.runtime.run(prompt).result;
    const text = reported(sample.requests[0]);
    if (expected === undefined) expect(text).not.toContain("The person asks for");
    else expect(text).toContain(expected);
  });

  test("is not started by text of a child or a program that says so word for word", async () => {
    const { sample } = await stage(["Done."], {});
    await using _ = sample;
    await using session = await sample.runtime.open();
    await session.spawn("worker", "@agent-worker go").result;
    expect(JSON.stringify(sample.requests[0]?.messages)).not.toContain("The person asks for");
  });

  test("is reported as missing where no agents can be started", async () => {
    const { sample } = await stage(["Done."], {});
    await using _ = sample;
    await using session = await sample.runtime.open({ tools: ["Read"] });
    await session.prompt("@agent-worker go").result;
    expect(reported(sample.requests[0])).toContain("cannot start here");
  });
});
