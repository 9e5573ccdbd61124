import { describe, expect, it } from "vitest";
import type { AgentScope } from "./agent-source.ts";
import { type LintFacts, lintDefinition } from "./lint-definition.ts";
import { parseAgentDefinition } from "./parse-agent-definition.ts";

const good = "Reviews SQL migrations for locks. Use when a migration changes. Not for tuning queries.";

function lint(fields: string, { scope = "user", body = "You review.", ...facts }: LintCase = {}) {
  const described = /^description:/m.test(fields) ? fields : `description: ${good}\n${fields}`;
  const text = `---\nname: probe\n${described}\n---\n${body}\n`;
  const { definition } = parseAgentDefinition(text, { file: "/p/.claude/agents/probe.md", scope });
  if (definition === undefined) throw new Error(`The probe does not parse:\n${text}`);
  return lintDefinition(definition, { ...facts, text });
}

interface LintCase extends LintFacts {
  readonly scope?: AgentScope;
  readonly body?: string;
}

describe("lintDefinition", () => {
  it("has nothing to say about a good definition [CLI-2]", () => {
    expect(lint("tools: Read, Grep, Bash(git diff *)\nmodel: sonnet\ncolor: blue")).toEqual([]);
  });

  it("accepts named agents where a setting lets subagents start them [NST-1]", () => {
    expect(lint("tools: Read, Agent(a, b)").map(({ code }) => code)).toContain("subagent-cannot-spawn");
    expect(lint("tools: Read, Agent(a, b)", { nests: true })).toEqual([]);
  });

  it.each<[string, string, string, LintCase?]>([
    ["tools: Read, Grpe", "warning", "unknown-tool"],
    ["tools: Grpe, Raed", "error", "no-tool-left"],
    ["tools: Task(a, b)", "warning", "only-for-main-agent"],
    ["tools: Read, Task", "note", "subagent-cannot-spawn"],
    ["tools: Read, Agent", "warning", "subagent-names-no-agents", { nests: true }],
    ["tools: Read, LS", "note", "old-tool-name"],
    ["tools: Read, CronCreate", "note", "absent-tool"],
    ["tools: Read, Write\ndisallowedTools: Write", "warning", "tool-is-disallowed"],
    ["tools: Read, Bash(git", "warning", "malformed-entry"],
    ["permissionMode: bypassPermissions", "warning", "bypass-not-granted"],
    ["permissionMode: acceptEdits", "warning", "mode-needs-trust", { scope: "project" }],
    ["permissionMode: acceptEdits\ntools: Edit, Bash", "warning", "edits-and-shell"],
    ["permissionMode: acceptEdits\ntools: Edit, Bash(*)", "warning", "edits-and-shell"],
    [
      "hooks: {Stop: [{hooks: [{type: command, command: x}]}]}",
      "note",
      "hooks-need-trust",
      { scope: "project" },
    ],
    ["mcpServers: [{own: {command: x}}]", "note", "servers-need-trust", { scope: "project" }],
    ["model: haiku|sonnet", "warning", "unclear-model"],
    ["model: opsu", "warning", "model-near-miss"],
    ["color: teal", "note", "unknown-color"],
    ["description: Helps with code", "warning", "vague-description"],
    [`description: ${good} ${"More words. ".repeat(120)}`, "note", "long-description"],
    ["maxTurns: 3", "warning", "empty-prompt", { body: "" }],
    ["maxTurns: 3", "note", "long-prompt", { body: "word ".repeat(9_000) }],
  ])("reports %j with a %s %s [CLI-2, TLS-5]", (fields, severity, code, facts) => {
    const found = lint(fields, facts).find((diagnostic) => diagnostic.code === code);
    expect(found).toMatchObject({ severity, code, file: "/p/.claude/agents/probe.md" });
  });

  it.each<[string, string, LintCase?]>([
    ["mcp__github, mcp__db__query", "servers are known only when they run"],
    ["Bash(npm test *), Edit", "a narrowed shell"],
  ])("says nothing of tools %s: %s", (tools) => {
    expect(lint(`tools: ${tools}\npermissionMode: acceptEdits`)).toEqual([]);
  });

  it("says nothing of trust where the folder is trusted, or the file is the user's own [PRM-11]", () => {
    const fields = "permissionMode: acceptEdits\nhooks: {Stop: [{hooks: [{type: command, command: x}]}]}";
    expect(lint(fields, { scope: "project", trusted: true })).toEqual([]);
    expect(lint(fields, { scope: "user" })).toEqual([]);
  });

  it("points at the entry, not at an entry that only contains it [DEF-7]", () => {
    const [diagnostic] = lint("tools: NotebookEdit, Edti");
    expect(diagnostic).toMatchObject({ line: 4, column: 22, length: 4, advice: "Did you mean `Edit`?" });
  });

  it("names the parts that a weak description is missing, and shows how to write them [CLI-2]", () => {
    const [diagnostic] = lint("description: Builds plain pages for the web shop");
    expect(diagnostic?.message).toContain("it does not say when to use it or what it is not for");
    expect(diagnostic?.advice).toContain("Builds plain pages for the web shop. Use when <situation>");
    expect(diagnostic).toMatchObject({ line: 3, column: 1 });
  });

  it("reads models with the aliases of this run", () => {
    const aliases = new Map([["fast", "provider/small"]]);
    expect(lint("model: fast", { aliases })).toEqual([]);
  });
});
