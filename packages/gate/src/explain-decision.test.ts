import { describe, expect, test } from "vitest";
import { explainDecision, readCallText } from "./explain-decision.ts";
import { parseRule } from "./rules/parse-rule.ts";

describe("[PRM-1] explanations", () => {
  test("show which rule decided and from which file", () => {
    const reading = parseRule("Bash(git push *)");
    if (reading.type === "invalid") throw new Error(reading.reason);
    const rule = { rule: reading.rule, anchor: "/p", from: "/p/.claude/settings.json" };
    expect(explainDecision({ type: "deny", reason: "a rule denies it", rule })).toEqual([
      "denied",
      "because a rule denies it",
      "decided by Bash(git push *), from /p/.claude/settings.json",
    ]);
    expect(explainDecision({ type: "ask", reason: "no allow rule matches" })).toContain("decided by no rule");
  });

  test.each([
    ["Bash(git push)", "Bash", { command: "git push" }],
    ["bash(echo $(id))", "Bash", { command: "echo $(id)" }],
    ["Read(src/a.ts)", "Read", { file_path: "src/a.ts" }],
    ["WebFetch(https://example.com/)", "WebFetch", { url: "https://example.com/" }],
    ["Task(Explore)", "Agent", { subagent_type: "Explore" }],
    ["Glob(**/*.ts)", "Glob", { pattern: "**/*.ts" }],
    ["mcp__x__y", "mcp__x__y", {}],
  ])("read the call %s", (text, tool, input) => {
    expect(readCallText(text)).toEqual({ type: "call", tool, input });
  });

  test.each(["Bash(git push", "mcp__x__y(z)", ""])("refuse %j", (text) => {
    expect(readCallText(text).type).toBe("invalid");
  });
});
