import { randomUUID } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type HookInput, type Options, type Query, query } from "@anthropic-ai/claude-agent-sdk";
import { describe, expect, test } from "vitest";
import { projectRoot } from "../project-files.ts";
import { readJsonLines } from "../scenarios/run-command.ts";
import { runInside } from "./run-inside.ts";
import {
  bash,
  blockTypes,
  collect,
  converse,
  createPrompts,
  createSdkStage,
  free,
  ofType,
  resultOf,
  results,
  user,
  write,
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
  expect(JSON.parse(local)).toMatchObject({ model: "haiku" });
  expect(ofType(finished, "system", "session_title_changed")).toMatchObject([{ title: "Another title" }]);
});

test("a host asks for files and hooks, and registers a folder whose skills are then there [DRP-1]", async () => {
  const stage = await createSdkStage(["First."]);
  mkdirSync(join(stage.cwd, "app/.claude/skills/ship"), { recursive: true });
  writeFileSync(
    join(stage.cwd, "app/.claude/skills/ship/SKILL.md"),
    "---\ndescription: Ships.\n---\nShip it.",
  );
  writeFileSync(join(stage.cwd, "app/report.txt"), "x");
  mkdirSync(join(stage.cwd, ".claude"), { recursive: true });
  const hook = { type: "command", command: "true \u0007", timeout: 5, async: true };
  const hooks = { PreToolUse: [{ matcher: "Bash", hooks: [hook] }] };
  writeFileSync(join(stage.cwd, ".claude/settings.json"), JSON.stringify({ hooks }));
  const known: Record<string, unknown> = {};
  const added: unknown[] = [];
  await converse(
    stage,
    {
      settingSources: ["project"],
      hooks: {
        Stop: [{ hooks: [async () => ({})] }],
        DirectoryAdded: [
          {
            hooks: [
              async (input) => {
                added.push(input);
                return {};
              },
            ],
          },
        ],
      },
    },
    async (message, running, prompts) => {
      if (message.type !== "result") return;
      known["files"] = await ask(running, "file_suggestions", { query: "@rep" });
      known["noQuery"] = await refusalOf(running, "file_suggestions");
      known["hooks"] = await ask(running, "get_hooks_listing");
      known["color"] = await refusalOf(running, "set_color", { color: "red" });
      known["outside"] = await refusalOf(running, "register_repo_root", { directory: "/etc" });
      known["missing"] = await refusalOf(running, "register_repo_root", { directory: "gone" });
      known["own"] = await refusalOf(running, "register_repo_root", { directory: "." });
      await ask(running, "register_repo_root", { directory: "app", reload_skills: true });
      known["again"] = await refusalOf(running, "register_repo_root", { directory: "app" });
      known["skills"] = await ask(running, "reload_skills");
      known["rules"] = await ask(running, "list_permission_rules");
      prompts.end();
    },
  );
  expect(known["files"]).toEqual({ suggestions: [{ path: "app/report.txt" }] });
  expect(known["noQuery"]).toContain("needs a query");
  expect(known["hooks"]).toMatchObject({
    events: [
      { name: "PreToolUse", supportsMatcher: true, hookCount: 1 },
      { name: "Stop", supportsMatcher: false, hookCount: 1 },
    ],
    hooks: [
      {
        event: "PreToolUse",
        matcher: "Bash",
        source: "projectSettings",
        type: "command",
        commandText: "true \ufffd",
        contentLabel: "Command",
        timeout: 5,
        runsInBackground: true,
      },
      { event: "Stop", source: "sessionHook", type: "callback" },
    ],
    policy: { disabledByPolicy: false, managedOnly: false, allDisabled: false, policyHookCount: 0 },
  });
  expect(known["color"]).toContain("no accent colour");
  expect(known["outside"]).toContain("neither below");
  expect(known["missing"]).toContain("there is no folder");
  expect(known["own"]).toContain("already");
  expect(known["again"]).toContain("already");
  expect(known["skills"]).toMatchObject({
    skills: expect.arrayContaining([expect.objectContaining({ name: "ship" })]),
  });
  expect(known["rules"]).toMatchObject({
    state: { workspaceDirectories: expect.arrayContaining([{ path: join(stage.cwd, "app") }]) },
  });
  expect(added).toMatchObject([{ hook_event_name: "DirectoryAdded", source: "register_repo_root" }]);
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
  const received: unknown[] = [];
  const finished = await stage.run("go", {
    hooks: {
      TaskCreated: [
        {
          hooks: [
            async (input) => {
              const { task_subject: subject } = input as { task_subject?: string };
              received.push(subject);
              return subject === "Forbidden" ? { decision: "block", reason: "not this one" } : {};
            },
          ],
        },
      ],
      TaskCompleted: [
        {
          hooks: [
            async (input) => {
              received.push(input.hook_event_name);
              return {};
            },
          ],
        },
      ],
    },
  });
  expect(received).toEqual(["First", "Forbidden", "TaskCompleted"]);
  expect(ofType(finished, "user").map((message) => message["tool_use_result"])).toMatchObject([
    { task: { id: "1", subject: "First", description: "Do it" } },
    expect.stringContaining("not this one"),
    { success: true, statusChange: { from: "pending", to: "completed" } },
    { tasks: [{ id: "1", subject: "First", status: "completed", blockedBy: [] }] },
    expect.stringContaining("#7"),
  ]);
});

