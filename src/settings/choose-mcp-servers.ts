import type { Diagnostic } from "../foundation/diagnostic.ts";
import type { McpScope, McpServer } from "../mcp/mcp-server.ts";
import { findSameSpelling } from "../mcp/refuse-server-name.ts";
import { type AskedServer, type HeldServer, judgeMcpEntry, type McpFacts } from "./judge-mcp-entry.ts";
import type { McpEntry } from "./mcp-entry.ts";

export interface ChosenServers {
  readonly servers: readonly McpServer[];
  readonly held: readonly HeldServer[];
  readonly asked: readonly AskedServer[];
  readonly diagnostics: readonly Diagnostic[];
}

const ranks: readonly McpScope[] = [
  "managed",
  "flag",
  "agent",
  "local",
  "project",
  "user",
  "plugin",
  "program",
];

/** Decides which servers are connected. Of two with one name the higher rank wins, among those that may be connected. */
export function chooseMcpServers(entries: readonly McpEntry[], facts: McpFacts): ChosenServers {
  const servers = new Map<string, McpServer>();
  const held: HeldServer[] = [];
  const asked: AskedServer[] = [];
  const diagnostics: Diagnostic[] = [];
  const ownNames = entries.filter(({ scope }) => scope === "user" || scope === "plugin").map(nameOf);
  for (const entry of ranks.flatMap((scope) => entries.filter((each) => each.scope === scope))) {
    const { name } = entry.config;
    const replacesOwn = ownNames.includes(name) || findSameSpelling(name, ownNames) !== undefined;
    const verdict = judgeMcpEntry(entry, { facts, replacesOwn, taken: servers.keys() });
    diagnostics.push(...verdict.diagnostics);
    if (verdict.type === "server") servers.set(name, verdict.server);
    else if (verdict.type === "ask") asked.push(verdict.asked);
    else held.push(verdict.held);
  }
  return { servers: [...servers.values()], held, asked, diagnostics };
}

function nameOf({ config }: McpEntry): string {
  return config.name;
}
