import type { McpServerState } from "../../mcp/mcp-connections.ts";
import type { McpServer } from "../../mcp/mcp-server.ts";
import { mcpServerPart } from "../../mcp/mcp-tool-name.ts";
import type { PlannedDefinition } from "../../planning/plan-run.ts";
import { chooseAgentServers, type GatheredMcp } from "./gather-mcp-servers.ts";

export interface OwnServerChoice {
  /** Those that are in the definition and may be started. */
  readonly servers: readonly McpServer[];
  /** The session's, without those that are replaced. */
  readonly shared: readonly McpServer[];
  /** What the definition names and does not get, each as one sentence. */
  readonly notes: readonly string[];
}

type Around = Pick<GatheredMcp, "facts" | "held" | "servers"> & {
  /** How the session's servers are doing, once they were connected. */
  readonly states?: () => readonly McpServerState[];
};

/** Which servers a definition brings along, and what is to be said of those it only names. */
export function chooseOwnServers(definition: PlannedDefinition | undefined, around: Around): OwnServerChoice {
  if (definition?.mcpServers === undefined) return { servers: [], shared: around.servers, notes: [] };
  const chosen = chooseAgentServers(definition, around.facts);
  const servers = chosen.servers.filter((server) => !takesAnothersPlace(server, definition, around));
  const displaced = chosen.servers.filter((server) => !servers.includes(server));
  const shared = around.servers.filter(({ name }) => !servers.some((own) => isSame(own.name, name)));
  const references = definition.mcpServers.filter(({ type }) => type === "reference");
  const missing = references.flatMap(({ name }) =>
    missingNote(name, { ...around, servers: [...servers, ...shared] }),
  );
  const held = chosen.held.map(({ entry, reason, advice }) => notUsed(entry.config.name, reason, advice));
  const warnings = chosen.diagnostics.filter(
    ({ severity, code }) => severity !== "note" && code !== "mcp-server-unusable",
  );
  return {
    servers,
    shared,
    notes: [
      ...held,
      ...displaced.map(({ name }) => notUsed(name, "one of your own has this name, and is used instead")),
      ...missing,
      ...warnings.map(({ message }) => message),
    ],
  };
}

/** Rules that people wrote for a server of theirs must not come to hold for one that a repository brings. */
function takesAnothersPlace(server: McpServer, { source }: PlannedDefinition, { servers }: Around): boolean {
  if (source.scope !== "project") return false;
  return servers.some(({ name, scope }) => scope !== "project" && isSame(name, server.name));
}

function isSame(one: string, other: string): boolean {
  return mcpServerPart(one) === mcpServerPart(other);
}

function missingNote(name: string, { servers, held, states }: Around): readonly string[] {
  const found = servers.find((server) => isSame(server.name, name));
  if (found === undefined) {
    const why = held.find(({ entry }) => isSame(entry.config.name, name));
    return [notUsed(name, why?.reason ?? "no server of this name is configured", why?.advice)];
  }
  const status = states?.().find(({ server }) => server.name === found.name)?.status;
  return status?.type === "failed" ? [notUsed(name, status.reason, status.advice)] : [];
}

function notUsed(name: string, reason: string, advice?: string): string {
  const more = advice === undefined ? "" : ` ${advice}`;
  return `The MCP server ${JSON.stringify(name)} is not used: ${reason}.${more}`;
}
