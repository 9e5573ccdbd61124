import { expect, test } from "vitest";
import { agentHooks, type HookRule } from "./hook-rule.ts";

const handler = { type: "command", command: "check" } as const;
const hooks: readonly HookRule[] = [
  { event: "Stop", matcher: "x", handler },
  { event: "PreToolUse", matcher: "Bash", handler },
];

test("[HKS-3] Stop in a subagent's definition is SubagentStop, and every hook is tied to its own agent", () => {
  const origin = { type: "agent", agentId: "a-1", name: "reviewer" };
  expect(agentHooks(hooks, { id: "a-1", name: "reviewer", isSubagent: true })).toEqual([
    { hook: { event: "SubagentStop", handler }, origin },
    { hook: hooks[1], origin },
  ]);
});

test("the main agent's own Stop stays what it is", () => {
  const own = agentHooks(hooks, { id: "main", name: "reviewer", isSubagent: false });
  expect(own.map(({ hook }) => hook.event)).toEqual(["Stop", "PreToolUse"]);
});
