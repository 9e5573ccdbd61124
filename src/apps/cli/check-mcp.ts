import { abortable } from "../../foundation/abortable.ts";
import type { McpServerState, McpStatus } from "../../mcp/mcp-connections.ts";
import { mcpConnectionOptions } from "../../runtime/servers/mcp-connection-options.ts";
import type { CliMcp } from "./gather-mcp.ts";
import type { GatheredSession } from "./gather-session.ts";
import type { CommandContext } from "./session-options.ts";

/** Connects every server that a run would connect, to see how each is doing, and ends them again. */
export async function checkMcp(
  { gathered }: Pick<CliMcp, "gathered">,
  { discovered }: Pick<GatheredSession, "discovered">,
  { host }: CommandContext,
): Promise<readonly McpServerState[]> {
  if (gathered.servers.length === 0) return [];
  const environment = { ...host.environment, ...Object.fromEntries(discovered.settings.settings.env) };
  const { connectServers } = await import("../../mcp/mcp-server.ts");
  const stop = new AbortController();
  const forget = host.onInterrupt((reason) => stop.abort(reason));
  try {
    const options = mcpConnectionOptions({ environment, directory: discovered.paths.cwd });
    await using connections = connectServers(gathered.servers, options);
    await abortable(connections.ready, stop.signal);
    return connections.states();
  } finally {
    forget();
  }
}

/** In a few words; a failure is reported elsewhere, as it may be long. */
export function statusWords(status: McpStatus): string {
  if (status.type !== "connected") return "failed";
  return status.tools === 1 ? "1 tool" : `${status.tools} tools`;
}
