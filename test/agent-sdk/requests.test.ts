import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type HookInput, type Query, query } from "@anthropic-ai/claude-agent-sdk";
import { expect, test } from "vitest";
import { projectRoot } from "../project-files.ts";
import {
  bash,
  collect,
  converse,
  createPrompts,
  createSdkStage,
  free,
  ofType,
  results,
  user,
} from "./sdk-stage.ts";

type Request = (request: { readonly subtype: string }) => Promise<{ readonly response?: unknown }>;

/** The SDK has no method for some requests, and sends them all the same. */
async function ask(running: Query, subtype: string, more: object = {}): Promise<unknown> {
  const send = (running as unknown as { request: Request }).request.bind(running);
  return (await send({ subtype, ...more })).response;
}
const refusalOf = (running: Query, subtype: string, more: object = {}): Promise<string> =>
  ask(running, subtype, more).then(
    () => "accepted",
    (error: unknown) => String(error),
  );

test("a host reads settings, rules and the output of tasks, changes settings and renames the session [DRP-1]", async () => {
  const stage = await createSdkStage([
    { calls: [{ name: "Bash", input: { command: "echo from-task", run_in_background: true } }] },
    "Started.",
    "Noted.",
  ]);
  const changes: HookInput[] = [];
  const known: Record<string, unknown> = {};
  let task = "";
  const finished = await converse(
    stage,
    {
      ...free,
      disallowedTools: ["WebFetch"],
      hooks: {
        ConfigChange: [
          {
            hooks: [
              async (input) => {
                changes.push(input);
                return {};
              },
            ],
          },
        ],
      },
    },
    async (message, running, prompts) => {
      if (message.type === "system" && message.subtype === "task_started") task = message.task_id;
      if (message.type !== "system" || message.subtype !== "task_notification") return;
      known["settings"] = await ask(running, "get_settings");
      known["rules"] = await ask(running, "list_permission_rules");
      known["output"] = await ask(running, "get_task_output", { task_id: task });
      known["cost"] = await ask(running, "get_session_cost");
      known["noTask"] = await refusalOf(running, "get_task_output", { task_id: "none" });
      await ask(running, "update_settings", { source: "localSettings", settings: { model: "haiku" } });
      await ask(running, "rename_session", { title: "  Another title " });
      known["noTitle"] = await refusalOf(running, "rename_session", { title: " " });
      known["outside"] = await running.readFile("/etc/passwd");
      prompts.end();
    },
  );
  expect(known["settings"]).toMatchObject({
    applied: { permissionMode: "bypassPermissions" },
    effective: { permissions: { deny: expect.arrayContaining(["WebFetch"]) } },
  });
  expect(known["rules"]).toMatchObject({
    state: { rules: expect.arrayContaining([{ behavior: "deny", rule: "WebFetch" }]) },
  });
  expect(known["output"]).toMatchObject({ output: "from-task\n", truncated: false });
  expect(known["cost"]).toMatchObject({ text: expect.stringContaining("Total cost: $") });
  expect(known["noTask"]).toContain("none");
  expect(known["noTitle"]).toContain("title");
  expect(known["outside"]).toBeNull();
  expect(changes).toMatchObject([{ hook_event_name: "ConfigChange", source: "local_settings" }]);
  const local = readFileSync(join(stage.cwd, ".claude/settings.local.json"), "utf8");
  expect(JSON.parse(local)).toEqual({ model: "haiku" });
  expect(ofType(finished, "system", "session_title_changed")).toMatchObject([{ title: "Another title" }]);
});

test("servers offer prompts as commands, pages and tools to the host, and can be switched off [DRP-1]", async () => {
  const stage = await createSdkStage(["Asked.", "Off."]);
  const known: Record<string, unknown> = {};
  const server = join(projectRoot, "test/fixtures/mcp/offering-server.mjs");
  const finished = await converse(
    stage,
    { mcpServers: { st: { command: process.execPath, args: [server] } } },
    async (message, running, prompts) => {
      if (message.type !== "result") return;
      if (known["page"] !== undefined) return prompts.end();
      known["commands"] = (await running.supportedCommands()).map(({ name }) => name);
      known["status"] = await running.mcpServerStatus();
      known["page"] = await running.readMcpResource("st", "ui://page");
      known["file"] = await refusalOf(running, "mcp_read_resource", { serverName: "st", uri: "file:///x" });
      known["called"] = await ask(running, "mcp_call", { tool: "mcp__st__hi" });
      known["limited"] = await refusalOf(running, "mcp_call", { tool: "mcp__st__hi", timeout_ms: 1 });
      known["looser"] = await refusalOf(running, "set_mcp_permission_mode_override", {
        serverName: "st",
        mode: "bypassPermissions",
      });
      await ask(running, "set_mcp_permission_mode_override", { serverName: "st", mode: "default" });
      known["asked"] = await ask(running, "list_permission_rules");
      await running.toggleMcpServer("st", false);
      known["off"] = (await running.mcpServerStatus()).map(({ status }) => status);
      prompts.send(user("and now?"));
    },
    user("/mcp__st__ask Eve old books"),
  );
  expect(stage.asked(0)).toContain("Ask Eve about old books.");
  expect(ofType(finished, "system", "commands_changed")[0]).toMatchObject({
    commands: expect.arrayContaining([
      { name: "mcp__st__ask", description: "Asks.", argumentHint: "[whom] [what]" },
    ]),
  });
  expect(known["commands"]).toContain("mcp__st__ask");
  expect(known["status"]).toMatchObject([
    { name: "st", status: "connected", transport: "stdio", scope: "dynamic", config: { args: [server] } },
  ]);
  expect(known["page"]).toMatchObject({ contents: [{ uri: "ui://page", text: "<p>page</p>" }] });
  expect(known["file"]).toContain("ui://");
  expect(known["called"]).toMatchObject({ content: [{ text: "hi there" }] });
  expect(known["limited"]).toContain("timeout_ms is not supported");
  expect(known["looser"]).toContain("only tighten");
  expect(known["asked"]).toMatchObject({
    state: { rules: expect.arrayContaining([{ behavior: "ask", rule: "mcp__st" }]) },
  });
  expect(known["off"]).toEqual(["disabled"]);
});

