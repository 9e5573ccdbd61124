import { mkdir, realpath, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { AgentEvent } from "@retinue/core/conversation/agent-event.ts";
import type { ModelRequest } from "@retinue/core/models/model.ts";
import { defineTool } from "@retinue/core/tools/tool.ts";
import { createSampleRuntime } from "@retinue/testing/sample-runtime.ts";
import type { ScriptedStep, Step } from "@retinue/testing/script.ts";
import { describe, expect, test } from "vitest";
import { z } from "zod";

type Answer = Omit<ScriptedStep, "match">;

const isChild = (request: ModelRequest): boolean => JSON.stringify(request.messages[0]).includes("CHILD:");
const forMain = (step: Answer): ScriptedStep => ({ ...step, match: (request) => !isChild(request) });
const forChild = (step: Answer): ScriptedStep => ({ ...step, match: isChild });

const spawns = (prompt: string, more: Readonly<Record<string, unknown>> = {}): Answer => ({
  calls: [{ name: "Agent", input: { description: "Look", prompt: `CHILD: ${prompt}`, ...more } }],
});

async function collect<T>(values: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const value of values) all.push(value);
  return all;
}

const write = { calls: [{ name: "Bash", input: { command: "touch made" } }] };

describe("the tree of a run", () => {
  const price = { input: 10, output: 50, cacheRead: 1, cacheWrite: 12 };
  const usage = { inputTokens: 1000, outputTokens: 100, cacheReadTokens: 0, cacheWriteTokens: 0 };
  const family = (): Step[] => [
    forMain({ ...spawns("one"), usage }),
    forChild({ ...write, usage }),
    forChild({ text: "Child done.", usage }),
    forMain({ text: "Main done.", usage }),
  ];

  test("events of children are among those of the run, each with its agent and its parent [SDK-1]", async () => {
    await using sample = await createSampleRuntime(family());
    const run = sample.runtime.run("Go.");
    const events = await collect(run.events);
    const result = await run.result;
    expect(result.text).toBe("Main done.");
    const child = result.agents.find(({ agentId }) => agentId !== "main");
    expect(child).toMatchObject({ parentId: "main", agentType: "general-purpose", status: "completed" });
    const of = (id: string | undefined): AgentEvent[] => events.filter(({ agentId }) => agentId === id);
    expect(of("main").map(({ type }) => type)).toContain("run-ended");
    expect(of(child?.agentId).map(({ type }) => type)).toEqual(
      expect.arrayContaining(["turn-started", "call-finished", "assistant-answered", "run-ended"]),
    );
    expect(of(child?.agentId).every(({ parentId }) => parentId === "main")).toBe(true);
    // A child's end comes before its parent reads it.
    const childEnd = events.findIndex(({ type, agentId }) => type === "run-ended" && agentId !== "main");
    const parentReads = events.findIndex(
      (event) => event.agentId === "main" && event.type === "call-finished" && event.call.name === "Agent",
    );
    expect(childEnd).toBeGreaterThan(0);
    expect(childEnd).toBeLessThan(parentReads);
    expect(await collect(run.textStream)).not.toContain("Child done.");
  });

  test("a late reader gets the answers of children whole, without their pieces [SDK-1]", async () => {
    await using sample = await createSampleRuntime(family());
    const run = sample.runtime.run("Go.");
    await run.result;
    const late = await collect(run.events);
    const ofChild = late.filter(({ agentId }) => agentId !== "main").map(({ type }) => type);
    expect(ofChild).toContain("assistant-answered");
    expect(ofChild).not.toContain("model-streamed");
    expect(late.filter(({ agentId }) => agentId === "main").map(({ type }) => type)).toContain(
      "model-streamed",
    );
  });

  test("totals are those of the tree, by agent and by model, and denials name their agent [LIM-4]", async () => {
    await using sample = await createSampleRuntime(family(), { modelOptions: { facts: { price } } });
    const { totals, agents, models, denials } = await sample.runtime.run("Go.").result;
    expect(totals.usage).toMatchObject({ inputTokens: 4000, outputTokens: 400 });
    expect(totals).toMatchObject({ turns: 4, toolUses: 2 });
    expect(totals.costUsd).toBeCloseTo(0.06, 9);
    expect(agents.map((agent) => agent.totals.usage.inputTokens)).toEqual([2000, 2000]);
    expect(Object.values(models)).toMatchObject([{ calls: 4, usage: { inputTokens: 4000 } }]);
    const [child] = agents.filter(({ agentId }) => agentId !== "main");
    expect(denials).toMatchObject([{ agentId: child?.agentId, call: { name: "Bash" } }]);
  });
});

