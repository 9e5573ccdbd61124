import { describe, expect, it } from "vitest";
import type { PolicyRule } from "../decide.ts";
import { parseRule } from "../rules/parse-rule.ts";
import { createSessionApprovals } from "./session-approvals.ts";

function ruleOf(text: string): PolicyRule {
  const reading = parseRule(text);
  if (reading.type === "invalid") throw new Error(reading.reason);
  return { rule: reading.rule, anchor: "/projects/app" };
}

describe("what is granted while a session runs", () => {
  it("gives a rule for the session to every agent, and a rule for one agent to that one only", () => {
    const approvals = createSessionApprovals();
    const push = ruleOf("Bash(git push *)");
    const test = ruleOf("Bash(npm test)");
    approvals.grantRules([push]);
    approvals.grantRules([test], "child");
    expect(approvals.rulesFor("main")).toEqual([push]);
    expect(approvals.rulesFor("child")).toEqual([push, test]);
    expect(approvals.rulesFor("__proto__")).toEqual([push]);
  });

  it("knows the very same call again, in whatever order its fields are", () => {
    const approvals = createSessionApprovals();
    approvals.grantCall({ tool: "Write", input: { file_path: "/a", content: "x" } }, "child");
    const again = { tool: "Write", input: { content: "x", file_path: "/a" } };
    expect(approvals.coversCall("child", again)).toBe(true);
    expect(approvals.coversCall("main", again)).toBe(false);
    approvals.grantCall(again);
    expect(approvals.coversCall("main", again)).toBe(true);
  });

  it.each([
    ["another value", { tool: "Write", input: { a: [1, 3] } }],
    ["another tool", { tool: "Edit", input: { a: [1, 2] } }],
    ["one field more", { tool: "Write", input: { a: [1, 2], b: null } }],
    ["a list in the place of an object", { tool: "Write", input: ["object", ["a", ["list", 1, 2]]] }],
  ])("does not take %s for the same call", (_, call) => {
    const approvals = createSessionApprovals();
    approvals.grantCall({ tool: "Write", input: { a: [1, 2] } });
    expect(approvals.coversCall("main", call)).toBe(false);
  });
});
