import { randomUUID } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createSdkMcpServer, type Options, query, tool } from "@anthropic-ai/claude-agent-sdk";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { readProjectFile } from "../project-files.ts";
import {
  bash,
  blockTypes,
  collect,
  converse,
  createPrompts,
  createSdkStage,
  free,
  ofType,
  read,
  resultOf,
  results,
  user,
  write,
} from "./sdk-stage.ts";

describe("one prompt [DRP-1]", () => {
  test("the answer comes as init, assistant and result", async () => {
    const stage = await createSdkStage(["Hello."]);
    const finished = await stage.run("hi", { process: true });
    expect(finished.error).toBeUndefined();
    expect(finished.messages.map(({ type }) => type)).toEqual(["system", "assistant", "result"]);
    expect(resultOf(finished)).toMatchObject({
      subtype: "success",
      is_error: false,
      result: "Hello.",
      num_turns: 1,
      stop_reason: "end_turn",
    });
  });

  test("a tool runs, and its call and result are messages of their own", async () => {
    const stage = await createSdkStage([{ text: "I look.", ...read("a.txt") }, "Done."]);
    stage.write("a.txt", "content\n");
    const finished = await stage.run("read a.txt");
    expect(blockTypes(finished)).toEqual(["text", "tool_use", "text"]);
    const [answer] = ofType(finished, "user");
    expect(JSON.stringify(answer)).toContain("content");
    expect(resultOf(finished)).toMatchObject({ result: "Done.", num_turns: 2 });
  });

  test("init lists the tools, with Task among them, the version and what the protocol can do", async () => {
    const stage = await createSdkStage(["Hello."]);
    const [init] = ofType(await stage.run("hi"), "system", "init");
    expect(init?.["tools"]).toEqual(expect.arrayContaining(["Task", "Bash", "Read"]));
    expect(init).toMatchObject({ apiKeySource: "ANTHROPIC_API_KEY", cwd: stage.cwd });
    expect(init?.["claude_code_version"]).toMatch(/^\d+\.\d+\.\d+$/);
    expect(init?.["capabilities"]).toContain("interrupt_receipt_v1");
  });
});

describe("callbacks [DRP-1]", () => {
  test("a hook callback denies a call before it runs [DRP-2]", async () => {
    const stage = await createSdkStage([bash("touch made"), "It was denied."]);
    const received: string[] = [];
    const finished = await stage.run("go", {
      permissionMode: "bypassPermissions",
      allowDangerouslySkipPermissions: true,
      hooks: {
        PreToolUse: [
          {
            matcher: "Bash",
            hooks: [
              async (input) => {
                received.push(input.hook_event_name);
                return {
                  hookSpecificOutput: {
                    hookEventName: "PreToolUse",
                    permissionDecision: "deny",
                    permissionDecisionReason: "not here",
                  },
                };
              },
            ],
          },
        ],
      },
    });
    expect(received).toEqual(["PreToolUse"]);
    expect(existsSync(join(stage.cwd, "made"))).toBe(false);
    expect(JSON.stringify(finished.messages)).toContain("not here");
  });

  test("canUseTool is asked, and its answer and changed input are followed", async () => {
    const stage = await createSdkStage([write("a.txt", "one"), "Done."]);
    const asked: string[] = [];
    await stage.run("go", {
      canUseTool: async (name, input, { toolUseID }) => {
        asked.push(`${name} ${toolUseID !== ""}`);
        return { behavior: "allow", updatedInput: { ...input, content: "two" } };
      },
    });
    expect(asked).toEqual(["Write true"]);
    expect(await import("node:fs").then((fs) => fs.readFileSync(join(stage.cwd, "a.txt"), "utf8"))).toBe(
      "two",
    );
  });

  test("canUseTool refuses a call with a reason that the model reads", async () => {
    const stage = await createSdkStage([write("a.txt", "one"), "Done."]);
    await stage.run("go", { canUseTool: async () => ({ behavior: "deny", message: "keep it clean" }) });
    expect(existsSync(join(stage.cwd, "a.txt"))).toBe(false);
    expect(JSON.stringify(stage.provider.requests[1]?.body)).toContain("keep it clean");
  });

  test("a tool of an in-process MCP server is called in the host's memory", async () => {
    const stage = await createSdkStage([
      { calls: [{ name: "mcp__calc__add", input: { a: 2, b: 3 } }] },
      "5.",
    ]);
    const add = tool("add", "Adds.", { a: z.number(), b: z.number() }, async ({ a, b }) => ({
      content: [{ type: "text", text: `sum ${a + b}` }],
    }));
    const finished = await stage.run("go", {
      mcpServers: { calc: createSdkMcpServer({ name: "calc", version: "1.0.0", tools: [add] }) },
      allowedTools: ["mcp__calc__add"],
    });
    expect(JSON.stringify(stage.provider.requests[1]?.body)).toContain("sum 5");
    expect(ofType(finished, "system", "init")[0]?.["mcp_servers"]).toEqual([
      { name: "calc", status: "connected", source: "sdk" },
    ]);
  });
});

