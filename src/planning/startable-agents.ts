import type { AgentDefinition } from "../definitions/agent-definition.ts";
import { type AvailableTool, matchTools } from "../tools/match-tools.ts";
import { parseToolEntry } from "../tools/tool-entry.ts";
import type { SpawnRule } from "../tools/tool-grants.ts";
import { planTools } from "./plan-tools.ts";
import type { RunPlan } from "./run-plan.ts";
import { limitTools, type SessionTools } from "./session-tools.ts";

export interface StartingFacts {
  readonly parent: RunPlan;
  /** Every tool of the session. */
  readonly available: readonly AvailableTool[];
}

/** Whether a rule such as `Task(a, b)` lets an agent be started. */
export function maySpawn(
  rule: SpawnRule,
  { name, source }: Pick<AgentDefinition, "name" | "source">,
): boolean {
  if (rule === "any" || rule === "none") return rule === "any";
  return rule.only.some((allowed) => allowed === name || allowed === source.id);
}

/** The agents that a run can start, each with the tools that it would really get, for those who choose one of them. */
export function startableAgents(
  definitions: readonly AgentDefinition[],
  facts: StartingFacts,
): readonly AgentDefinition[] {
  const session = limitTools(facts.available, facts.parent);
  return definitions
    .filter((definition) => maySpawn(facts.parent.spawn, definition) && getsTools(definition, facts))
    .map((definition) => withRealTools(definition, session, facts.parent));
}

/** What servers of its own would offer is known only when they run. */
function getsTools(definition: AgentDefinition, facts: StartingFacts): boolean {
  if (definition.mcpServers?.some(({ type }) => type === "inline") === true) return true;
  return planTools({ ...facts, definition, background: false }).grant.type === "granted";
}

function withRealTools(
  definition: AgentDefinition,
  { offered, withheld }: SessionTools,
  parent: RunPlan,
): AgentDefinition {
  if (definition.tools === undefined) {
    const has = new Set(parent.tools.map(({ name }) => name));
    const inherits = offered.filter(({ name, effect }) => has.has(name) && effect !== "spawn");
    const isWhole = inherits.length === offered.filter(({ effect }) => effect !== "spawn").length;
    return isWhole ? definition : { ...definition, tools: inherits.map(({ name }) => name) };
  }
  const missing = withheld.map(({ tool }) => tool);
  const tools = definition.tools.filter((entry) => {
    const { name } = parseToolEntry(entry);
    return matchTools(name, missing).tools.length === 0 || matchTools(name, offered).tools.length > 0;
  });
  return { ...definition, tools };
}
