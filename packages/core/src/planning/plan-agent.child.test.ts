import type { AgentDefinition } from "@retinue/config/agents/agent-definition.ts";
import { type AgentInput, defineAgent } from "@retinue/config/agents/define-agent.ts";
import { shippedAliases } from "@retinue/config/models/select-subagent-model.ts";
import type { AvailableTool } from "@retinue/config/tools/match-tools.ts";
import type { PermissionMode } from "@retinue/gate/permission-policy.ts";
import { parseRule } from "@retinue/gate/rules/parse-rule.ts";
import { describe, expect, test } from "vitest";
import type { AgentPlan, ChildPlan } from "./agent-plan.ts";
import type { ChildFacts, SpawnRequest } from "./agent-request.ts";
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
  builtin("Read", "read"),
  builtin("TaskOutput", "coordinate"),
  { name: "mcp__shop__order", effect: "network", origin: "mcp", server: "shop" },
];

const parent: AgentPlan = {
  chosenModel: { id: "claude-opus-4-6" },
  sessionDirectory: "/p",
  overrode: [],
  sessionId: "s",
  agent: { id: "main", name: "main" },
  model: { value: "claude-opus-4-6", from: "the call" },
  tools: ["Agent", "Bash", "Read", "mcp__shop__order"].map((name) => ({ name })),
  spawn: "any",
  policy: { mode: "default", allow: [], ask: [], deny: [], workingDirectories: ["/p"], home: "/h" },
  modeFrom: "the default",
  system: ["You are main."],
  directory: "/p",
  notes: [],
};

const agent = (fields: Partial<AgentInput> = {}): AgentDefinition =>
  defineAgent({ name: "helper", description: "Helps. Use often. Not always.", prompt: "Help.", ...fields });

const facts: ChildFacts = {
  definition: agent(),
  agentId: "a1",
  parent,
  aliases: shippedAliases,
  available,
  system: ["Help."],
  trusted: true,
  backgroundAllowed: true,
};

const request: SpawnRequest = { description: "look", prompt: "Look around.", origin: "model" };

function plan(changes: Partial<SpawnRequest> = {}, found: Partial<ChildFacts> = {}): ChildPlan {
  const planned = planAgent({ ...request, ...changes }, { ...facts, ...found });
  if (planned.type === "refused") throw new Error(planned.reason);
  return planned.plan;
}

function refusal(changes: Partial<SpawnRequest> = {}, found: Partial<ChildFacts> = {}): string {
  const planned = planAgent({ ...request, ...changes }, { ...facts, ...found });
  return planned.type === "refused" ? planned.reason : "planned";
}

const names = ({ tools }: ChildPlan) => tools.map(({ name }) => name);
const parentWith = (changes: Partial<AgentPlan>): Partial<ChildFacts> => ({
  parent: { ...parent, ...changes },
});

describe("[SPN-4] a child is decided completely before it starts", () => {
  test("as plain data that survives JSON, with where each value came from and what lost", () => {
    const planned = plan(
      { maxTurns: 7, model: "haiku", effort: "high", mode: "plan", callId: "c1", name: "ada" },
      {
        definition: agent({
          model: "sonnet",
          maxTurns: 20,
          effort: "low",
          tools: ["Read", "Bash(git diff *)"],
          disallowedTools: ["Bash(git diff --no-index *)"],
          criticalSystemReminder_EXPERIMENTAL: "Change nothing.",
        }),
      },
    );
    expect(JSON.parse(JSON.stringify(planned))).toEqual(planned);
    expect(planned).toMatchObject({
      agent: { id: "a1", name: "helper" },
      model: { from: "call" },
      maxTurns: { value: 7, from: "the call" },
      effort: { value: "high", from: "the call" },
      reminder: "Change nothing.",
      system: ["Help."],
      task: { prompt: "Look around.", callId: "c1", name: "ada", parentId: "main", resumed: false },
    });
    const lost = planned.overrode.map(({ field, value }) => `${field} ${value}`);
    expect(lost).toEqual(["model sonnet", "maxTurns 20", "effort low"]);
  });
});

describe("[BGR-1, BGR-4] whether it runs in the background", () => {
  test.each([
    ["no one says so", undefined, undefined, true, false],
    ["the call says so", true, undefined, true, true],
    ["the definition says so", undefined, true, true, true],
    ["the definition says so and the call does not", false, true, true, true],
    ["the call says so and it is switched off", true, undefined, false, false],
    ["the definition says so and it is switched off", undefined, true, false, false],
  ])("%s", (_title, called, defined, backgroundAllowed, background) => {
    const planned = plan(called === undefined ? {} : { background: called }, {
      backgroundAllowed,
      definition: agent(defined === undefined ? {} : { background: defined }),
    });
    expect(planned.task.background).toBe(background);
    expect(planned.policy.background === true).toBe(background);
    const wanted = called === true || defined === true;
    expect(planned.notes).toEqual(
      wanted && !background ? ["Background work is disabled; it ran in the foreground."] : [],
    );
  });
});

