import type { AgentDefinition } from "../definitions/agent-definition.ts";
import type { AvailableTool } from "../tools/grants/match-tools.ts";
import { grantTools, type ToolGrant } from "../tools/grants/tool-grants.ts";
import { isReplaced, type OwnServers } from "./own-servers.ts";
import type { RunPlan } from "./run-plan.ts";
import { narrowByServers } from "./servers-of-run.ts";
import { limitTools, type SessionTools, type ToolLimits } from "./session-tools.ts";

/** What decides which tools a child gets. */
export interface ToolFacts extends ToolLimits {
  /** Without its `memory` where there is none. */
  readonly definition: Pick<AgentDefinition, "tools" | "disallowedTools" | "mcpServers" | "memory">;
  readonly parent: RunPlan;
  /** Every tool of the session. */
  readonly available: readonly AvailableTool[];
  readonly own?: OwnServers;
  readonly background: boolean;
  /** Tools that a member of a team has besides those of its definition; absent for all others. */
  readonly forTeam?: readonly string[];
}

export interface PlannedTools {
  readonly grant: ToolGrant;
  /** What it could have had. */
  readonly available: readonly AvailableTool[];
  /** What its `mcpServers` name and is not there, each as one sentence. */
  readonly notes: readonly string[];
}

/**
 * Without `tools` those of the parent, as far as the parent has them; with `tools` those of the list that the session has.
 * What the session or an agent above takes away is missing for everybody, with a note where the list names it.
 */
export function planTools(facts: ToolFacts): PlannedTools {
  const { definition, parent, own, background } = facts;
  const hasOwn = own !== undefined && own.names.length > 0;
  const shared = hasOwn ? facts.available.filter(({ server }) => !isReplaced(server, own)) : facts.available;
  const session = limitTools([...shared, ...(own?.tools ?? [])], parent, facts);
  const reachable = reachableTools(session, facts).filter(({ origin }) => !(background && origin === "mcp"));
  const narrowed = narrowByServers(definition, reachable);
  const isInheriting = definition.tools === undefined;
  const grant = grantTools({
    definition: narrowed.definition,
    available: narrowed.available,
    withheld: session.withheld,
    forMemory: session.offered,
    role: "subagent",
    ...(facts.forTeam === undefined ? {} : { forTeam: facts.forTeam, offered: session.offered }),
    ...(isInheriting ? { inherited: inheritedLimits(parent) } : {}),
  });
  return { grant, available: narrowed.available, notes: narrowed.notes };
}

function reachableTools(
  { offered }: SessionTools,
  { definition, parent, own }: ToolFacts,
): readonly AvailableTool[] {
  if (definition.tools !== undefined) return offered;
  // A tool that the parent has only for its memory is none that a child could use.
  const inherited = parent.tools.filter(({ confinedTo }) => confinedTo === undefined);
  const names = new Set([...inherited, ...(own?.tools ?? [])].map(({ name }) => name));
  return offered.filter(({ name }) => names.has(name));
}

/** A child that inherits a tool has it only as far as its parent. */
function inheritedLimits({ tools }: RunPlan): ReadonlyMap<string, readonly string[]> {
  return new Map(
    tools.flatMap(({ name, allowOnly }) => (allowOnly === undefined ? [] : [[name, allowOnly]])),
  );
}
