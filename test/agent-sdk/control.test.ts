import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import {
  AbortError,
  createSdkMcpServer,
  type Options,
  type Query,
  query,
  tool,
} from "@anthropic-ai/claude-agent-sdk";
import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import {
  bash,
  callHelper,
  collect,
  createPrompts,
  createSdkStage,
  type Message,
  ofType,
  resultOf,
  results,
  type SdkStage,
  user,
  write,
} from "./sdk-stage.ts";

const free: Options = { permissionMode: "bypassPermissions", allowDangerouslySkipPermissions: true };
const body = (stage: SdkStage, at: number) => JSON.stringify(stage.provider.requests[at]?.body);

/** A conversation whose program acts on messages as they come. */
async function converse(
  stage: SdkStage,
  options: Options,
  act: (message: Message, query: Query, prompts: ReturnType<typeof createPrompts>) => void | Promise<void>,
  first = user("go"),
) {
  const prompts = createPrompts(first);
  const running = query({ prompt: prompts, options: stage.options(options) });
  onTestFinished(() => running.close());
  return collect(running, undefined, (message) => act(message, running, prompts));
}

const add = tool("add", "Adds.", { a: z.number(), b: z.number() }, async ({ a, b }) => ({
  content: [{ type: "text", text: `sum ${a + b}` }],
}));
const calc = (name = "calc") => createSdkMcpServer({ name, version: "1.0.0", tools: [add] });

