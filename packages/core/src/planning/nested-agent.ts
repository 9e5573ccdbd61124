import { canonicalToolName } from "@retinue/base/foundation/tool-table.ts";
import type { AgentDefinition } from "@retinue/config/agents/agent-definition.ts";
import { parseToolEntry } from "@retinue/config/tools/tool-entry.ts";
import type { GrantedTool, SpawnRule } from "@retinue/config/tools/tool-grants.ts";
import { type AgentPlan, type ChildPlan, levelOf } from "./agent-plan.ts";
import type { AgentRequest } from "./agent-request.ts";

/** Whether a child of this parent may start the agents that its definition names. */
export function mayNest(
  { team, workflow }: Pick<AgentRequest, "team" | "workflow">,
  parent: AgentPlan,
): boolean {
  // A teammate starts none: its lead does. Nor does a step: its script does.
  if (parent.nesting === undefined || team !== undefined || workflow !== undefined) return false;
  return levelOf(parent) + 1 < parent.nesting.depth.value;
}

/** Whom a child may start: those that its tools name, never just any. */
export function spawnRuleOf(tools: readonly GrantedTool[]): SpawnRule {
  const only = tools.find(({ name }) => name === "Agent")?.allowOnly ?? [];
  return only.length === 0 ? "none" : { only };
}

interface NestedStart {
  readonly definition: AgentDefinition;
  readonly parent: AgentPlan;
}

/** Why an agent that was started by another cannot start this one; whom it may start is another question. */
export function refuseNested(
  request: Pick<AgentRequest, "team" | "teamName" | "isolation">,
  { definition, parent }: NestedStart,
): string | undefined {
  const { nesting } = parent;
  const who = parent.agent.name;
  if (nesting === undefined) return "An agent that was started by another cannot start agents.";
  if (levelOf(parent) >= nesting.depth.value)
    return `${depthText(nesting.depth.value)}, and ${who} is on the last one.`;
  if (request.team !== undefined || request.teamName !== undefined)
    return `Only the main agent has a team, and ${who} is a subagent; leave the team out.`;
  if (definition.forkContext === true)
    return `${definition.name} starts with the conversation of its parent, and only the main agent can start such an agent.`;
  const brought = (definition.mcpServers ?? [])
    .filter(({ type }) => type === "inline")
    .map(({ name }) => name);
  if (brought.length > 0)
    return `${definition.name} brings MCP servers of its own (${brought.join(", ")}), which ${who} does not have; what a subagent starts has no more than the subagent.`;
  const isolation = request.isolation ?? definition.isolation;
  if (isolation !== undefined && parent.task?.isolation !== undefined)
    return `${who} works in a working tree of its own, which the agents that it starts share; leave the isolation out.`;
  return undefined;
}

function depthText(depth: number): string {
  return `The setting limits.depth allows ${depth} levels of agents`;
}

/** What an agent and its parent are shown when its definition names agents that the depth does not allow any more. */
export function endOfNesting(
  { team }: Pick<AgentRequest, "team">,
  { definition, parent }: NestedStart,
): { readonly prompt: string; readonly note: string } | undefined {
  const { nesting } = parent;
  if (nesting === undefined || team !== undefined || levelOf(parent) + 1 < nesting.depth.value)
    return undefined;
  const entry = definition.tools?.find((text) => {
    const { type, name } = parseToolEntry(text);
    return type === "scoped" && canonicalToolName(name) === "Agent";
  });
  if (entry === undefined) return undefined;
  const text = `${depthText(nesting.depth.value)}`;
  return {
    prompt: `You are on the last level of agents here: you cannot start others, so do the work yourself and hand in what you have.`,
    note: `${text}, so ${definition.name} starts no agents here, although its tools name ${entry}.`,
  };
}

/** Of the servers of a child of a subagent, no more tools and resources than its parent has of them. */
export function withinParentServers(
  { mcpServers }: Pick<AgentPlan, "mcpServers">,
  parent: AgentPlan,
): Pick<AgentPlan, "mcpServers"> {
  if (mcpServers === undefined || parent.task === undefined)
    return mcpServers === undefined ? {} : { mcpServers };
  const above = new Map((parent.mcpServers ?? []).map((server) => [server.name, server]));
  return {
    mcpServers: mcpServers.flatMap((server) => {
      const parents = above.get(server.name);
      if (parents === undefined || server.own) return [];
      if (parents.tools === undefined) return [server];
      const tools = server.tools?.filter((tool) => parents.tools?.includes(tool)) ?? parents.tools;
      return [{ ...server, tools }];
    }),
  };
}

/** A plan that was made elsewhere starts agents only as far as this session allows it too. */
export function withinDepth(plan: ChildPlan, { nesting }: Pick<AgentPlan, "nesting">): ChildPlan {
  if (plan.spawn === "none") return plan;
  const { nesting: planned, ...rest } = plan;
  if (planned !== undefined && nesting !== undefined && levelOf(plan) < nesting.depth.value) {
    const depth = nesting.depth.value < planned.depth.value ? nesting.depth : planned.depth;
    const agents = nesting.agents.value < planned.agents.value ? nesting.agents : planned.agents;
    return { ...plan, nesting: { depth, agents } };
  }
  return {
    ...rest,
    spawn: "none",
    tools: plan.tools.filter(({ name }) => name !== "Agent"),
    notes: [
      ...plan.notes,
      "It starts no agents here, although its plan says so: the setting limits.depth does not allow it.",
    ],
  };
}
