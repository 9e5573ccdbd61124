import type { AgentDefinition } from "@retinue/config/agents/agent-definition.ts";
import { type AgentInput, defineAgent } from "@retinue/config/agents/define-agent.ts";
import { shippedAliases } from "@retinue/config/models/select-subagent-model.ts";
import type { AvailableTool } from "@retinue/config/tools/match-tools.ts";
import { decide } from "@retinue/gate/decide.ts";
import { type CallToJudge, gatherCallFacts } from "@retinue/gate/gather-call-facts.ts";
import { type PermissionMode, permissionModes } from "@retinue/gate/permission-policy.ts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type AgentPlan, type ChildPlan, levelOf } from "./agent-plan.ts";
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
  builtin("Write", "edit"),
  { name: "mcp__shop__order", effect: "network", origin: "mcp", server: "shop" },
  { name: "mcp__shop__list", effect: "network", origin: "mcp", server: "shop" },
];

const main = (depth?: number): AgentPlan => ({
  chosenModel: { id: "claude-opus-4-6" },
  sessionDirectory: "/p",
  overrode: [],
  sessionId: "s",
  agent: { id: "main", name: "main" },
  model: { value: "claude-opus-4-6", from: "the call" },
  tools: available.map(({ name }) => ({ name })),
  spawn: "any",
  policy: { mode: "default", allow: [], ask: [], deny: [], workingDirectories: ["/p"], home: "/h" },
  modeFrom: "the default",
  system: ["You are main."],
  directory: "/p",
  mcpServers: [{ name: "shop", own: false }],
  notes: [],
  ...(depth === undefined
    ? {}
    : {
        nesting: {
          depth: { value: depth, from: "settings" },
          agents: { value: 50, from: "the default" },
        },
      }),
});

const agent = (fields: Partial<AgentInput> = {}): AgentDefinition =>
  defineAgent({ name: "lead", description: "Leads. Use often. Not always.", prompt: "Lead.", ...fields });

const request: SpawnRequest = { description: "look", prompt: "Look around.", origin: "model" };

function planBelow(
  parent: AgentPlan,
  definition: AgentDefinition,
  { changes = {}, found = {} }: { changes?: Partial<SpawnRequest>; found?: Partial<ChildFacts> } = {},
) {
  return planAgent(
    { ...request, ...changes },
    {
      definition,
      agentId: `${parent.agent.id}-${definition.name}`,
      parent,
      aliases: shippedAliases,
      available,
      system: ["Work."],
      trusted: true,
      backgroundAllowed: true,
      servers: [{ name: "shop" }],
      ...found,
    },
  );
}

function planned(...parts: Parameters<typeof planBelow>): ChildPlan {
  const result = planBelow(...parts);
  if (result.type === "refused") throw new Error(result.reason);
  return result.plan;
}

const refusal = (...parts: Parameters<typeof planBelow>) => {
  const result = planBelow(...parts);
  return result.type === "refused" ? result.reason : "planned";
};

const lead = agent({ tools: ["Read", "Bash(git *)", "Agent(worker)"] });
const worker = agent({ name: "worker", tools: ["Read", "Bash", "Write"] });
const names = ({ tools }: ChildPlan) => tools.map(({ name }) => name);

describe("[NST-1] a subagent starts agents", () => {
  test("never by default, whatever is in its definition", () => {
    const own = planned(main(), lead);
    expect(own.spawn).toBe("none");
    expect(names(own)).not.toContain("Agent");
    expect(refusal(own, worker)).toContain("cannot start agents");
  });

  test("never with a depth of 1", () => {
    expect(planned(main(1), lead).spawn).toBe("none");
  });

  test("only those that it names", () => {
    const own = planned(main(2), lead);
    expect(own.spawn).toEqual({ only: ["worker"] });
    expect(own.nesting?.depth.value).toBe(2);
    expect(refusal(own, agent({ name: "other" }))).toBe("This agent may only start worker, not other.");
  });

  test.each([
    ["Agent alone", ["Read", "Agent"]],
    ["the old name alone", ["Read", "Task"]],
    ["a star", ["*"]],
    ["no list", undefined],
  ])("none with %s", (_title, tools) => {
    const own = planned(main(3), agent({ ...(tools === undefined ? {} : { tools }) }));
    expect(own.spawn).toBe("none");
    expect(names(own)).not.toContain("Agent");
  });

  test("not as a member of a team", () => {
    const team = { team: "t", member: "m", taskList: "t" };
    expect(planned(main(3), lead, { changes: { team } }).spawn).toBe("none");
  });

  test("and a list without names says why it has no effect", () => {
    expect(planned(main(2), agent({ tools: ["Read", "Agent"] })).notes.join(" ")).toContain(
      "does not name the agents",
    );
  });
});

