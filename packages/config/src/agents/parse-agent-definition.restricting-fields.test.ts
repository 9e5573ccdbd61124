import { describe, expect, test } from "vitest";
import { parseAgentDefinition } from "./parse-agent-definition.ts";

function parse(lines: string) {
  return parseAgentDefinition(`---\nname: a\ndescription: Does a thing.\n${lines}\n---\nYou help.`);
}

describe("[DEF-6] a limit is never read wider than it was written", () => {
  test.each([
    ["tools:\nallowed-tools: Read", { tools: ["Read"] }],
    ["tool: Read", { tools: ["Read"] }],
    ["disallowed: [Write]", { disallowedTools: ["Write"] }],
    ["dissallowedTools: Write", { disallowedTools: ["Write"] }],
    ["disallowedTools: Write\ndisallowed-tools: Bash", { disallowedTools: ["Write", "Bash"] }],
    ["disallowedTools: all", { disallowedTools: ["*"] }],
    ["disallowedTools: Write, triage:search", { disallowedTools: ["Write", "triage:search"] }],
    ["disallowedTools: Write; Edit | Bash、Read", { disallowedTools: ["Write", "Edit", "Bash", "Read"] }],
    ["permissionMode: Plan", { permissionMode: "plan" }],
    ["permisionMode: plan", { permissionMode: "plan" }],
    ["permissionMode: plan\npermissionMode: acceptEdits", { permissionMode: "plan" }],
    ["permissionMode: acceptEdits\npermissionMode: plan", { permissionMode: "plan" }],
    ["isolation: true", { isolation: "worktree" }],
    ["disallowedTools: Write,\nEdit, Bash", { disallowedTools: ["Write", "Edit", "Bash"] }],
    [" tools: Read", { tools: ["Read"] }],
  ])("%j", (lines, expected) => {
    expect(parse(lines).definition).toMatchObject(expected);
    expect(parse(lines).diagnostics.filter(({ severity }) => severity !== "warning")).toEqual([]);
  });

  test.each([
    "Write and Edit",
    "Write Edit, Bash",
    "everything but Read",
    "'!Read'",
    "[Write, Edit # both]",
  ])("a denial that names no tool would deny nothing, so the agent is not loaded: %s", (written) => {
    const { definition, diagnostics } = parse(`disallowedTools: ${written}`);
    expect(definition).toBeUndefined();
    expect(diagnostics).toContainEqual(
      expect.objectContaining({ severity: "error", code: "unreadable-restriction", line: 4 }),
    );
  });

  test("an indented limit in a text is a part of it where the limit itself is at the margin", () => {
    const text = "---\nname: a\ndescription: Explains fields:\n  tools: what it has\ntools: Read\n---\n";
    expect(parseAgentDefinition(text).definition).toMatchObject({
      tools: ["Read"],
      description: "Explains fields:\ntools: what it has",
    });
  });

  test("hooks that appear twice all run", () => {
    const hooks = (command: string) => `hooks:\n  Stop:\n    - command: ${command}`;
    const { definition } = parse(`${hooks("one")}\n${hooks("two")}`);
    expect(definition?.hooks?.map(({ handler }) => handler.command)).toEqual(["one", "two"]);
  });

  test("the documented spelling of `tools` wins over another one", () => {
    const { definition, diagnostics } = parse("tools: Read\nallowed-tools: Bash");
    expect(definition?.tools).toEqual(["Read"]);
    expect(diagnostics).toMatchObject([{ code: "misspelt-key", line: 5 }]);
  });

  test("more servers than a person names are refused in bounded work", () => {
    const { definition, diagnostics } = parse(`mcpServers:\n${"- 1\n".repeat(5_000)}`);
    expect(definition).not.toHaveProperty("mcpServers");
    expect(diagnostics).toMatchObject([{ severity: "warning", code: "unreadable-field", line: 4 }]);
  });

  test("many repetitions take linear work", () => {
    const { definition } = parse("hooks: {Stop: [{command: x}]}\n".repeat(1_000));
    expect(definition?.hooks).toHaveLength(1_000);
  });
});

describe("[DEF-3] [DEF-6] lists as people write them", () => {
  test.each([
    ['tools: [\n  "Read",\n  "Grep",\n]', ["Read", "Grep"]],
    ["tools: [\nRead,\nGrep\n]", ["Read", "Grep"]],
    ["tools:\n  - Read\n  -\n  - Grep", ["Read", "Grep"]],
    ["tools:\n  - Bash(git log: *)\n  - Read", ["Bash(git log: *)", "Read"]],
    ['tools: ["Read", Bash(git log: x)]', ["Read", "Bash(git log: x)"]],
    ["tools:\n\t- Read # why: to see\n\t- Bash(a: b)", ["Read", "Bash(a: b)"]],
    ["tools: inherit", undefined],
    ["tools: All available tools", undefined],
    ["tools:\u00a0Read", ["Read"]],
  ])("%j", (lines, expected) => {
    const { definition } = parse(lines);
    expect(definition).toBeDefined();
    expect(definition?.tools).toEqual(expected);
  });

  test("JSON whose last brace is at the left margin is read as the structure it is", () => {
    const { definition } = parse('hooks: {\n  "Stop": [{"command": "x"}]\n}\nmodel: opus');
    expect(definition?.hooks).toMatchObject([{ event: "Stop", handler: { command: "x" } }]);
    expect(definition?.model).toBe("opus");
  });

  test("an entry of `skills` may carry its name as a key, and one that has none is reported", () => {
    const { definition, diagnostics } = parse("skills:\n  - name: style\n  - rules\n  - other: x");
    expect(definition?.skills).toEqual(["style", "rules"]);
    expect(diagnostics).toMatchObject([{ severity: "warning", code: "unreadable-field", line: 4 }]);
  });
});
