import type { AgentDefinition } from "../definitions/agent-definition.ts";
import { mcpServerPart } from "../permissions/mcp-identity.ts";
import type { AvailableTool } from "../tools/grants/match-tools.ts";
import type { GrantedTool } from "../tools/grants/tool-grants.ts";
import type { RunPlan } from "./run-plan.ts";
import { serversOfRun } from "./servers-of-run.ts";

/** What comes from MCP servers that are in a definition. */
export interface OwnServers {
  readonly names: readonly string[];
  readonly tools: readonly AvailableTool[];
}

interface ServersAround {
  readonly definition: AgentDefinition;
  readonly parent: RunPlan;
  /** The MCP servers of the session; absent means those of the parent. */
  readonly servers?: readonly { readonly name: string }[];
  readonly own?: OwnServers;
}

export function serversOfChild(
  { definition, parent, servers: ofSession, own }: ServersAround,
  available: readonly AvailableTool[],
  granted: readonly GrantedTool[],
): Pick<RunPlan, "mcpServers"> {
  const shared = (definition.tools === undefined ? undefined : ofSession) ?? parent.mcpServers ?? [];
  const inherited = shared.filter(({ name }) => !isReplaced(name, own));
  const removedAbove = (parent.policy.toolScopes ?? []).flatMap(({ removes = [] }) => removes);
  const servers = [
    ...(own?.names ?? []).map((name) => ({ name, own: true })),
    ...inherited.map(({ name }) => ({ name, own: false })),
  ];
  const disallowedTools = [...removedAbove, ...(definition.disallowedTools ?? [])];
  return serversOfRun({
    definition: { ...definition, disallowedTools },
    servers,
    available,
    granted,
    policy: parent.policy,
  });
}

/** Whether one of the definition's own servers takes the place of another. */
export function isReplaced(server: string | undefined, own: OwnServers | undefined): boolean {
  if (server === undefined || own === undefined) return false;
  return own.names.some((name) => mcpServerPart(name) === mcpServerPart(server));
}
