import type { AgentDefinition } from "../definitions/agent-definition.ts";
import { type AvailableTool, matchTools } from "../tools/grants/match-tools.ts";
import { parseToolEntry } from "../tools/grants/tool-entry.ts";
import type { SpawnRule } from "../tools/grants/tool-grants.ts";
import { planTools, type ToolFacts } from "./plan-tools.ts";
import type { RunPlan } from "./run-plan.ts";
import { webSearchName } from "./search-facts.ts";
import { limitTools, type SessionTools } from "./session-tools.ts";

export interface StartingFacts {
  readonly parent: RunPlan;
  /** Every tool of the session. */
  readonly available: readonly AvailableTool[];
  /** Built-in tools that an agent cannot have although the session has them, each with the reason. */
  readonly refused?: (definition: AgentDefinition) => ReadonlyMap<string, string>;
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
  const { parent, available, refused } = facts;
  return definitions.flatMap((definition) => {
    if (!maySpawn(parent.spawn, definition)) return [];
    const own = refused === undefined ? {} : { refused: refused(definition) };
    if (!getsTools(definition, { parent, available, ...own })) return [];
    return [withRealTools(definition, limitTools(available, parent, own), parent)];
  });
}

/** What servers of its own would offer is known only when they run. */
function getsTools(
  definition: AgentDefinition,
  facts: Omit<ToolFacts, "definition" | "background">,
): boolean {
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
    const own = offered.filter(({ effect, needsChildren }) => effect !== "spawn" && needsChildren !== true);
    const inherits = own.filter(({ name }) => has.has(name));
    // What only some models have does not make the rest a selection.
    const isWhole = own.every(({ name }) => has.has(name) || name === webSearchName);
    return isWhole ? definition : { ...definition, tools: inherits.map(({ name }) => name) };
  }
  const missing = withheld.map(({ tool }) => tool);
  const tools = definition.tools.filter((entry) => {
    const { name } = parseToolEntry(entry);
    return matchTools(name, missing).tools.length === 0 || matchTools(name, offered).tools.length > 0;
  });
  return { ...definition, tools };
}
