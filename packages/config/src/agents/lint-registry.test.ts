import { describe, expect, it } from "vitest";
import { createRegistry } from "./agent-registry.ts";
import { lintRegistry } from "./lint-registry.ts";
import { parseAgentDefinition } from "./parse-agent-definition.ts";

function agent(
  file: string,
  scope: "project" | "user" = "project",
  description = "Reviews. Use when asked.",
) {
  const { definition } = parseAgentDefinition(`---\nname: twin\ndescription: ${description}\n---\nGo.`, {
    file,
    scope,
  });
  if (definition === undefined) throw new Error("The probe does not parse.");
  return definition;
}

function lint(...definitions: ReturnType<typeof agent>[]) {
  return lintRegistry(createRegistry({ definitions }).all());
}

describe("lintRegistry", () => {
  it("warns of one name twice in one folder, at the loser, and names the winner [SCP-3]", () => {
    const [diagnostic, ...more] = lint(agent("/p/.claude/agents/a.md"), agent("/p/.claude/agents/sub/b.md"));
    expect(diagnostic).toMatchObject({
      severity: "warning",
      code: "same-name",
      file: "/p/.claude/agents/sub/b.md",
      line: 2,
    });
    expect(diagnostic?.message).toContain("/p/.claude/agents/a.md, which wins");
    expect(more).toEqual([]);
  });

  it("only notes that a nearer folder wins, which is what nested folders are for [SCP-3]", () => {
    const diagnostics = lint(agent("/p/x/.claude/agents/a.md"), agent("/p/.claude/agents/a.md"));
    expect(diagnostics).toMatchObject([
      { severity: "note", code: "shadowed-by-nearer", file: "/p/.claude/agents/a.md" },
    ]);
  });

  it("says nothing of a name in two scopes", () => {
    expect(lint(agent("/p/.claude/agents/a.md"), agent("/home/.claude/agents/a.md", "user"))).toEqual([]);
  });

  it("warns when all descriptions together take too much of every turn", () => {
    const long = agent("/p/.claude/agents/a.md", "project", `Reviews. ${"Use when asked. ".repeat(5_000)}`);
    expect(lint(long)).toMatchObject([{ severity: "warning", code: "descriptions-too-long" }]);
    expect(lint(agent("/p/.claude/agents/a.md"))).toEqual([]);
  });
});
