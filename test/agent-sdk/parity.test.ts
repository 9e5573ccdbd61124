import { randomUUID } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Options } from "@anthropic-ai/claude-agent-sdk";
import { describe, expect, test } from "vitest";
import {
  bash,
  blockTypes,
  converse,
  createSdkStage,
  free,
  ofType,
  resultOf,
  results,
  user,
  write,
} from "./sdk-stage.ts";

const agents: Options = { ...free, agents: { helper: { description: "helps", prompt: "You help." } } };
const child = (more: object = {}) => ({
  calls: [
    { name: "Agent", input: { description: "look", prompt: "Look.", subagent_type: "helper", ...more } },
  ],
});

describe("what programs see as from the other engine [DRP-1]", () => {
  test("every block is a message without a stop reason, under the id of its line", async () => {
    const stage = await createSdkStage([{ text: "Look.", ...bash("echo 1") }, "Done."]);
    const finished = await stage.run("go", free);
    expect(blockTypes(finished)).toEqual(["text", "tool_use", "text"]);
    const said = ofType(finished, "assistant") as unknown as {
      uuid: string;
      message: { stop_reason: null };
    }[];
    expect(said.map(({ message }) => message.stop_reason)).toEqual([null, null, null]);
    expect(new Set(said.map(({ uuid }) => uuid)).size).toBe(3);
  });

  test("a child runs in the background unless its call says otherwise, and may ask the host", async () => {
    const stage = await createSdkStage([
      child(),
      { match: "You help.", ...write("made.txt", "x") },
      { match: "You help.", text: "Made it." },
      "Waiting.",
      "Noted.",
    ]);
    const asked: unknown[] = [];
    const { agents: defined } = agents;
    const finished = await stage.run("go", {
      ...(defined === undefined ? {} : { agents: defined }),
      canUseTool: async (tool, input, { agentID }) => {
        asked.push([tool, typeof agentID]);
        return { behavior: "allow", updatedInput: input };
      },
    });
    expect(ofType(finished, "system", "task_started")[0]).toMatchObject({
      is_backgrounded: true,
      prompt: "Look.",
    });
    expect(asked).toContainEqual(["Write", "string"]);
    expect(results(finished)).toHaveLength(2);
    expect(existsSync(join(stage.cwd, "made.txt"))).toBe(true);
  });

  test("a child in the background has the tools of the host's servers", async () => {
    const { createSdkMcpServer, tool } = await import("@anthropic-ai/claude-agent-sdk");
    const called: string[] = [];
    const ring = tool("ring", "rings", {}, async () => {
      called.push("ring");
      return { content: [{ type: "text", text: "rung" }] };
    });
    const stage = await createSdkStage([
      child(),
      { match: "You help.", calls: [{ name: "mcp__bell__ring", input: {} }] },
      { match: "You help.", text: "Rang." },
      "Waiting.",
      "Noted.",
    ]);
    const bell = createSdkMcpServer({ name: "bell", tools: [ring] });
    await stage.run("go", { ...agents, mcpServers: { bell } });
    expect(called).toEqual(["ring"]);
  });

  test("a command in the background is a task, and its end starts a turn", async () => {
    const background = { command: "echo late", run_in_background: true };
    const stage = await createSdkStage([
      { calls: [{ name: "Bash", input: background }] },
      "Started.",
      "Noted.",
    ]);
    const finished = await stage.run("go", free);
    expect(ofType(finished, "system", "task_started")[0]).toMatchObject({ task_type: "local_bash" });
    expect(ofType(finished, "system", "task_notification")[0]).toMatchObject({ status: "completed" });
    expect(resultOf(finished)).toMatchObject({ result: "Noted.", origin: { kind: "task-notification" } });
  });

  test("files that a child changes are put back, by another process too", async () => {
    const uuid = randomUUID();
    const stage = await createSdkStage([
      child({ run_in_background: false }),
      { match: "You help.", ...write("kid.txt", "x") },
      { match: "You help.", text: "Done." },
      "First.",
      "Second.",
    ]);
    const options: Options = { ...agents, enableFileCheckpointing: true };
    const end = (message: { type: string }, _: unknown, prompts: { end(): void }) =>
      message.type === "result" ? prompts.end() : undefined;
    const first = await converse(stage, options, end, user("go", { uuid }));
    const file = join(stage.cwd, "kid.txt");
    expect(existsSync(file)).toBe(true);
    const resume = String(resultOf(first)?.["session_id"]);
    await converse(stage, { ...options, resume }, async (message, running, prompts) => {
      if (message.type !== "result") return;
      expect(await running.rewindFiles(uuid)).toMatchObject({ canRewind: true, filesChanged: [file] });
      prompts.end();
    });
    expect(existsSync(file)).toBe(false);
  });

  test("a deferred call does not run and ends the turn", async () => {
    const stage = await createSdkStage([bash("touch made.txt"), "Never said."]);
    const finished = await stage.run("go", {
      ...free,
      hooks: {
        PreToolUse: [
          {
            hooks: [
              async () => ({
                hookSpecificOutput: { hookEventName: "PreToolUse", permissionDecision: "defer" },
              }),
            ],
          },
        ],
      },
    });
    expect(existsSync(join(stage.cwd, "made.txt"))).toBe(false);
    expect(resultOf(finished)).toMatchObject({
      subtype: "success",
      stop_reason: "tool_deferred",
      deferred_tool_use: { name: "Bash" },
    });
  });

  test("rules go to the file that the host names", async () => {
    const stage = await createSdkStage([write("a.txt", "x"), "Done."]);
    const rules = [{ toolName: "Bash", ruleContent: "touch *" }];
    await stage.run("go", {
      canUseTool: async (_, input) => ({
        behavior: "allow",
        updatedInput: input,
        updatedPermissions: [{ type: "addRules", rules, behavior: "allow", destination: "projectSettings" }],
      }),
    });
    const text = readFileSync(join(stage.cwd, ".claude", "settings.json"), "utf8");
    expect(JSON.parse(text)).toEqual({ permissions: { allow: ["Bash(touch *)"] } });
  });

  test("hooks of the project run, and are reported, where the host names its settings", async () => {
    const stage = await createSdkStage([bash("touch made.txt"), "Done."]);
    const hook = { matcher: "Bash", hooks: [{ type: "command", command: "echo no >&2; exit 2" }] };
    mkdirSync(join(stage.cwd, ".claude"), { recursive: true });
    writeFileSync(
      join(stage.cwd, ".claude/settings.json"),
      JSON.stringify({ hooks: { PreToolUse: [hook] } }),
    );
    const finished = await stage.run("go", { ...free, settingSources: ["project"], includeHookEvents: true });
    expect(existsSync(join(stage.cwd, "made.txt"))).toBe(false);
    expect(ofType(finished, "system", "hook_response")[0]).toMatchObject({
      hook_name: "PreToolUse:Bash",
      stderr: "no\n",
      exit_code: 2,
    });
  });

  test("callbacks for every event of the SDK can be registered", async () => {
    const { HOOK_EVENTS } = await import("@anthropic-ai/claude-agent-sdk");
    const stage = await createSdkStage([bash("echo 1"), "Done."]);
    writeFileSync(join(stage.cwd, "CLAUDE.md"), "Be kind.");
    const heard: string[] = [];
    const each = [
      {
        hooks: [
          async ({ hook_event_name: event }: { hook_event_name: string }) => {
            heard.push(event);
            return {};
          },
        ],
      },
    ];
    const finished = await stage.run("go", {
      ...free,
      hooks: Object.fromEntries(HOOK_EVENTS.map((event) => [event, each])),
    });
    expect(resultOf(finished)).toMatchObject({ result: "Done." });
    expect(heard).toEqual(
      expect.arrayContaining([
        "InstructionsLoaded",
        "UserPromptSubmit",
        "PreToolUse",
        "PostToolBatch",
        "Stop",
      ]),
    );
    expect(heard).toContain("MessageDisplay");
  });

  test("/compact works however short the conversation is", async () => {
    const stage = await createSdkStage(["One.", { text: "<summary>Short.</summary>" }]);
    let sent = false;
    const finished = await converse(stage, {}, (message, _, prompts) => {
      if (message.type !== "result") return;
      if (sent) return prompts.end();
      sent = true;
      prompts.send(user("/compact"));
    });
    expect(ofType(finished, "system", "compact_boundary")).toHaveLength(1);
  });
});