describe("[NST-1] what a subagent starts", () => {
  const own = planned(main(2), lead);

  test("is one level below it, and its place is in the plan", () => {
    const below = planned(own, worker);
    expect(levelOf(below)).toBe(2);
    expect(below.task).toMatchObject({
      parentId: "main-lead",
      ancestors: [{ id: "main-lead", name: "lead" }],
    });
  });

  test("has only tools that its parent has, and these no further", () => {
    const below = planned(own, worker);
    expect(below.tools).toMatchObject([{ name: "Bash", allowOnly: ["git *"] }, { name: "Read" }]);
    expect(names(below)).toEqual(["Bash", "Read"]);
  });

  test("is kept to the narrower of both specifiers by the gate", async () => {
    const below = planned(own, agent({ name: "worker", tools: ["Bash(git log *)", "Bash(npm log *)"] }));
    const policy = { ...below.policy, mode: "bypassPermissions" as const, outerModes: [] };
    const judge = async (command: string) => {
      const call: CallToJudge = { tool: "Bash", effect: "execute", input: { command } };
      return decide(await gatherCallFacts(call, { policy, directory: "/p" }), policy).type;
    };
    expect(await judge("git log -1")).toBe("allow");
    expect(await judge("npm log x")).toBe("deny");
    expect(await judge("git status")).toBe("deny");
  });

  test.each([
    [
      "a conversation of its parent",
      agent({ name: "worker", forkContext: true }),
      {},
      "main agent can start",
    ],
    ["a team", worker, { teamName: "t" }, "Only the main agent has a team"],
  ])("cannot be one with %s", (_title, definition, changes, why) => {
    expect(refusal(own, definition, { changes })).toContain(why);
  });

  test("cannot bring MCP servers that its parent does not have", () => {
    const definition = agent({
      name: "worker",
      mcpServers: [{ mine: { command: "x" } }],
    });
    expect(refusal(own, definition)).toContain("brings MCP servers of its own (mine)");
  });

  test("cannot be a program of another vendor that could do more than its parent, also where a person accepts it of others", () => {
    const runner = { acp: "vendor --acp", unguarded: true };
    const definition = agent({ name: "worker", tools: ["Read"], runner });
    expect(planned(main(2), definition).runner).toMatchObject({ unguarded: true });
    expect(refusal(own, definition)).toContain("even with `unguarded: true`");
    const whole = planned(main(2), agent({ tools: ["Read", "Edit", "Write", "Bash", "Agent(worker)"] }));
    const equal = agent({ name: "worker", runner });
    expect(planned(whole, equal).runner).not.toHaveProperty("unguarded");
  });

  test("shares the working tree of an isolated parent", () => {
    const isolated = { ...own, task: { ...own.task, isolation: "worktree" as const } };
    expect(refusal(isolated, worker, { changes: { isolation: "worktree" } })).toContain("which the agents");
  });

  test("has no memory of its own, and says so", () => {
    const memory = { scope: "user", directory: "/h/memory/worker" } as never;
    const below = planned(own, agent({ name: "worker", memory: "user" }), { found: { memory } });
    expect(below.memory).toBeUndefined();
    expect(below.policy.toolScopes?.at(-1)?.memoryDirectory).toBeUndefined();
    expect(below.notes.join(" ")).toContain("memory of worker is off");
  });
});

describe("[NST-1] a definition that delegates to itself", () => {
  const self = agent({ name: "self", tools: ["Read", "Agent(self)"] });

  test.each([2, 3, 7])("ends at a depth of %i with a sentence", (depth) => {
    let last: AgentPlan = main(depth);
    let levels = 0;
    for (let next = planBelow(last, self); next.type === "planned"; next = planBelow(last, self)) {
      last = next.plan;
      levels += 1;
    }
    expect(levels).toBe(depth);
    expect(last.spawn).toBe("none");
    expect(last.notes.join(" ")).toContain(`limits.depth allows ${depth} levels`);
    expect(last.system.join(" ")).toContain("you cannot start others");
    expect(refusal(last, self)).toMatch(/cannot start agents|is on the last level/);
  });
});

const calls: readonly CallToJudge[] = [
  { tool: "Read", effect: "read", input: { file_path: "/p/a.ts" } },
  { tool: "Read", effect: "read", input: { file_path: "/q/.env" } },
  { tool: "Write", effect: "edit", input: { file_path: "/p/src/a.ts" } },
  { tool: "Edit", effect: "edit", input: { file_path: "/p/b.ts", old_string: "a", new_string: "b" } },
  { tool: "Bash", effect: "execute", input: { command: "git log" } },
  { tool: "Bash", effect: "execute", input: { command: "git push" } },
  { tool: "Bash", effect: "execute", input: { command: "npm test" } },
  { tool: "Bash", effect: "execute", input: { command: "echo x > /p/x.txt" } },
  { tool: "mcp__shop__order", effect: "network", input: {}, mcp: { server: "shop", tool: "order" } },
  { tool: "mcp__shop__list", effect: "network", input: {}, mcp: { server: "shop", tool: "list" } },
  { tool: "Agent", effect: "spawn", input: { subagent_type: "a" } },
  { tool: "Agent", effect: "spawn", input: { subagent_type: "b" } },
];

