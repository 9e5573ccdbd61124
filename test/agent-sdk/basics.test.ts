import { existsSync } from "node:fs";
import { join } from "node:path";
import { createSdkMcpServer, query, tool } from "@anthropic-ai/claude-agent-sdk";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { readProjectFile } from "../project-files.ts";
import {
  bash,
  blockTypes,
  collect,
  createPrompts,
  createSdkStage,
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
    const heard: string[] = [];
    const finished = await stage.run("go", {
      permissionMode: "bypassPermissions",
      allowDangerouslySkipPermissions: true,
      hooks: {
        PreToolUse: [
          {
            matcher: "Bash",
            hooks: [
              async (input) => {
                heard.push(input.hook_event_name);
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
    expect(heard).toEqual(["PreToolUse"]);
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