describe("control requests [DRP-1]", () => {
  test("initialize lists commands, agents, models and the account", async () => {
    const stage = await createSdkStage(["Done."]);
    stage.write(".claude/commands/fix.md", "Fix it.");
    const prompts = createPrompts();
    const running = query({
      prompt: prompts,
      options: stage.options({ agents: { helper: { description: "Helps.", prompt: "You help." } } }),
    });
    const initialized = await running.initializationResult();
    const [commands, models, agents, account] = await Promise.all([
      running.supportedCommands(),
      running.supportedModels(),
      running.supportedAgents(),
      running.accountInfo(),
    ]);
    prompts.end();
    await collect(running);
    expect(initialized).toMatchObject({ output_style: "default", hook_on_failure_supported: true });
    expect(commands.map(({ name }) => name)).toEqual(expect.arrayContaining(["compact", "fix"]));
    expect(models[0]).toMatchObject({ value: "default" });
    expect(agents.map(({ name }) => name)).toContain("helper");
    expect(account).toMatchObject({ apiProvider: "firstParty" });
  });

  test("interrupt ends the turn, and the next prompt is answered", async () => {
    const reached = Promise.withResolvers<void>();
    const stall = () => {
      reached.resolve();
      return { failure: "stall" } as const;
    };
    const stage = await createSdkStage([stall, "Second."]);
    let hasStopped = false;
    const finished = await converse(stage, {}, async (message, running, prompts) => {
      if (message.type === "system" && message.subtype === "init" && !hasStopped) {
        hasStopped = true;
        void reached.promise.then(() => running.interrupt());
      }
      if (message.type !== "result") return;
      if (message.subtype === "success") prompts.end();
      else prompts.send(user("again"));
    });
    const [first, second] = results(finished);
    expect(first).toMatchObject({ subtype: "error_during_execution", terminal_reason: "aborted_streaming" });
    expect(second).toMatchObject({ subtype: "success", result: "Second." });
    expect(JSON.stringify(ofType(finished, "user"))).toContain("[Request interrupted by user]");
  });

  test("setPermissionMode holds for the next call", async () => {
    const stage = await createSdkStage(["One.", write("a.txt", "a"), "Two."]);
    const finished = await converse(stage, {}, async (message, running, prompts) => {
      if (message.type !== "result") return;
      if (message["result"] !== "One.") return prompts.end();
      await running.setPermissionMode("acceptEdits");
      prompts.send(user("write"));
    });
    expect(existsSync(join(stage.cwd, "a.txt"))).toBe(true);
    expect(ofType(finished, "system", "init").map((init) => init["permissionMode"])).toEqual([
      "default",
      "acceptEdits",
    ]);
    expect(ofType(finished, "system", "status")[0]).toMatchObject({ permissionMode: "acceptEdits" });
  });

  test("bypassPermissions is refused unless it was allowed at the start", async () => {
    const stage = await createSdkStage(["One."]);
    let error = "";
    await converse(stage, {}, async (message, running, prompts) => {
      if (message.type !== "result") return;
      await running.setPermissionMode("bypassPermissions").catch((refusal: Error) => {
        error = refusal.message;
      });
      prompts.end();
    });
    expect(error).toContain("bypassPermissions");
  });

  test("setModel changes the model of the next request", async () => {
    const stage = await createSdkStage(["One.", "Two."]);
    const finished = await converse(
      stage,
      { model: "claude-sonnet-4-5" },
      async (message, running, prompts) => {
        if (message.type !== "result") return;
        if (message["result"] !== "One.") return prompts.end();
        await running.setModel("claude-haiku-4-5");
        prompts.send(user("more"));
      },
    );
    expect(stage.provider.requests.map((request) => request.body["model"])).toEqual([
      "claude-sonnet-4-5",
      "claude-haiku-4-5",
    ]);
    expect(ofType(finished, "system", "init")[1]).toMatchObject({ model: "claude-haiku-4-5" });
    expect(Object.keys((resultOf(finished) as { modelUsage: object }).modelUsage)).toEqual([
      "claude-sonnet-4-5",
      "claude-haiku-4-5",
    ]);
  });

  test("mcpServerStatus lists the servers with their tools", async () => {
    const stage = await createSdkStage(["One."]);
    let status: unknown;
    await converse(stage, { mcpServers: { calc: calc() } }, async (message, running, prompts) => {
      if (message.type !== "result") return;
      status = await running.mcpServerStatus();
      prompts.end();
    });
    expect(status).toMatchObject([{ name: "calc", status: "connected", tools: [{ name: "add" }] }]);
  });

  test("setMcpServers adds a server whose tools the next turn has", async () => {
    const stage = await createSdkStage([
      "One.",
      { calls: [{ name: "mcp__late__add", input: { a: 1, b: 1 } }] },
      "Two.",
    ]);
    let outcome: unknown;
    await converse(stage, { ...free }, async (message, running, prompts) => {
      if (message.type !== "result") return;
      if (message["result"] !== "One.") return prompts.end();
      outcome = await running.setMcpServers({ late: calc("late") });
      prompts.send(user("add"));
    });
    expect(outcome).toEqual({ added: ["late"], removed: [], errors: {} });
    expect(body(stage, 2)).toContain("sum 2");
    expect(body(stage, 1)).toContain("One.");
  });

  test("a server in the host's memory that is switched off stays listed, and can be switched on [DRP-1]", async () => {
    const stage = await createSdkStage(["One."]);
    const states: unknown[] = [];
    await converse(stage, { mcpServers: { calc: calc() } }, async (message, running, prompts) => {
      if (message.type !== "result") return;
      for (const isOn of [false, true]) {
        await running.toggleMcpServer("calc", isOn);
        states.push(...(await running.mcpServerStatus()).map(({ name, status }) => `${name} ${status}`));
      }
      prompts.end();
    });
    expect(states).toEqual(["calc disabled", "calc connected"]);
  });

  test.each<[Parameters<typeof query>[0]["options"], unknown]>([
    [{ thinking: { type: "disabled" } }, { type: "disabled" }],
    [{ maxThinkingTokens: 0 }, { type: "disabled" }],
    [{ thinking: { type: "adaptive" } }, { type: "adaptive", display: "summarized" }],
  ])("%o is what the model is asked for [DRP-2]", async (options, thinking) => {
    const stage = await createSdkStage(["One."]);
    await converse(stage, { ...options }, (message, _, prompts) => {
      if (message.type === "result") prompts.end();
    });
    expect(JSON.parse(body(stage, 0))["thinking"]).toEqual(thinking);
  });

  test("getContextUsage shows how full the window is", async () => {
    const stage = await createSdkStage(["One."]);
    let usage: { totalTokens: number; maxTokens: number; categories: unknown[] } | undefined;
    await converse(stage, {}, async (message, running, prompts) => {
      if (message.type !== "result") return;
      usage = await running.getContextUsage();
      prompts.end();
    });
    expect(usage?.totalTokens).toBeGreaterThan(0);
    expect(usage?.maxTokens).toBeGreaterThan(usage?.totalTokens ?? 0);
  });

  test("a prompt that comes while a tool runs is read before the next model call", async () => {
    const stage = await createSdkStage([bash("sleep 0.7"), "Both."]);
    const finished = await converse(stage, free, (message, _, prompts) => {
      if (message.type === "assistant" && JSON.stringify(message).includes("sleep"))
        prompts.send(user("and this"));
      if (message.type === "result") prompts.end();
    });
    expect(body(stage, 1)).toContain("and this");
    expect(results(finished)).toHaveLength(1);
  });

  test("two prompts sent immediately are two turns", async () => {
    const stage = await createSdkStage(["One.", "Two."]);
    const prompts = createPrompts(user("first"), user("second"));
    prompts.end();
    const finished = await collect(query({ prompt: prompts, options: stage.options() }));
    expect(results(finished).map((result) => result["result"])).toEqual(["One.", "Two."]);
  });

  test("a message with shouldQuery false is only read with the next prompt", async () => {
    const stage = await createSdkStage(["One."]);
    const prompts = createPrompts(user("a note", { shouldQuery: false }), user("the question"));
    prompts.end();
    const finished = await collect(query({ prompt: prompts, options: stage.options() }));
    expect(results(finished)).toMatchObject([
      { num_turns: 0, result: "", stop_reason: null },
      { num_turns: 1, result: "One." },
    ]);
    expect(stage.asked(0)).toContain("a note");
  });

  test("abort ends the process and what it runs", async () => {
    // Longer than the test may take: it would not end by itself.
    const stage = await createSdkStage([bash("sleep 600; touch late")]);
    const abortController = new AbortController();
    const finished = await collect(
      query({ prompt: "go", options: stage.options({ ...free, abortController }) }),
      undefined,
      (message) => {
        if (message.type === "assistant") setTimeout(() => abortController.abort(), 100);
      },
    );
    expect(finished.error).toBeInstanceOf(AbortError);
  });
});