describe("several prompts [DRP-1]", () => {
  test("each gets its own init and result, and the sums grow", async () => {
    const stage = await createSdkStage(["One.", "Two."]);
    const prompts = createPrompts(user("first"));
    const running = query({ prompt: prompts, options: stage.options() });
    const finished = await collect(running, undefined, (message) => {
      if (message.type !== "result") return;
      if (message["result"] === "One.") prompts.send(user("second"));
      else prompts.end();
    });
    expect(results(finished).map((result) => result["result"])).toEqual(["One.", "Two."]);
    expect(ofType(finished, "system", "init")).toHaveLength(2);
    const [one, two] = results(finished).map((result) => Number(result["total_cost_usd"]));
    expect(two).toBeGreaterThan(one ?? 0);
    expect(stage.asked(1)).toContain("second");
    expect(stage.asked(1)).toContain("first");
  });
});

test("the lock file has no native engine of the SDK, which would be installed for nothing [DRP-1]", () => {
  const lock = JSON.parse(readProjectFile("package-lock.json"));
  const names = Object.keys(lock.packages).filter((name) => name.includes("claude-agent-sdk"));
  expect(names).toEqual(["node_modules/@anthropic-ai/claude-agent-sdk"]);
  expect(lock.packages[names[0] ?? ""].optionalDependencies).toBeUndefined();
});