const entry = fc.constantFrom(
  "Read",
  "Write",
  "Edit(src/**)",
  "Edit",
  "Bash",
  "Bash(git *)",
  "Bash(git log:*)",
  "Agent(a)",
  "Agent(b)",
  "Agent(a, b)",
  "Agent",
  "mcp__shop",
  "mcp__shop__list",
  "*",
);
const limits = fc.record(
  {
    usd: fc.constantFrom(0.1, 1, 5),
    seconds: fc.constantFrom(10, 60, 600),
    tokens: fc.constantFrom(100, 10_000),
    toolCalls: fc.constantFrom(1, 30),
  },
  { requiredKeys: [] },
);
const definitions = fc.record(
  {
    name: fc.constantFrom("a", "b"),
    tools: fc
      .tuple(fc.array(entry, { maxLength: 5 }), fc.boolean())
      .map(([own, leads]) => ["Read", ...(leads ? ["Agent(a, b)"] : []), ...own]),
    disallowedTools: fc.array(fc.constantFrom("Write", "Bash(git push:*)", "Agent(b)", "mcp__shop__order")),
    permissionMode: fc.constantFrom(...permissionModes),
    limits,
    memory: fc.constantFrom("user" as const, "project" as const),
    background: fc.boolean(),
  },
  { requiredKeys: ["name"] },
);
const asked = fc.record(
  {
    limits,
    background: fc.boolean(),
    mode: fc.constantFrom<PermissionMode>(...permissionModes),
    maxTurns: fc.constantFrom(1, 500),
  },
  { requiredKeys: [] },
);

describe("[NST-1] whatever is in definitions and calls", () => {
  const chains = fc.array(fc.tuple(definitions, asked, fc.boolean()), { minLength: 2, maxLength: 4 });
  const start = fc.tuple(fc.integer({ min: 1, max: 5 }), fc.constantFrom<PermissionMode>(...permissionModes));

  test("no agent has a right, a dollar or a second that the subagent which started it does not have", async () => {
    let compared = 0;
    await fc.assert(
      fc.asyncProperty(start, chains, async ([depth, mode], chain) => {
        const root = main(depth);
        let parent: AgentPlan = { ...root, policy: { ...root.policy, mode } };
        for (const [fields, changes, isReader] of chain) {
          const memory = { scope: "user", directory: `/h/memory/${fields.name}` } as never;
          const found = fields.memory === undefined ? {} : { memory };
          const next = planBelow(
            parent,
            { ...agent(fields), ...(isReader ? { onlyReads: true as const } : {}) },
            { changes, found },
          );
          if (next.type === "refused") return;
          expect(levelOf(next.plan)).toBeLessThanOrEqual(depth);
          if (parent.task !== undefined) {
            await expectNoMore(next.plan, parent);
            compared += 1;
          }
          expect(next.plan.spawn).not.toBe("any");
          parent = next.plan;
        }
      }),
    );
    expect(compared).toBeGreaterThan(4);
  });

  async function expectNoMore(below: ChildPlan, above: AgentPlan): Promise<void> {
    const has = new Set(above.tools.map(({ name }) => name));
    expect(below.tools.filter(({ name }) => !has.has(name))).toEqual([]);
    const servers = new Set((above.mcpServers ?? []).map(({ name }) => name));
    expect((below.mcpServers ?? []).filter(({ name }) => !servers.has(name))).toEqual([]);
    for (const key of ["costUsd", "timeMs", "tokens", "toolCalls"] as const) {
      const most = above.limits?.[key]?.value ?? Number.POSITIVE_INFINITY;
      expect(below.limits?.[key]?.value ?? Number.POSITIVE_INFINITY).toBeLessThanOrEqual(most);
    }
    if (below.spawn !== "none" && above.spawn !== "none" && above.spawn !== "any") {
      const named = new Set(above.spawn.only);
      expect(below.spawn === "any" ? ["any"] : below.spawn.only.filter((name) => !named.has(name))).toEqual(
        [],
      );
    }
    const rank = { deny: 0, ask: 1, allow: 2 };
    for (const call of calls) {
      const judge = async ({ policy }: AgentPlan) =>
        rank[decide(await gatherCallFacts(call, { policy, directory: "/p" }), policy).type];
      expect([call.input, await judge(below)]).toEqual([
        call.input,
        Math.min(await judge(below), await judge(above)),
      ]);
    }
  }
});
