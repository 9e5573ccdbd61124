import type { Diagnostic } from "@retinue/base/foundation/diagnostic.ts";
import { describe, expect, test } from "vitest";
import type { AgentDefinition } from "./agent-definition.ts";
import { createRegistry, whyNotLoaded } from "./agent-registry.ts";
import { type AgentScope, agentScopes } from "./agent-source.ts";

function agent(
  name: string,
  scope: AgentScope,
  more: Partial<AgentDefinition["source"]> = {},
): AgentDefinition {
  const id = scope === "plugin" ? { id: `${more.plugin ?? "p"}:${name}` } : {};
  return {
    name,
    description: `${name} of ${scope}`,
    prompt: "",
    source: { scope, ...id, ...more },
    written: {},
  };
}

describe("[SCP-1] who wins", () => {
  test("managed, session, project, user, plugin, built-in: the higher scope, whatever order they come in", () => {
    const definitions = agentScopes.filter((scope) => scope !== "plugin").map((scope) => agent("a", scope));
    for (const order of [definitions, [...definitions].reverse()]) {
      const found = createRegistry({ definitions: order }).find("a");
      if (found.type !== "found") throw new Error(found.type);
      expect(found.agent.definition.source.scope).toBe("managed");
      expect(found.agent.shadowed.map(({ source }) => source.scope)).toEqual([
        "session",
        "project",
        "user",
        "builtin",
      ]);
    }
  });

  test("within a scope the earlier one wins, which is the nearer folder", () => {
    const near = agent("a", "project", { file: "near.md" });
    const far = agent("a", "project", { file: "far.md" });
    expect(createRegistry({ definitions: [near, far] }).find("a")).toMatchObject({
      agent: { definition: { source: { file: "near.md" } }, shadowed: [{ source: { file: "far.md" } }] },
    });
  });
});

describe("[SCP-3] what the registry knows", () => {
  test("for every name the winner, its source and the ones it shadows", () => {
    const registry = createRegistry({
      definitions: [agent("a", "user"), agent("a", "builtin"), agent("b", "user")],
    });
    expect(registry.all().map(({ id, shadowed }) => [id, shadowed.length])).toEqual([
      ["a", 1],
      ["b", 0],
    ]);
  });
});

describe("[SCP-4] a plugin's agent", () => {
  test("is known by plugin:name and, where free, by its bare name", () => {
    const registry = createRegistry({ definitions: [agent("a", "plugin")] });
    expect(registry.find("p:a")).toMatchObject({ type: "found" });
    expect(registry.find("a")).toMatchObject({ type: "found", agent: { id: "p:a" } });
  });

  test("does not take a bare name that another agent has", () => {
    const registry = createRegistry({ definitions: [agent("a", "plugin"), agent("a", "builtin")] });
    expect(registry.find("a")).toMatchObject({ agent: { id: "a" } });
    expect(registry.find("p:a")).toMatchObject({ agent: { id: "p:a" } });
  });

  test("has no bare name when two plugins claim it", () => {
    const registry = createRegistry({
      definitions: [agent("a", "plugin"), agent("a", "plugin", { plugin: "q" })],
    });
    expect(registry.find("a")).toMatchObject({ type: "unknown", available: ["p:a", "q:a"] });
  });
});

describe("[SCP-5] deny rules", () => {
  const definitions = [agent("code-review", "user"), agent("a", "plugin"), agent("Explore", "builtin")];
  const deny = (pattern: string) =>
    createRegistry({ definitions, denials: [{ pattern, rule: `Agent(${pattern})` }] });

  test("hide an agent from the list and refuse it by name, with the rule", () => {
    const registry = deny("Explore");
    expect(registry.list().map(({ id }) => id)).toEqual(["code-review", "p:a"]);
    expect(registry.find("Explore")).toMatchObject({ type: "denied", rule: "Agent(Explore)" });
    expect(registry.all()).toHaveLength(3);
  });

  test.each([
    "code-review",
    "Code_Review",
    "code review",
    "code*",
    "*",
    "*view",
  ])("%s catches code-review however it is called", (pattern) => {
    for (const called of ["code-review", "Code Review", "code_review"]) {
      expect(deny(pattern).find(called)).toMatchObject({ type: "denied" });
    }
  });

  test.each(["a", "p:a", "p:*"])("%s catches a plugin's agent by either name", (pattern) => {
    expect(deny(pattern).find("a")).toMatchObject({ type: "denied" });
    expect(deny(pattern).find("p:a")).toMatchObject({ type: "denied" });
  });

  test("an agent in a sub-folder of a plugin is called and denied without the folder too", () => {
    const deep = agent("a", "plugin", { plugin: "p" });
    const definitions = [{ ...deep, source: { ...deep.source, id: "p:sub:a" } }];
    expect(createRegistry({ definitions }).find("p:a")).toMatchObject({ agent: { id: "p:sub:a" } });
    const denials = [{ pattern: "p:a", rule: "Agent(p:a)" }];
    expect(createRegistry({ definitions, denials }).find("p:sub:a")).toMatchObject({ type: "denied" });
  });

  test("others stay", () => {
    expect(deny("code").find("code-review")).toMatchObject({ type: "found" });
    expect(deny("*x*").list()).toHaveLength(2);
  });

  test("a hidden agent is not offered as the nearest name", () => {
    expect(deny("Explore").find("Explor")).not.toMatchObject({ nearest: expect.anything() });
  });
});

describe("looking up a name", () => {
  const registry = createRegistry({
    definitions: [agent("code-reviewer", "user"), agent("planner", "user")],
  });

  test("case and separators do not matter", () => {
    expect(registry.find("Code Reviewer")).toMatchObject({ agent: { id: "code-reviewer" } });
  });

  test("an unknown name comes back with the nearest and all there are", () => {
    expect(registry.find("code-reviewr")).toEqual({
      type: "unknown",
      nearest: "code-reviewer",
      available: ["code-reviewer", "planner"],
    });
    expect(registry.find("zzz")).not.toMatchObject({ nearest: expect.anything() });
  });

  test("names of object properties are ordinary names", () => {
    expect(registry.find("__proto__")).toMatchObject({ type: "unknown" });
    expect(createRegistry({ definitions: [agent("constructor", "user")] }).find("constructor")).toMatchObject(
      { type: "found" },
    );
  });
});

test("an agent whose file was not loaded is unknown for the reason that the file has [VRF-1]", () => {
  const failure: Diagnostic = {
    severity: "error",
    code: "unreadable-restriction",
    message: "`verify` cannot be read; the agent is not loaded.",
    file: "/p/.claude/agents/fixer.md",
    line: 4,
    column: 1,
  };
  const registry = createRegistry({
    definitions: [],
    diagnostics: [{ ...failure, severity: "warning", message: "odd" }, failure],
  });
  const found = registry.find("fixer");
  expect(found).toMatchObject({ type: "unknown", failure });
  expect(found.type === "unknown" && whyNotLoaded(found)).toBe(
    " Its file has an error: /p/.claude/agents/fixer.md:4:1: `verify` cannot be read; the agent is not loaded.",
  );
  expect(registry.find("other")).toMatchObject({ type: "unknown", failure: undefined });
});
