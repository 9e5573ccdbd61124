import { describe, expect, test } from "vitest";
import {
  type FiredEvent,
  firedHookEvents,
  type HookPayloads,
  type HookSituation,
  hookEvents,
  hookInput,
  hookSubject,
} from "./hook-input.ts";

const situation: HookSituation = {
  sessionId: "s-1",
  transcript: "/t/s-1.jsonl",
  cwd: "/project",
  permissionMode: "default",
};
const call = { tool: "Bash", input: { command: "ls" }, callId: "c-1" };
const callFields = { tool_name: "Bash", tool: "Bash", tool_input: { command: "ls" }, tool_use_id: "c-1" };

type Case = {
  [Event in FiredEvent]: readonly [Event, HookPayloads[Event], Record<string, unknown>, string | undefined];
}[FiredEvent];

const cases: readonly Case[] = [
  ["PreToolUse", call, callFields, "Bash"],
  [
    "PostToolUse",
    { ...call, response: { stdout: "a" }, durationMs: 5 },
    { ...callFields, tool_response: { stdout: "a" }, duration_ms: 5 },
    "Bash",
  ],
  [
    "PostToolUseFailure",
    { ...call, error: "no such file", isInterrupt: false },
    { ...callFields, error: "no such file", is_interrupt: false },
    "Bash",
  ],
  ["PermissionRequest", call, callFields, "Bash"],
  [
    "Notification",
    { message: "Asking.", kind: "permission_prompt" },
    { message: "Asking.", notification_type: "permission_prompt" },
    "permission_prompt",
  ],
  ["UserPromptSubmit", { prompt: "Go.", source: "sdk" }, { prompt: "Go.", source: "sdk" }, undefined],
  ["SessionStart", { source: "resume", model: "m" }, { source: "resume", model: "m" }, "resume"],
  ["SessionEnd", { reason: "other" }, { reason: "other" }, "other"],
  [
    "Stop",
    { isRepeated: true, lastMessage: "Done." },
    { stop_hook_active: true, last_assistant_message: "Done." },
    undefined,
  ],
  [
    "SubagentStart",
    { agentId: "a-1", agentType: "Explore" },
    { agent_id: "a-1", agent_type: "Explore" },
    "Explore",
  ],
  [
    "SubagentStop",
    { isRepeated: false, agentId: "a-1", agentType: "Explore", agentTranscript: "/t/a-1.jsonl" },
    {
      stop_hook_active: false,
      agent_id: "a-1",
      agent_type: "Explore",
      agent_transcript_path: "/t/a-1.jsonl",
    },
    "Explore",
  ],
  [
    "PreCompact",
    { trigger: "auto", instructions: null },
    { trigger: "auto", custom_instructions: null },
    "auto",
  ],
  ["PostCompact", { trigger: "auto", summary: "S" }, { trigger: "auto", compact_summary: "S" }, "auto"],
  [
    "TeammateIdle",
    { teammate: "ada", team: "squad" },
    { teammate_name: "ada", team_name: "squad" },
    undefined,
  ],
  ["TaskCreated", { taskId: "1", subject: "S" }, { task_id: "1", task_subject: "S" }, undefined],
  [
    "TaskCompleted",
    { taskId: "1", subject: "S", description: "D", teammate: "ada", team: "squad" },
    { task_id: "1", task_subject: "S", task_description: "D", teammate_name: "ada", team_name: "squad" },
    undefined,
  ],
];

describe("[HKS-1, HKS-5] the JSON a hook reads", () => {
  test.each(cases)("has the fields of %s beside the common ones", (event, payload, fields) => {
    expect(hookInput(event, payload as never, situation)).toEqual({
      session_id: "s-1",
      transcript_path: "/t/s-1.jsonl",
      cwd: "/project",
      permission_mode: "default",
      hook_event_name: event,
      ...fields,
    });
  });

  test.each(cases)("%s is matched by its subject", (event, payload, _fields, subject) => {
    expect(hookSubject(event, payload as never)).toBe(subject);
    expect(subject === undefined).toBe(hookEvents[event].matches === "none");
  });

  test("names the agent only inside a subagent", () => {
    const inside = hookInput("PreToolUse", call, { ...situation, agentId: "a-1", agentType: "Explore" });
    expect(inside).toMatchObject({ agent_id: "a-1", agent_type: "Explore" });
    expect(hookInput("PreToolUse", call, situation)).not.toHaveProperty("agent_id");
  });

  test("is known for every event that happens here", () => {
    expect(cases.map(([event]) => event).sort()).toEqual([...firedHookEvents].sort());
  });
});

test("[HKS-7] a call of a tool of an MCP server shows whose tool it is", () => {
  const server = { name: "docs", source: "user" };
  expect(hookInput("PreToolUse", { ...call, server }, situation)).toMatchObject({ mcp_server: server });
  expect(hookInput("PreToolUse", call, situation)).not.toHaveProperty("mcp_server");
});