test("prompts with an id are followed through their turn [DRP-1]", async () => {
  const stage = await createSdkStage([bash("echo done"), "Done."]);
  const uuid = randomUUID();
  const finished = await converse(
    stage,
    { ...free, title: "A title" },
    (message, _running, prompts) => {
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
  expect(ofType(finished, "user")).toMatchObject([{ message: { content: [{ is_error: false }] } }]);
});

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

  test("a child runs in the background unless its call changes that, and may ask the host", async () => {
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
      agents: defined,
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
    expect(JSON.parse(text)).toMatchObject({ permissions: { allow: ["Bash(touch *)"] } });
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
    const received: string[] = [];
    const each = [
      {
        hooks: [
          async ({ hook_event_name: event }: { hook_event_name: string }) => {
            received.push(event);
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
    expect(received).toEqual(
      expect.arrayContaining([
        "InstructionsLoaded",
        "UserPromptSubmit",
        "PreToolUse",
        "PostToolBatch",
        "Stop",
      ]),
    );
    expect(received).toContain("MessageDisplay");
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

describe("requests about the session as a whole [DRP-1]", () => {
  test("a title, an aside, the plan and the text of the conversation are given; env is not written", async () => {
    const stage = await createSdkStage(["One.", "Two is the answer."]);
    const known: Record<string, unknown> = {};
    const finished = await converse(stage, {}, async (message, running, prompts) => {
      if (message.type !== "result") return;
      const description = "Fix the login of people whose name has an umlaut in it, and add tests";
      known["title"] = await ask(running, "generate_session_title", { description });
      known["aside"] = await ask(running, "side_question", { question: "what is 1 + 1?" });
      known["plan"] = await ask(running, "get_plan");
      known["text"] = await ask(running, "export_conversation");
      const uuid = randomUUID();
      known["rewind"] = await running.rewindFiles(uuid, { dryRun: true });
      known["rewound"] = await running.rewindFiles(uuid).catch((error: Error) => error.message);
      const settings = { env: { A: "1" } };
      known["env"] = await refusalOf(running, "update_settings", { source: "userSettings", settings });
      prompts.end();
    });
    expect(known).toMatchObject({
      title: { title: "Fix the login of people whose name has an umlaut in it, and" },
      aside: { response: "Two is the answer.", synthetic: false },
      plan: { exists: false },
      text: { text: "> go\n\nOne.", default_filename: expect.stringMatching(/^\d{8}-\d{6}-go\.txt$/) },
      rewind: { canRewind: false, error: expect.any(String) },
      rewound: "File checkpointing is not enabled.",
      env: expect.stringContaining("env"),
    });
    const [progress] = ofType(finished, "system", "control_request_progress");
    expect(progress).toMatchObject({ status: "started", request_id: expect.any(String) });
    // The aside was asked with the messages before it and without tools, and left nothing behind.
    expect(stage.provider.requests[1]?.request.tools).toEqual([]);
    expect(stage.asked(1)).toContain("One.");
    expect(stage.transcripts().size).toBe(1);
  });

  test("set_cwd moves a session that has not started, and refuses one that has", async () => {
    const stage = await createSdkStage(["One."]);
    stage.write("below/a.txt", "x");
    const prompts = createPrompts();
    const running = query({ prompt: prompts, options: stage.options() });
    await running.initializationResult();
    expect(await ask(running, "set_cwd", { path: "below" })).toMatchObject({ status: "ok", changed: true });
    expect(await refusalOf(running, "set_cwd", { path: "nowhere" })).toContain("no folder");
    prompts.send(user("go"));
    const refusals: string[] = [];
    const finished = await collect(running, undefined, async (message) => {
      if (message.type !== "result") return;
      refusals.push(await refusalOf(running, "set_cwd", { path: ".." }));
      prompts.end();
    });
    expect(ofType(finished, "system", "init")[0]).toMatchObject({ cwd: join(stage.cwd, "below") });
    expect(refusals).toEqual([expect.stringContaining("the conversation has started")]);
  });

  test("end_session ends what runs and the process, while its input is open", async () => {
    const stage = await createSdkStage([bash("sleep 60"), "Never."]);
    const finished = await converse(stage, free, async (message, running) => {
      if (message.type === "assistant") await ask(running, "end_session");
    });
    expect(resultOf(finished)).toMatchObject({ subtype: "error_during_execution" });
  });

  test("a server of the host's own process that is named twice is there once", async () => {
    const stage = await createSdkStage(["One."]);
    const config = JSON.stringify({ mcpServers: { calc: { type: "sdk", name: "calc" } } });
    const lines = [
      {
        type: "control_request",
        request_id: "1",
        request: { subtype: "initialize", sdkMcpServers: ["calc"] },
      },
      { type: "user", message: { role: "user", content: "hi" } },
    ];
    const flags = ["--input-format", "stream-json", "--output-format", "stream-json", "--mcp-config", config];
    const { out } = await runInside(stage, flags, {
      input: `${lines.map((line) => JSON.stringify(line)).join("\n")}\n`,
      environment: { ANTHROPIC_BASE_URL: stage.provider.url, ANTHROPIC_API_KEY: "x" },
    });
    const init = readJsonLines(out).find(({ subtype }) => subtype === "init");
    expect(init?.["mcp_servers"]).toMatchObject([{ name: "calc", source: "sdk" }]);
  });
});
