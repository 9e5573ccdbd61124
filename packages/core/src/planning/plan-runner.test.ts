import type { PolicyRule } from "@retinue/gate/permission-policy.ts";
import { parseRule } from "@retinue/gate/rules/parse-rule.ts";
import { describe, expect, test } from "vitest";
import type { AgentPlan } from "./agent-plan.ts";
import { openRules } from "./plan-runner.ts";

function rule(text: string): PolicyRule {
  const reading = parseRule(text, { list: "deny" });
  if (reading.type !== "rule") throw new Error(text);
  return { rule: reading.rule, anchor: "/work" };
}

const all = ["Read", "Edit", "Write", "Bash"].map((name) => ({ name }));
const plan = (deny: readonly string[], more: Partial<AgentPlan> = {}) => ({
  policy: {
    mode: "default" as const,
    allow: [],
    ask: [],
    deny: deny.map(rule),
    workingDirectories: ["/work"],
    home: "/home/ada",
  },
  tools: all,
  ...more,
});

describe("[FRN-2] what another vendor's program could get around", () => {
  test.each([
    ["Read(secret/**)", true, false],
    ["Edit(kept/**)", true, false],
    ["Write(kept/**)", true, false],
    ["Bash(rm *)", true, true],
    ["WebFetch(domain:example.com)", true, true],
    ["RunnerTool", true, true],
    // Our own agents, skills and servers are none of its business.
    ["Agent(other)", false, false],
    ["Skill(deploy)", false, false],
    ["mcp__files", false, false],
  ])("%s: %s, and in a sandbox %s", (text, isOpen, isOpenInSandbox) => {
    expect(openRules(plan([text]), false).length > 0).toBe(isOpen);
    expect(openRules(plan([text]), true).length > 0).toBe(isOpenInSandbox);
  });

  test("rules about a server that it is handed, and a server that is narrowed", () => {
    const mcpServers = [{ name: "files", own: true }];
    expect(openRules(plan(["mcp__files__delete"], { mcpServers }), true)).toEqual(["mcp__files__delete"]);
    const narrowed = [{ name: "files", own: true, tools: ["list"] }];
    expect(openRules(plan([], { mcpServers: narrowed }), true)).toEqual([
      "only some tools of the MCP server files",
    ]);
  });

  test("nothing where nothing is denied", () => {
    expect(openRules(plan([]), false)).toEqual([]);
  });
});