test("answers that are cut, refused or empty are continued, and thinking is counted [DRP-1]", async () => {
  const stage = await createSdkStage([
    { thinking: "Hmm, let me see.", text: "The first half", stopReason: "max_tokens" },
    "and the second.",
    { text: "No.", stopReason: "refusal" },
    "A part of it.",
    { text: "", stopReason: "end_turn" },
    "Words.",
  ]);
  const prompts = createPrompts(user("one"), user("two"), user("three"));
  prompts.end();
  const finished = await collect(query({ prompt: prompts, options: stage.options() }));
  expect(results(finished)).toMatchObject([
    { subtype: "success", result: "and the second.", num_turns: 2, terminal_reason: "completed" },
    { subtype: "success", result: "A part of it.", num_turns: 2 },
    { subtype: "success", result: "Words.", num_turns: 2 },
  ]);
  expect(ofType(finished, "user").filter(({ isSynthetic }) => isSynthetic)).toHaveLength(3);
  expect(ofType(finished, "system", "informational")).toMatchObject([{ level: "notice" }]);
  expect(ofType(finished, "system", "thinking_tokens")).toMatchObject([{ estimated_tokens: 4 }]);
});

test("the list of tasks is kept for the session, and hooks may refuse a task [DRP-1]", async () => {
  const call = (name: string, input: object) => ({ calls: [{ name, input }] });
  const stage = await createSdkStage([
    call("TaskCreate", { subject: "First", description: "Do it" }),
    call("TaskCreate", { subject: "Forbidden" }),
    call("TaskUpdate", { taskId: "1", status: "completed" }),
    call("TaskList", {}),
    call("TaskGet", { taskId: "7" }),
    "Done.",
  ]);
  const heard: unknown[] = [];
  const finished = await stage.run("go", {
    hooks: {
      TaskCreated: [
        {
          hooks: [
            async (input) => {
              const { task_subject: subject } = input as { task_subject?: string };
              heard.push(subject);
              return subject === "Forbidden" ? { decision: "block", reason: "not this one" } : {};
            },
          ],
        },
      ],
      TaskCompleted: [
        {
          hooks: [
            async (input) => {
              heard.push(input.hook_event_name);
              return {};
            },
          ],
        },
      ],
    },
  });
  expect(heard).toEqual(["First", "Forbidden", "TaskCompleted"]);
  expect(ofType(finished, "user").map((message) => message["tool_use_result"])).toMatchObject([
    { task: { id: "1", subject: "First", description: "Do it" } },
    expect.stringContaining("not this one"),
    { success: true, statusChange: { from: "pending", to: "completed" } },
    { tasks: [{ id: "1", subject: "First", status: "completed", blockedBy: [] }] },
    expect.stringContaining("#7"),
  ]);
});

test("prompts with an id are followed through their turn, and long commands are tasks [DRP-1]", async () => {
  const stage = await createSdkStage([bash("until [ -e seen ]; do sleep 0.05; done"), "Done."]);
  const uuid = randomUUID();
  const finished = await converse(
    stage,
    { ...free, title: "A title" },
    (message, _running, prompts) => {
      if (message.type === "system" && message.subtype === "task_started") stage.write("seen", "");
      if (message.type === "result") prompts.end();
    },
    user("go", { uuid }),
  );
  const lifecycle = finished.messages.filter((message) => String(message.type) === "command_lifecycle");
  expect(lifecycle.map(({ state, command_uuid }) => [state, command_uuid])).toEqual([
    ["queued", uuid],
    ["started", uuid],
    ["completed", uuid],
  ]);
  expect(ofType(finished, "system", "session_title_changed")).toMatchObject([{ title: "A title" }]);
  expect(ofType(finished, "system", "init")).toMatchObject([{ user_message_uuids: [uuid] }]);
  expect(ofType(finished, "assistant")).toMatchObject([
    { user_message_uuid: uuid },
    { user_message_uuid: uuid },
  ]);
  expect(results(finished)).toMatchObject([{ user_message_uuid: uuid, num_turns: 2 }]);
  expect(ofType(finished, "system", "task_started")).toMatchObject([
    { task_type: "local_bash", is_backgrounded: false },
  ]);
  expect(ofType(finished, "system", "task_notification")).toMatchObject([{ status: "completed" }]);
  expect(ofType(finished, "user")).toMatchObject([{ message: { content: [{ is_error: false }] } }]);
});