describe("text that stands [SDK-1]", () => {
  test("there is a blank line between two answers", async () => {
    const look = { text: "I look.", calls: [{ name: "Glob", input: { pattern: "*" } }] };
    await using sample = await createSampleRuntime([look, "All seen."]);
    expect((await collect(sample.runtime.run("Go.").textStream)).join("")).toBe("I look.\n\nAll seen.");
  });

  test("an abort leaves what was written, marked as partial", async () => {
    await using sample = await createSampleRuntime([
      { text: "One two three four", failure: "stall", after: 2 },
    ]);
    const run = sample.runtime.run("Go.");
    for await (const _piece of run.textStream) break;
    const result = await run.stop();
    expect(result).toMatchObject({ status: "stopped", partial: true });
    expect(result.text).not.toBe("");
    expect("One two three four".startsWith(result.text)).toBe(true);
    await expect(run.text).rejects.toMatchObject({ code: "stopped" });
  });

  test("a run that fails rejects its text and output with code, sentence and the provider's answer", async () => {
    await using sample = await createSampleRuntime([{ failure: "invalid-request" }]);
    const run = sample.runtime.run("Go.");
    const { status, reason } = await run.result;
    expect(status).toBe("failed");
    await expect(run.text).rejects.toMatchObject({ name: "RetinueError", code: reason });
    await expect(run.output).rejects.toMatchObject({ code: "invalid-option" });
  });

  test("the output is a promise of the checked value", async () => {
    await using sample = await createSampleRuntime([
      { calls: [{ name: "StructuredOutput", input: { files: 3 } }] },
    ]);
    const run = sample.runtime.run("Count.", { output: z.object({ files: z.number() }) });
    expect((await run.output).files).toBe(3);
  });
});

describe("lists that limit [TLS-1]", () => {
  const own = defineTool({
    name: "own",
    description: "Does nothing.",
    effect: "read",
    input: z.object({}),
    call: () => "ok",
  });
  test.each([
    ["createRuntime({ tools: [] })", { tools: [] }, {}],
    ["createRuntime({ tools: {} })", { tools: {} }, {}],
    ["createRuntime({ tools: [own] })", { tools: [own] }, {}],
    ["createRuntime({ tools: { own } })", { tools: { own } }, {}],
    ["run({ tools: [own] })", {}, { tools: [own] }],
    ["run({ tools: [] })", {}, { tools: [] }],
  ])("%s leaves no built-in tool", async (_how, ofRuntime, ofRun) => {
    await using sample = await createSampleRuntime(["Nothing to use."], ofRuntime);
    await sample.runtime.run("Read .env", ofRun).text;
    expect(sample.requests[0]?.tools.map(({ name }) => name).filter((name) => name !== "own")).toEqual([]);
  });

  test.each([
    ["createRuntime", { tools: ["default", own] }, {}],
    ["run", { tools: [] }, { tools: ["default", own] }],
  ])("default in the list of %s names all built-in tools", async (_how, ofRuntime, ofRun) => {
    await using sample = await createSampleRuntime(["Seen."], ofRuntime);
    await sample.runtime.run("Look.", ofRun).text;
    const names = sample.requests[0]?.tools.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(["Read", "Bash", "own"]));
  });

  test("the program starts agents whatever tools its own agent has, unless a rule denies it", async () => {
    const tools = [own];
    const agents = { clerk: { description: "Knows.", prompt: "You know." } };
    await using sample = await createSampleRuntime(["Seven."], { tools, agents });
    expect(await sample.runtime.spawn("clerk", "How many?").text).toBe("Seven.");
    expect(sample.requests[0]?.tools.map(({ name }) => name)).toEqual(["own"]);
    await using strict = await createSampleRuntime(["Never."], { tools, agents, disallowedTools: ["Agent"] });
    await expect(strict.runtime.spawn("clerk", "How many?").result).rejects.toMatchObject({
      code: "agent-refused",
    });
  });

  test("children of such a runtime have none either", async () => {
    await using sample = await createSampleRuntime([{ calls: [{ name: "Read", input: {} }] }, "None."], {
      tools: [],
    });
    const { totals } = await sample.runtime.spawn("Explore", "Read .env").result;
    expect(sample.requests.map(({ tools }) => tools)).toEqual([[], []]);
    expect(totals.toolUses).toBe(1);
  });
});