describe("more of the protocol [DRP-1]", () => {
  test("rewindFiles puts files back as they were before a prompt", async () => {
    const stage = await createSdkStage([
      read("old.txt"),
      write("old.txt", "new text\n"),
      write("made.txt", "made\n"),
      "Done.",
    ]);
    stage.write("old.txt", "old text\n");
    const uuid = randomUUID();
    const outcomes: unknown[] = [];
    const options: Options = { ...free, enableFileCheckpointing: true };
    await converse(
      stage,
      options,
      async (message, running, prompts) => {
        if (message.type !== "result") return;
        outcomes.push(await running.rewindFiles(uuid, { dryRun: true }));
        expect(existsSync(join(stage.cwd, "made.txt"))).toBe(true);
        outcomes.push(await running.rewindFiles(uuid));
        outcomes.push(await running.rewindFiles(randomUUID()).catch((error: Error) => error.message));
        prompts.end();
      },
      user("go", { uuid }),
    );
    expect(outcomes).toMatchObject([
      { canRewind: true },
      { canRewind: true },
      expect.stringContaining("checkpoint"),
    ]);
    expect((outcomes[1] as { filesChanged: string[] }).filesChanged).toHaveLength(2);
    expect(readFileSync(join(stage.cwd, "old.txt"), "utf8")).toBe("old text\n");
    expect(existsSync(join(stage.cwd, "made.txt"))).toBe(false);
  });

  test("fallbackModel answers where the model cannot [MDL-8]", async () => {
    const stage = await createSdkStage([{ failure: "overloaded" }, "From the other."]);
    const finished = await stage.run("hi", {
      model: "claude-sonnet-4-5",
      fallbackModel: "claude-haiku-4-5",
      env: { CLAUDE_CODE_MAX_RETRIES: "0" },
    });
    expect(resultOf(finished)).toMatchObject({
      result: "From the other.",
      is_error: false,
      model_fallbacks: [{ from: "claude-sonnet-4-5", to: "claude-haiku-4-5", code: "overloaded" }],
    });
    expect(stage.provider.requests.at(-1)?.body["model"]).toBe("claude-haiku-4-5");
  });

  test("/clear begins a new conversation", async () => {
    const stage = await createSdkStage(["One.", "Two."]);
    const finished = await converse(stage, {}, (message, _, prompts) => {
      if (message.type !== "result") return;
      if (message["result"] === "One.") prompts.send(user("/clear"));
      else if (message["result"] === "") prompts.send(user("second"));
      else prompts.end();
    });
    expect(results(finished)).toHaveLength(3);
    expect(stage.asked(1)).not.toContain("go");
    const ids = new Set(results(finished).map((result) => result["session_id"]));
    expect(ids.size).toBe(2);
  });

  test("ExitPlanMode shows the plan to the host, and the plan is carried out", async () => {
    const stage = await createSdkStage([
      { calls: [{ name: "ExitPlanMode", input: { plan: "Write a file." } }] },
      write("a.txt", "planned"),
      "Done.",
    ]);
    const asked: string[] = [];
    await stage.run("go", {
      permissionMode: "plan",
      canUseTool: async (name, input) => {
        asked.push(`${name} ${String(input["plan"] ?? "")}`.trim());
        return { behavior: "allow", updatedInput: input };
      },
    });
    expect(asked).toEqual(["ExitPlanMode Write a file.", "Write"]);
    expect(existsSync(join(stage.cwd, "a.txt"))).toBe(true);
  });

  test("a session store is sent what is written to the transcript", async () => {
    const stage = await createSdkStage(["One."]);
    const kept: unknown[] = [];
    await stage.run("hi", {
      env: { CLAUDE_CONFIG_DIR: join(stage.home, ".claude") },
      sessionStore: {
        append: async (_key: unknown, entries: readonly unknown[]) => void kept.push(...entries),
        load: async () => null,
      } as unknown as NonNullable<Options["sessionStore"]>,
    });
    const types = kept.map((entry) => (entry as { type: string }).type);
    expect(types).toEqual(expect.arrayContaining(["user", "assistant"]));
  });

  test("a store of sessions receives the transcripts of children, with what their sidecars say [DRP-1]", async () => {
    const stage = await createSdkStage([
      { match: "CHILD-TASK", text: "Looked." },
      {
        calls: [
          { name: "Agent", input: { description: "look", prompt: "CHILD-TASK", subagent_type: "Explore" } },
        ],
      },
      { text: "Done.", times: "any" },
    ]);
    const kept = new Map<string, string[]>();
    await stage.run("hi", {
      env: { CLAUDE_CONFIG_DIR: join(stage.home, ".claude") },
      sessionStore: {
        append: async ({ subpath = "main" }: { subpath?: string }, entries: readonly { type: string }[]) =>
          void kept.set(subpath, [...(kept.get(subpath) ?? []), ...entries.map(({ type }) => type)]),
        load: async () => null,
      } as unknown as NonNullable<Options["sessionStore"]>,
    });
    expect([...kept.keys()].sort()).toEqual(["main", expect.stringMatching(/^subagents\/agent-\w+$/)]);
    const child = kept.get([...kept.keys()].find((key) => key !== "main") ?? "");
    expect(child).toEqual(expect.arrayContaining(["agent_metadata", "user", "assistant"]));
  });

  test("servers that strict configuration ignores are not listed [DRP-1]", async () => {
    const stage = await createSdkStage(["One."]);
    stage.write(".mcp.json", '{ "mcpServers": { "left": { "command": "true" } } }');
    const finished = await stage.run("hi", { strictMcpConfig: true, mcpServers: {} });
    expect(ofType(finished, "system", "init")).toMatchObject([{ mcp_servers: [] }]);
  });

  test("a custom command of the project is run as a prompt", async () => {
    const stage = await createSdkStage(["Fixed."]);
    stage.write(".claude/commands/fix.md", "Please fix $ARGUMENTS now.");
    const finished = await stage.run("/fix the door", { settingSources: ["project"] });
    expect(stage.asked(0)).toContain("Please fix the door now.");
    expect(resultOf(finished)).toMatchObject({ result: "Fixed." });
  });

  test("commands of the session answer without the model, and other words with a slash are a prompt", async () => {
    const stage = await createSdkStage(["One."]);
    const prompts = createPrompts(user("/etc/hosts?"), user("/cost"), user("/context"), user("/help"));
    prompts.end();
    const finished = await collect(query({ prompt: prompts, options: stage.options() }));
    expect(results(finished)).toMatchObject([
      { result: "One.", num_turns: 1 },
      { local_command: "cost", num_turns: 0, result: expect.stringContaining("Total cost: $") },
      { local_command: "context", num_turns: 0, result: expect.stringContaining("Context Usage") },
      { num_turns: 0, result: "/help isn't available in this environment." },
    ]);
    expect(stage.provider.requests).toHaveLength(1);
  });

  test("an image in a prompt reaches the model", async () => {
    const stage = await createSdkStage(["A dot."]);
    const data =
      "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    const content = [
      { type: "text" as const, text: "what is this?" },
      { type: "image" as const, source: { type: "base64" as const, media_type: "image/png" as const, data } },
    ];
    const prompts = createPrompts({ ...user(""), message: { role: "user", content } });
    prompts.end();
    await collect(query({ prompt: prompts, options: stage.options() }));
    expect(JSON.stringify(stage.provider.requests[0]?.body)).toContain("image/png");
  });

  test("an option that cannot be honoured is refused by name [DRP-2, DRP-3]", async () => {
    const stage = await createSdkStage([]);
    const { error, stderr } = await stage.run("hi", { projectConfigRoot: stage.cwd });
    expect(`${error?.message} ${stderr}`).toContain("--project-config-root");
  });

  test("a task budget is put to the model, and beta features go out as a header [DRP-2]", async () => {
    const stage = await createSdkStage(["Hello."]);
    const { error } = await stage.run("hi", {
      taskBudget: { total: 1234 },
      betas: ["context-1m-2025-08-07"],
      promptSuggestions: true,
    });
    expect(error).toBeUndefined();
    expect(stage.asked(0)).toContain("about 1234 tokens");
    expect(stage.provider.requests[0]?.headers["anthropic-beta"]).toContain("context-1m-2025-08-07");
  });

  test("applyFlagSettings adds a rule that holds for the next call, and takes any other setting", async () => {
    const stage = await createSdkStage(["One.", write("a.txt", "a"), bash("echo $SET_LATER"), "Two."]);
    await converse(stage, free, async (message, running, prompts) => {
      if (message.type !== "result") return;
      if (message["result"] !== "One.") return prompts.end();
      await running.applyFlagSettings({ permissions: { deny: ["Write"] } });
      await running.applyFlagSettings({ env: { SET_LATER: "yes" } });
      prompts.send(user("write"));
    });
    expect(existsSync(join(stage.cwd, "a.txt"))).toBe(false);
    expect(JSON.stringify(stage.provider.requests.at(-1)?.body)).toContain("yes");
  });

  test("reads a file for the host, up to a limit", async () => {
    const stage = await createSdkStage(["One."]);
    stage.write("a.txt", "0123456789");
    let answer: unknown;
    await converse(stage, {}, async (message, running, prompts) => {
      if (message.type !== "result") return;
      answer = await running.readFile("a.txt", { maxBytes: 4 });
      prompts.end();
    });
    expect(answer).toMatchObject({ contents: "0123", truncated: true });
  });

  test("is notified of the state of the session before and after a turn", async () => {
    const stage = await createSdkStage(["One."]);
    const finished = await stage.run("hi");
    expect(ofType(finished, "system", "session_state_changed")).toEqual([]);
    expect(finished.error).toBeUndefined();
  });
});
