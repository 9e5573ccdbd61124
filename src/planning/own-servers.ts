import type { AgentDefinition } from "../definitions/agent-definition.ts";
import { removesTool } from "../permissions/decide.ts";
import { mcpServerPart } from "../permissions/mcp-identity.ts";
import type { ToolScopes } from "../permissions/permission-policy.ts";
import type { AvailableTool } from "../tools/match-tools.ts";
import type { GrantedTool } from "../tools/tool-grants.ts";
import { serversOfRun } from "./agent-servers.ts";
import type { RunPlan } from "./run-plan.ts";

/** What comes from MCP servers that stand in a definition. */
export interface OwnServers {
  readonly names: readonly string[];
  readonly tools: readonly AvailableTool[];
}

interface ServersAround {
  readonly definition: AgentDefinition;
  readonly parent: RunPlan;
  readonly own?: OwnServers;
}

/** The agents above need not have what only this child's servers offer. */
export function ownToolNames(
  granted: readonly GrantedTool[],
  own: OwnServers | undefined,
): Pick<ToolScopes, "ownTools"> {
  const names = new Set(own?.tools.map(({ name }) => name));
  const its = granted.map(({ name }) => name).filter((name) => names.has(name));
  return its.length === 0 ? {} : { ownTools: its };
}

export function serversOfChild(
  { definition, parent, own }: ServersAround,
  available: readonly AvailableTool[],
  granted: readonly GrantedTool[],
): Pick<RunPlan, "mcpServers"> {
  const inherited = (parent.mcpServers ?? []).filter(({ name }) => !isReplaced(name, own));
  const servers = [
    ...(own?.names ?? []).map((name) => ({ name, own: true })),
    ...inherited.map(({ name }) => ({ name, own: false })),
  ];
  return serversOfRun({ definition, servers, available, granted, policy: parent.policy });
}

/** Whether one of the definition's own servers takes the place of another. */
export function isReplaced(server: string | undefined, own: OwnServers | undefined): boolean {
  if (server === undefined || own === undefined) return false;
  return own.names.some((name) => mcpServerPart(name) === mcpServerPart(server));
}

/** Without `tools` the parent's; with `tools` whatever the session has. In the background nothing of MCP servers. */
export function availableTo(
  { definition, available, parent, own }: ServersAround & { readonly available: readonly AvailableTool[] },
  background: boolean,
): readonly AvailableTool[] {
  const has = new Set(parent.tools.map(({ name }) => name));
  const shared = available.filter(
    ({ name, server }) => (definition.tools !== undefined || has.has(name)) && !isReplaced(server, own),
  );
  return [...shared, ...(own?.tools ?? [])].filter(
    (tool) => !(background && tool.origin === "mcp") && !removesTool(tool, parent.policy),
  );
}
