import type { AvailableTool } from "@retinue/config/tools/match-tools.ts";
import { parseRule } from "@retinue/gate/rules/parse-rule.ts";
import { describe, expect, test } from "vitest";
import type { AgentPlan } from "./agent-plan.ts";
import { planTools, type ToolFacts } from "./plan-tools.ts";

const builtin = (name: string, effect: AvailableTool["effect"]): AvailableTool => ({
  name,
  effect,
  origin: "builtin",
});
const available: readonly AvailableTool[] = [
  builtin("Agent", "spawn"),
  builtin("Bash", "execute"),
  builtin("Edit", "edit"),
  builtin("Read", "read"),
  builtin("Write", "edit"),
  { name: "mcp__shop__order", effect: "network", origin: "mcp", server: "shop" },
];
const parent: AgentPlan = {
  chosenModel: { id: "claude-opus-4-6" },
  sessionDirectory: "/p",
  overrode: [],
  sessionId: "s",
  agent: { id: "main", name: "lead" },
  model: { value: "m", from: "the call" },
  tools: [{ name: "Agent", allowOnly: ["helper"] }, { name: "Read" }],
  spawn: { only: ["helper"] },
  policy: { mode: "default", allow: [], ask: [], deny: [], workingDirectories: ["/p"], home: "/h" },
  modeFrom: "the default",
  system: [],
  directory: "/p",
  notes: [],
};

function planned(definition: ToolFacts["definition"], changes: Partial<ToolFacts> = {}) {
  const { grant } = planTools({ definition, above: parent, available, background: false, ...changes });
  const messages = grant.notes.filter(({ severity }) => severity !== "note").map(({ message }) => message);
  return grant.type === "refused"
    ? { refused: grant.reason, tools: [], messages }
    : { tools: grant.tools, names: grant.tools.map(({ name }) => name), messages };
}

const lead = (changes: Partial<AgentPlan>): Partial<ToolFacts> => ({ above: { ...parent, ...changes } });
const deny = (text: string) => {
  const reading = parseRule(text, { list: "deny" });
  if (reading.type === "invalid") throw new Error(reading.reason);
  return [{ rule: reading.rule, anchor: "/p", from: "settings.json" }];
};

describe("a list of tools", () => {
  test("is not limited by the list of the agent above [TLS-1]", () => {
    expect(planned({ tools: ["Read", "Write", "mcp__shop"] }).names).toEqual([
      "Read",
      "Write",
      "mcp__shop__order",
    ]);
  });

  const limits: [string, Partial<ToolFacts>, RegExp][] = [
    ["--tools", lead({ sessionTools: ["Agent", "Read"] }), /limited to other tools \(`--tools`\)/],
    [
      "a deny rule",
      lead({ policy: { ...parent.policy, deny: deny("Write") } }),
      /the rule Write in settings\.json denies it/,
    ],
    [
      "disallowedTools of the agent above",
      lead({
        policy: { ...parent.policy, toolScopes: [{ anchor: "/p", tools: [], removes: ["Write"] }] },
      }),
      /`disallowedTools` of lead excludes it/,
    ],
    ["the skill that is its task", { skillDeny: deny("Write") }, /the rule Write .*denies it/],
  ];
  test.each(limits)("loses what %s takes away, with a note [TLS-1]", (_limit, facts, reason) => {
    const { names, messages } = planned({ tools: ["Read", "Write"] }, facts);
    expect(names).toEqual(["Read"]);
    expect(messages).toEqual([expect.stringMatching(/^`Write` is not available to this agent: /)]);
    expect(messages[0]).toMatch(reason);
  });

  test.each(
    limits,
  )("that keeps nothing under %s refuses the start with the reason [TLS-5]", (_l, facts, reason) => {
    expect(planned({ tools: ["Write"] }, facts).refused).toMatch(reason);
  });

  test.each(limits)("memory adds nothing that %s takes away [TLS-1, TLS-8]", (_limit, facts) => {
    const { names, messages } = planned({ tools: ["Read"], memory: "user" }, facts);
    expect(names).not.toContain("Write");
    expect(messages.join()).toContain("`Write` is not available");
  });
});

describe("without a list", () => {
  test("it has what the agent above has, no further, and not what that has only for its memory [TLS-1]", () => {
    const tools = [
      { name: "Bash", allowOnly: ["git *"] },
      { name: "Read" },
      { name: "Write", confinedTo: "memory" as const },
    ];
    expect(planned({}, lead({ tools })).tools).toEqual([
      { name: "Bash", allowOnly: ["git *"] },
      { name: "Read" },
    ]);
  });

  test("an inherited limit leaves its own memory open [TLS-1, TLS-8]", () => {
    const tools = [{ name: "Write", allowOnly: ["docs/**"] }];
    expect(planned({ memory: "user" }, lead({ tools })).tools).toEqual([
      { name: "Edit", confinedTo: "memory" },
      { name: "Read", confinedTo: "memory" },
      { name: "Write", allowOnly: ["docs/**"], alsoIn: "memory" },
    ]);
  });

  test("memory does not cost it the tools of its own servers [TLS-8, MCP-2]", () => {
    const tool: AvailableTool = { name: "mcp__own__go", effect: "execute", origin: "mcp", server: "own" };
    const own = { names: ["own"], tools: [tool] };
    expect(planned({ memory: "user" }, { own }).names).toEqual(["Edit", "Read", "Write", "mcp__own__go"]);
  });
});
