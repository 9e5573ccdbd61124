import { defineAgent } from "@retinue/config/agents/define-agent.ts";
import { parseAgentDefinition } from "@retinue/config/agents/parse-agent-definition.ts";
import type { AvailableTool } from "@retinue/config/tools/match-tools.ts";
import { parseRule } from "@retinue/gate/rules/parse-rule.ts";
import { describe, expect, it } from "vitest";
import type { AgentRequest, MainFacts } from "./agent-request.ts";
import { planAgent } from "./plan-agent.ts";

const builtin = (name: string, effect: AvailableTool["effect"]): AvailableTool => ({
  name,
  effect,
  origin: "builtin",
});
const available: readonly AvailableTool[] = [
  builtin("Agent", "spawn"),
  builtin("Bash", "execute"),
  builtin("Edit", "edit"),
  builtin("Grep", "read"),
  builtin("Read", "read"),
  { name: "ticket", effect: "network", origin: "program" },
];
const allNames = available.map(({ name }) => name);

const facts: MainFacts = {
  sessionId: "s",
  agentId: "main",
  chosenModel: { id: "claude-sonnet-5" },
  model: { value: "claude-sonnet-5", from: "the default" },
  available,
  rules: { allow: [], ask: [], deny: [] },
  directory: "/project",
  workingDirectories: ["/project"],
  home: "/home/ada",
  platform: "linux",
  system: ["You are an engineer."],
  trusted: true,
};
const request: AgentRequest = { origin: "program" };

function agent(fields: object) {
  return defineAgent({
    name: "helper",
    description: "Helps. Use often. Not always.",
    prompt: "Help.",
    ...fields,
  });
}

function plan(changes: Partial<AgentRequest> = {}, found: Partial<MainFacts> = {}) {
  const planned = planAgent({ ...request, ...changes }, { ...facts, ...found });
  if (planned.type === "refused") throw new Error(planned.reason);
  return planned.plan;
}

function refusal(changes: Partial<AgentRequest>, found: Partial<MainFacts> = {}): string {
  const planned = planAgent({ ...request, ...changes }, { ...facts, ...found });
  return planned.type === "refused" ? planned.reason : "planned";
}

function deny(text: string): Pick<MainFacts, "rules"> {
  const reading = parseRule(text, { list: "deny" });
  if (reading.type === "invalid") throw new Error(reading.reason);
  return { rules: { allow: [], ask: [], deny: [{ rule: reading.rule, anchor: "/project" }] } };
}

const names = (planned: { readonly tools: readonly { readonly name: string }[] }) =>
  planned.tools.map(({ name }) => name);

describe("a session is decided completely before it starts [SPN-4]", () => {
  it("as plain data that survives JSON", () => {
    const planned = plan(
      { mode: "acceptEdits", maxTurns: 7, maxBudgetUsd: 0.5, effort: "high" },
      {
        definition: agent({
          tools: ["Read", "Bash(git diff *)", "Task(reviewer)"],
          disallowedTools: ["Bash(git diff --no-index *)"],
          initialPrompt: "Begin.",
          criticalSystemReminder_EXPERIMENTAL: "Change nothing.",
        }),
        ...deny("Read(secrets/**)"),
      },
    );
    expect(JSON.parse(JSON.stringify(planned))).toEqual(planned);
    expect(planned).toMatchObject({
      sessionId: "s",
      agent: { id: "main", name: "helper" },
      model: { value: "claude-sonnet-5", from: "the default" },
      effort: { value: "high", from: "the call" },
      maxTurns: { value: 7, from: "the call" },
      treeLimits: { costUsd: { value: 0.5, from: "the call" } },
      reminder: "Change nothing.",
      initialPrompt: "Begin.",
      spawn: { only: ["reviewer"] },
      policy: { mode: "acceptEdits", workingDirectories: ["/project"] },
    });
  });

  it("with the limits of the call before those of the definition", () => {
    const definition = agent({ maxTurns: 3, effort: "low" });
    expect(plan({}, { definition })).toMatchObject({
      maxTurns: { value: 3, from: "the definition" },
      effort: { value: "low", from: "the definition" },
    });
    expect(plan({ maxTurns: 9, effort: "max" }, { definition })).toMatchObject({
      maxTurns: { value: 9, from: "the call" },
      effort: { value: "max", from: "the call" },
    });
    expect(plan().maxTurns).toBeUndefined();
  });

  it.each([
    [{ maxTurns: 0 }, /maxTurns/],
    [{ maxTurns: 1.5 }, /maxTurns/],
    [{ maxTurns: Number.NaN }, /maxTurns/],
    [{ maxBudgetUsd: 0 }, /maxBudgetUsd/],
    [{ maxBudgetUsd: -1 }, /maxBudgetUsd/],
  ])("and refuses the limit %j, which means nothing", (changes, reason) => {
    expect(refusal(changes)).toMatch(reason);
  });
});