describe("permissions [DRP-1]", () => {
  test("suggestions that are given back hold for the next call", async () => {
    const stage = await createSdkStage([write("a.txt", "a"), write("b.txt", "b"), "Done."]);
    const asked: unknown[] = [];
    await stage.run("go", {
      canUseTool: async (name, input, { suggestions }) => {
        asked.push(name);
        return { behavior: "allow", updatedInput: input, updatedPermissions: suggestions ?? [] };
      },
    });
    expect(asked).toEqual(["Write"]);
    expect(readFileSync(join(stage.cwd, "b.txt"), "utf8")).toBe("b");
  });

  test("deny with interrupt ends the turn", async () => {
    const stage = await createSdkStage([write("a.txt", "a"), "Never."]);
    const finished = await stage.run("go", {
      canUseTool: async () => ({ behavior: "deny", message: "stop it", interrupt: true }),
    });
    expect(stage.provider.requests).toHaveLength(1);
    expect(resultOf(finished)).toMatchObject({ is_error: true });
  });

  test("a callback that throws refuses the call with its text", async () => {
    const stage = await createSdkStage([write("a.txt", "a"), "Done."]);
    await stage.run("go", {
      canUseTool: async () => {
        throw new Error("the desk is closed");
      },
    });
    expect(existsSync(join(stage.cwd, "a.txt"))).toBe(false);
    expect(body(stage, 1)).toContain("the desk is closed");
  });

  test("agents that start together are asked about in one callback, and start after its yes [BIL-1, BIL-2]", async () => {
    const start = { subagent_type: "helper", description: "help", prompt: "HELP", run_in_background: false };
    const stage = await createSdkStage([
      { calls: [start, start].map((input) => ({ name: "Agent", input })) },
      { match: "You help.", text: "Helped.", times: 2 },
      "Done.",
    ]);
    stage.write(".claude/settings.json", JSON.stringify({ quotes: { askAboveAgents: 1 } }));
    const asked: unknown[] = [];
    const finished = await stage.run("go", {
      agents: { helper: { description: "Helps.", prompt: "You help." } },
      settingSources: ["project"],
      canUseTool: async (name, input, { decisionReason }) => {
        asked.push([name, input, decisionReason, stage.provider.requests.length]);
        return { behavior: "allow", updatedInput: input };
      },
    });
    expect(asked).toEqual([
      ["Agent", { agents: [expect.objectContaining(start), expect.anything()] }, expect.any(String), 1],
    ]);
    expect(JSON.stringify(asked)).toMatch(/2 agents would start: likely \$.*quotes\.askAboveAgents/);
    expect(resultOf(finished)).toMatchObject({ result: "Done.", permission_denials: [] });
    expect(stage.provider.requests).toHaveLength(4);
  });

  test("a child's call carries its agent id", async () => {
    const stage = await createSdkStage([
      callHelper(),
      { match: "You help.", ...write("c.txt", "c") },
      { match: "You help.", text: "Written." },
      "Done.",
    ]);
    const agents: unknown[] = [];
    await stage.run("go", {
      agents: { helper: { description: "Helps.", prompt: "You help." } },
      canUseTool: async (name, input, { agentID }) => {
        if (name === "Write") agents.push(typeof agentID);
        return { behavior: "allow", updatedInput: input };
      },
    });
    expect(agents).toEqual(["string"]);
    expect(existsSync(join(stage.cwd, "c.txt"))).toBe(true);
  });

  test("allowedTools and disallowedTools are kept", async () => {
    const stage = await createSdkStage([write("a.txt", "a"), bash("echo hidden"), "Done."]);
    const finished = await stage.run("go", { allowedTools: ["Write"], disallowedTools: ["Bash"] });
    expect(existsSync(join(stage.cwd, "a.txt"))).toBe(true);
    expect(body(stage, 2)).not.toContain("hidden\\n");
    expect(ofType(finished, "system", "init")[0]?.["tools"]).not.toContain("Bash");
  });

  test("without canUseTool a call that must be asked for is denied and listed", async () => {
    const stage = await createSdkStage([write("a.txt", "a"), "Done."]);
    const finished = await stage.run("go");
    expect(resultOf(finished)).toMatchObject({ permission_denials: [{ tool_name: "Write" }] });
    expect(ofType(finished, "system", "permission_denied")).toHaveLength(1);
  });

  test("AskUserQuestion is answered by the host", async () => {
    const question = {
      question: "Which colour?",
      header: "Colour",
      options: [
        { label: "Red", description: "Warm." },
        { label: "Blue", description: "Cold." },
      ],
      multiSelect: false,
    };
    const stage = await createSdkStage([
      { calls: [{ name: "AskUserQuestion", input: { questions: [question] } }] },
      "Blue it is.",
    ]);
    const asked: string[] = [];
    await stage.run("go", {
      canUseTool: async (name, input) => {
        asked.push(name);
        return { behavior: "allow", updatedInput: { ...input, answers: { "Which colour?": "Blue" } } };
      },
    });
    expect(asked).toEqual(["AskUserQuestion"]);
    expect(body(stage, 1)).toContain("Blue");
  });

  test("a question of a child names the child to the host [PRM-12, BGR-6]", async () => {
    const options = ["Red", "Blue"].map((label) => ({ label, description: label }));
    const question = { question: "Which colour?", header: "Colour", options, multiSelect: false };
    const spawn = { description: "paint", prompt: "PAINT", run_in_background: true };
    const stage = await createSdkStage([
      { match: "PAINT", calls: [{ name: "AskUserQuestion", input: { questions: [question] } }] },
      { match: "Blue", text: "Painted blue." },
      { calls: [{ name: "Agent", input: spawn }] },
      { text: "Waiting.", times: "any" },
    ]);
    const asked: (string | undefined)[] = [];
    const messages = await stage.run("go", {
      canUseTool: async (_name, input, { agentID }) => {
        asked.push(agentID);
        return { behavior: "allow", updatedInput: { ...input, answers: { "Which colour?": "Blue" } } };
      },
    });
    const [started] = ofType(messages, "system", "task_started");
    expect(started).toMatchObject({ task_id: expect.stringMatching(/^a/) });
    expect(asked).toEqual([(started as { task_id?: string }).task_id]);
  });
});