describe("which tools it has", () => {
  test("[TLS-1] without a list those of its parent", () => {
    expect(names(plan())).toEqual(["Bash", "Read", "mcp__shop__order"]);
  });

  test("[TLS-1] with a list only those, in the order of the session", () => {
    expect(names(plan({}, { definition: agent({ tools: ["Read", "Edit"] }) }))).toEqual(["Edit", "Read"]);
  });

  test("[TLS-5] a list that comes to nothing refuses the start and names its entries", () => {
    const reason = refusal({}, { definition: agent({ tools: ["Reed", "Agent"] }) });
    expect(reason).toContain("`Reed`");
    expect(reason).toContain("`Agent`");
  });

  test.each([
    [undefined],
    [["Agent", "Read"]],
    [["Task", "Read"]],
    [["Task(helper)", "Read"]],
    [["*"]],
  ])("[TLS-7] never the one that starts others: %j", (tools) => {
    const planned = plan({}, { definition: agent(tools === undefined ? {} : { tools }) });
    expect(names(planned)).not.toContain("Agent");
    expect(planned.spawn).toBe("none");
  });

  test("[TLS-9] in the background nothing of MCP servers, also when the list names it", () => {
    expect(names(plan({ background: true }))).toEqual(["Bash", "Read"]);
    const definition = agent({ tools: ["Read", "mcp__shop"] });
    expect(names(plan({}, { definition }))).toEqual(["Read", "mcp__shop__order"]);
    expect(names(plan({ background: true }, { definition }))).toEqual(["Read"]);
  });

  test("[BGR-6] in the background with tools of servers where they are kept, and functions that are asked where it may ask", () => {
    const functions = [{ kind: "canUseTool", name: "canUseTool" }] as const;
    const kept = plan({ background: true }, { backgroundKeeps: ["mcpTools"], functions });
    expect(names(kept)).toEqual(names(plan({})));
    expect(kept.functions).toBeUndefined();
    const asking = plan({ background: true }, { backgroundKeeps: ["questions"], functions });
    expect(names(asking)).toEqual(["Bash", "Read"]);
    expect(asking.functions).toEqual(functions);
    expect(plan({}, { backgroundKeeps: ["questions"] }).policy.background).toBeUndefined();
  });

  test("[PRM-4] nothing that a rule of the parent denies whole", () => {
    const reading = parseRule("Bash", { list: "deny" });
    if (reading.type === "invalid") throw new Error(reading.reason);
    const policy = { ...parent.policy, deny: [{ rule: reading.rule, anchor: "/p" }] };
    expect(names(plan({}, parentWith({ policy })))).toEqual(["Read", "mcp__shop__order"]);
    expect(plan({}, parentWith({ policy })).policy.deny).toEqual(policy.deny);
  });
});

describe("[TLS-6] who may be started", () => {
  test.each<[spawn: AgentPlan["spawn"], reason: RegExp]>([
    ["any", /^planned$/],
    [{ only: ["helper"] }, /^planned$/],
    [{ only: ["other", "third"] }, /only start other, third, not helper/],
    ["none", /may not start other agents/],
  ])("under %j", (spawn, reason) => {
    expect(refusal({}, parentWith({ spawn }))).toMatch(reason);
  });

  test("a program starts what the list of tools for its agent does not cover, and no more", () => {
    const limited = parentWith({ spawn: "none", programSpawn: "any" });
    expect(refusal({ origin: "program" }, limited)).toBe("planned");
    expect(refusal({ origin: "model" }, limited)).toMatch(/may not start other agents/);
    expect(refusal({ origin: "program" }, parentWith({ spawn: "none" }))).toMatch(
      /may not start other agents/,
    );
  });

  test("[TLS-7] a child starts no agent, even if its plan were wrong", () => {
    const child = { ...plan(), spawn: "any" } as const;
    expect(refusal({}, { parent: child })).toContain("cannot start agents");
  });
});

describe("[MDL-1] which model it runs on", () => {
  const variable = { subagentModel: "claude-haiku-4-5" };
  test.each<[string, Partial<SpawnRequest>, Partial<ChildFacts>, string, string]>([
    ["the parent's", {}, {}, "claude-opus-4-6", "parent"],
    ["the variable's", {}, variable, "claude-haiku-4-5", "subagent-variable"],
    [
      "the definition's",
      {},
      { ...variable, definition: agent({ model: "claude-sonnet-4-5" }) },
      "claude-sonnet-4-5",
      "definition",
    ],
    [
      "the variable's, where the definition inherits",
      {},
      { ...variable, definition: agent({ model: "inherit" }) },
      "claude-haiku-4-5",
      "subagent-variable",
    ],
    [
      "the call's",
      { model: "claude-opus-4-1" },
      { ...variable, definition: agent({ model: "claude-sonnet-4-5" }) },
      "claude-opus-4-1",
      "call",
    ],
    [
      "the variable's, where it is forced",
      { model: "claude-opus-4-1" },
      { ...variable, subagentModelForced: true, definition: agent({ model: "claude-sonnet-4-5" }) },
      "claude-haiku-4-5",
      "subagent-variable",
    ],
  ])("%s", (_title, changes, found, id, from) => {
    const planned = plan(changes, found);
    expect(planned.chosenModel.id).toBe(id);
    expect(planned.model).toEqual({ value: id, from });
  });
});