describe("the mode", () => {
  const own = (permissionMode: string) => ({ definition: agent({ permissionMode }) });
  const settings = (mode: "plan" | "acceptEdits" | "bypassPermissions") => ({
    settingsMode: { mode, from: "/home/ada/.claude/settings.json" },
  });

  it.each<[string, Partial<AgentRequest>, Partial<MainFacts>, string, string]>([
    ["is default where no one says one", {}, {}, "default", "the default"],
    ["comes from settings", {}, settings("plan"), "plan", "/home/ada/.claude/settings.json"],
    [
      "of the definition is before settings",
      {},
      { ...settings("plan"), ...own("dontAsk") },
      "dontAsk",
      "the definition",
    ],
    [
      "of the call is before both",
      { mode: "acceptEdits" },
      { ...settings("plan"), ...own("dontAsk") },
      "acceptEdits",
      "the call",
    ],
    ["of the call may be to bypass", { mode: "bypassPermissions" }, {}, "bypassPermissions", "the call"],
    [
      "may be bypassed by a flag, over another mode",
      { skipPermissions: true, mode: "plan" },
      {},
      "bypassPermissions",
      "the call",
    ],
    ["is never bypass from a definition", {}, own("bypassPermissions"), "default", "the default"],
    ["is never bypass from settings", {}, settings("bypassPermissions"), "default", "the default"],
    [
      "of settings holds where the definition asks for bypass",
      {},
      { ...settings("plan"), ...own("bypassPermissions") },
      "plan",
      "/home/ada/.claude/settings.json",
    ],
  ])("%s", (_title, changes, found, mode, from) => {
    const planned = plan(changes, found);
    expect([planned.policy.mode, planned.modeFrom]).toEqual([mode, from]);
  });

  it("that did not count is noted", () => {
    expect(plan({}, own("bypassPermissions")).notes.join()).toMatch(/helper asks for `bypassPermissions`/);
    expect(plan({}, settings("bypassPermissions")).notes.join()).toMatch(/settings\.json sets the mode/);
  });

  it("cannot be bypassed where settings forbid it", () => {
    const found = { bypassForbidden: true };
    expect(refusal({ skipPermissions: true }, found)).toMatch(/disableBypassPermissionsMode/);
    expect(refusal({ mode: "bypassPermissions" }, found)).toMatch(/disableBypassPermissionsMode/);
    expect(plan({ mode: "plan" }, found).policy.mode).toBe("plan");
  });

  it.each([
    ["acceptEdits", false, "default"],
    ["acceptEdits", true, "acceptEdits"],
    ["plan", false, "plan"],
    ["dontAsk", false, "dontAsk"],
  ])("%s of a project's file in a folder whose trust is %s is %s", (written, trusted, mode) => {
    const text = `---\nname: helper\ndescription: Helps.\npermissionMode: ${written}\n---\nHelp.`;
    const { definition } = parseAgentDefinition(text, { file: "helper.md", scope: "project" });
    if (definition === undefined) throw new Error("The definition was not read.");
    const planned = plan({}, { definition, trusted });
    expect(planned.policy.mode).toBe(mode);
    expect(planned.notes.length > 0).toBe(written !== mode);
  });
});

describe("the tools", () => {
  it("are all there are, without a definition and without --tools [TLS-1]", () => {
    expect(names(plan())).toEqual(allNames);
  });

  it("are those of the definition and no others [TLS-1]", () => {
    expect(names(plan({}, { definition: agent({ tools: ["Grep", "Read"] }) }))).toEqual(["Grep", "Read"]);
    expect(names(plan({}, { definition: agent({ tools: [] }) }))).toEqual([]);
  });

  it.each([
    ["Read", ["Read", "ticket"]],
    ["read,Task", ["Agent", "Read", "ticket"]],
    ["LS,Read", ["Read", "ticket"]],
    ["", ["ticket"]],
  ])("named by --tools %j are the built-in ones that exist", (list, expected) => {
    const tools = list.split(",").filter((name) => name !== "");
    expect(names(plan({ tools }))).toEqual(expected);
  });

  it("named by --tools that are nowhere refuse the start, or are noted beside others", () => {
    expect(refusal({ tools: ["Raed"] })).toMatch(/`Raed`/);
    expect(plan({ tools: ["Raed", "Read"] }).notes.join()).toMatch(/Raed/);
  });

  it("of --tools are whole: a specifier there would be lost", () => {
    expect(refusal({ tools: ["Bash(git *)"] })).toMatch(/"Bash\(git \*\)"/);
  });

  it.each([
    ["Bash", ["Agent", "Edit", "Grep", "Read", "ticket"]],
    ["Bash(rm *)", allNames],
    ["ti*", ["Agent", "Bash", "Edit", "Grep", "Read"]],
  ])("that the deny rule %s takes away are not shown to the model [TLS-10]", (rule, expected) => {
    expect(names(plan({}, deny(rule)))).toEqual(expected);
  });

  it("of a definition that are none of these refuse the start and name the entries [TLS-5]", () => {
    expect(refusal({}, { definition: agent({ tools: ["Nothing", "mcp__gone"] }) })).toMatch(
      /Nothing.*mcp__gone/,
    );
    expect(refusal({}, { definition: agent({ tools: ["Bash"] }), ...deny("Bash") })).toMatch(/Bash/);
  });

  it.each([
    [["Read", "Task"], "any"],
    [["Read", "Task(a, b)"], { only: ["a", "b"] }],
    [["Read"], "none"],
    [undefined, "any"],
  ])("%j of a main agent let it start %j [TLS-6]", (tools, spawn) => {
    const definition = agent(tools === undefined ? {} : { tools });
    expect(plan({}, { definition }).spawn).toEqual(spawn);
  });

  it("may be narrowed to some of their calls [TLS-3]", () => {
    const definition = agent({
      tools: ["Bash(git diff *)"],
      disallowedTools: ["Bash(git diff --ext-diff *)"],
    });
    expect(plan({}, { definition }).tools).toEqual([
      { name: "Bash", allowOnly: ["git diff *"], deny: ["git diff --ext-diff *"] },
    ]);
  });
});

it("what was noted before planning is in the plan, before what planning noted", () => {
  const { notes } = plan({ tools: ["Raed", "Read"] }, { notes: ["The model does not count."] });
  expect(notes[0]).toBe("The model does not count.");
  expect(notes).toHaveLength(2);
});