describe("what a server says for one session [SDK-1]", () => {
  test("canUseTool, approver and hooks of a run decide for it alone, and receive which session asks [PRM-12]", async () => {
    await using sample = await createSampleRuntime([write, "A.", write, "B."], {
      canUseTool: async () => ({ behavior: "deny", message: "the runtime's" }),
    });
    const asked: unknown[] = [];
    const own = await sample.runtime.run("Go.", {
      canUseTool: async (_tool, _input, { sessionId, agentId, agentPath, signal }) => {
        asked.push({ sessionId, agentId, agentPath, isSignal: signal instanceof AbortSignal });
        return { behavior: "deny", message: "the run's" };
      },
    }).result;
    expect(own.denials[0]?.reason).toContain("the run's");
    expect(asked).toEqual([
      {
        sessionId: own.sessionId,
        agentId: "main",
        agentPath: [{ id: "main", name: "main" }],
        isSignal: true,
      },
    ]);
    const other = await sample.runtime.run("Go.").result;
    expect(other.denials[0]?.reason).toContain("the runtime's");
  });

  test("an approver of a session is asked for its children, with session, agent and path", async () => {
    await using sample = await createSampleRuntime([
      forMain(spawns("one")),
      forChild(write),
      forChild({ text: "Child done." }),
      forMain({ text: "Main done." }),
    ]);
    const asked: { sessionId: string; agentId: string; agentPath: readonly { name: string }[] }[] = [];
    await using session = await sample.runtime.open({
      approver: {
        approve: async (request) => {
          asked.push(request);
          return { type: "allow", for: "call" };
        },
      },
    });
    const { agents } = await session.run("Go.").result;
    const question = asked.find(({ agentPath }) => agentPath.length === 2);
    expect(question).toMatchObject({ sessionId: session.id, agentId: agents[1]?.agentId });
    expect(question?.agentPath.map(({ name }) => name)).toEqual(["main", "general-purpose"]);
  });

  test("a session has a folder, variables and hooks of its own; tools receive whose they are", async () => {
    const seen: unknown[] = [];
    const whoami = defineTool({
      name: "whoami",
      description: "Says who calls.",
      effect: "read",
      input: z.object({}),
      call: (_input, { sessionId, agentPath, directory, environment }) => {
        seen.push({
          sessionId,
          path: agentPath.map(({ id }) => id),
          directory,
          tenant: environment["TENANT"],
        });
        return "ok";
      },
    });
    const call = { calls: [{ name: "whoami", input: {} }] };
    await using sample = await createSampleRuntime([call, "One.", call, "Two."], { tools: [whoami] });
    const other = join(sample.workspace.root, "tenant");
    await mkdir(other);
    await writeFile(join(other, "CLAUDE.md"), "This is the tenant's folder.");
    const fired: string[] = [];
    const one = await sample.runtime.run("Go.", {
      cwd: other,
      env: { TENANT: "a" },
      hooks: { PreToolUse: [(input) => void fired.push(input.session_id)] },
    }).result;
    const two = await sample.runtime.run("Go.").result;
    expect(seen).toEqual([
      { sessionId: one.sessionId, path: ["main"], directory: await realpath(other), tenant: "a" },
      { sessionId: two.sessionId, path: ["main"], directory: sample.workspace.project, tenant: undefined },
    ]);
    expect(fired).toEqual([one.sessionId]);
    expect(JSON.stringify(sample.requests[0])).toContain("This is the tenant's folder.");
    expect(JSON.stringify(sample.requests[2])).not.toContain("This is the tenant's folder.");
  });

  test("trust that a program sets for its own folder does not hold for the folder of a session [PRM-11]", async () => {
    await using sample = await createSampleRuntime(["One.", "Two."], { trusted: true });
    const other = join(sample.workspace.root, "stranger");
    await mkdir(join(other, ".claude"), { recursive: true });
    const settings = { permissions: { allow: ["Bash(touch *)"] } };
    await writeFile(join(other, ".claude/settings.json"), JSON.stringify(settings));
    await using held = await sample.runtime.open({ cwd: other });
    const ofBash = ({ plan }: typeof held) => plan.policy.allow.filter(({ rule }) => rule.tool === "Bash");
    expect(ofBash(held)).toEqual([]);
    await using trusted = await sample.runtime.open({ cwd: other, trusted: true });
    expect(ofBash(trusted)).toHaveLength(1);
  });
});