describe("[PRM-3] which mode it has", () => {
  const under = (mode: PermissionMode) => parentWith({ policy: { ...parent.policy, mode } });
  const file = (permissionMode: PermissionMode, scope: "user" | "project" | "plugin") => ({
    definition: { ...agent({ permissionMode }), source: { scope } } as AgentDefinition,
  });
  test.each<[string, PermissionMode, Partial<SpawnRequest>, Partial<ChildFacts>, PermissionMode]>([
    ["nothing is said", "acceptEdits", {}, {}, "acceptEdits"],
    ["a model narrows", "acceptEdits", { mode: "plan" }, {}, "plan"],
    ["a model widens", "default", { mode: "acceptEdits" }, {}, "default"],
    ["a program widens", "default", { mode: "acceptEdits", origin: "program" }, {}, "acceptEdits"],
    ["a user's file takes edits", "default", {}, file("acceptEdits", "user"), "acceptEdits"],
    ["a trusted project's file does", "default", {}, file("acceptEdits", "project"), "acceptEdits"],
    [
      "a project's file without trust does",
      "default",
      {},
      { ...file("acceptEdits", "project"), trusted: false },
      "default",
    ],
    ["a plugin's file does", "default", {}, file("acceptEdits", "plugin"), "default"],
    ["a file asks for everything", "default", {}, file("bypassPermissions", "user"), "default"],
    ["a file wants to write under plan", "plan", {}, file("acceptEdits", "user"), "plan"],
    ["a file narrows what nothing may", "bypassPermissions", {}, file("plan", "user"), "bypassPermissions"],
  ])("%s", (_title, mode, changes, found, expected) => {
    expect(plan(changes, { ...under(mode), ...found }).policy.mode).toBe(expected);
  });
});

describe("[LIM-2] how many turns it may take", () => {
  test.each([
    ["fifty", undefined, undefined, { value: 50, from: "the default" }],
    ["as its definition says", undefined, 12, { value: 12, from: "the definition" }],
    ["as the call says", 3, 12, { value: 3, from: "the call" }],
  ])("%s", (_title, called, defined, expected) => {
    const definition = agent(defined === undefined ? {} : { maxTurns: defined });
    expect(plan(called === undefined ? {} : { maxTurns: called }, { definition }).maxTurns).toEqual(expected);
  });
});

describe("[SPN-7] isolation is given or refused, never left out in silence", () => {
  test("a worktree is in the plan, no matter who asked for it", () => {
    expect(plan({ isolation: "worktree" }).task.isolation).toBe("worktree");
    expect(plan().task.isolation).toBeUndefined();
  });

  test("an unknown one is refused by name", () => {
    expect(refusal({ isolation: "container" })).toContain('Unknown isolation "container"');
  });
});

describe("[MEM-1, TLS-8] memory", () => {
  const memory = { scope: "project", directory: "/p/.claude/agent-memory/helper" } as const;
  const definition = agent({ tools: ["Bash"], memory: "project" });

  test("is in the plan, with tools that reach no further", () => {
    const made = plan({}, { definition, memory });
    expect(made.memory).toEqual(memory);
    expect(made.tools).toEqual([
      { name: "Bash" },
      { name: "Edit", confinedTo: "memory" },
      { name: "Read", confinedTo: "memory" },
    ]);
    expect(made.policy.toolScopes?.at(-1)).toMatchObject({ memoryDirectory: memory.directory });
  });

  test("that is off or cannot be used adds no tools, and the reason is a note", () => {
    const made = plan({}, { definition, notes: ["It is a link."] });
    expect(made.memory).toBeUndefined();
    expect(made.tools).toEqual([{ name: "Bash" }]);
    expect(made.policy.toolScopes?.at(-1)?.memoryDirectory).toBeUndefined();
    expect(made.notes).toContain("It is a link.");
  });

  test("gives no tool that a rule takes away", () => {
    const deny = [parseRule("Edit")].flatMap((reading) =>
      reading.type === "rule" ? [{ rule: reading.rule, anchor: "/p" }] : [],
    );
    const below = { ...parent, policy: { ...parent.policy, deny } };
    expect(plan({}, { definition, memory, parent: below }).tools.map(({ name }) => name)).toEqual([
      "Bash",
      "Read",
    ]);
  });
});