describe("defaults of a runtime [SDK-1]", () => {
  test("hold for runs that say nothing, and a run that says it itself decides", async () => {
    await using sample = await createSampleRuntime([write, "One.", write, "Two."], {
      allowedTools: ["Bash(touch *)"],
      systemPrompt: "You are the shop.",
      maxTurns: 7,
      maxBudgetUsd: 3,
      permissionMode: "default",
    });
    expect(await sample.runtime.run("Go.").result).toMatchObject({ denials: [] });
    expect(JSON.stringify(sample.requests[0]?.system)).toContain("You are the shop.");
    const strict = await sample.runtime.run("Go.", { allowedTools: [], systemPrompt: "You are strict." })
      .result;
    expect(strict.denials).toHaveLength(1);
    expect(JSON.stringify(sample.requests[2]?.system)).toContain("You are strict.");
    await using session = await sample.runtime.open();
    expect(session.plan.maxTurns?.value).toBe(7);
  });
});

test("what a stranger writes is plain text in a runtime without slash commands [SDK-1]", async () => {
  await using sample = await createSampleRuntime(["Shrugged."], { slashCommands: false });
  expect(await sample.runtime.run("/shrug").text).toBe("Shrugged.");
  await expect(sample.runtime.run("/shrug", { slashCommands: true }).text).rejects.toMatchObject({
    code: "unknown_command",
  });
});

describe("agents in the background at the end of a run [BGR-1]", () => {
  const script = (): Step[] => [
    forMain(spawns("slowly", { run_in_background: true })),
    forChild({ text: "Never", failure: "stall", after: 1 }),
    forMain({ text: "I go.", times: 3 }),
  ];

  test("stop: they are stopped, and the result does not wait for them", async () => {
    await using sample = await createSampleRuntime(script());
    const { text, agents } = await sample.runtime.run("Go.", { background: "stop" }).result;
    expect(text).toBe("I go.");
    expect(agents.map(({ status }) => status)).toEqual(["completed", "stopped"]);
  });

  test("leave: the result comes while they work, and closing the runtime ends them", async () => {
    await using sample = await createSampleRuntime(script());
    const { text, agents } = await sample.runtime.run("Go.", { background: "leave" }).result;
    expect(text).toBe("I go.");
    expect(agents[1]).toMatchObject({ status: "running" });
    await sample.runtime.close();
  });
});

test("children that are watched have a type on every event [SDK-1]", async () => {
  await using sample = await createSampleRuntime(["Seen."]);
  await using session = await sample.runtime.open();
  const watched = session.tasks.watch();
  const handle = session.spawn("Explore", "Look.");
  const first = await watched.next();
  expect(first.value).toMatchObject({ type: expect.any(String), agentId: handle.id, parentId: "main" });
  await handle.result;
  await watched.return?.();
});
