import { type GatheredMcp, gatherMcpServers } from "../../runtime/servers/gather-mcp-servers.ts";
import { chooseMcpServers, type HeldServer, type McpEntry } from "../../settings/choose-mcp-servers.ts";
import { type GatheredSession, gatherSession } from "./gather-session.ts";
import { type CommandContext, misuse } from "./session-options.ts";

/** What would become of a server: `connects` says what `retinue -p` does, `asks` that a person would be asked first. */
export interface ListedServer {
  readonly entry: McpEntry;
  readonly connects: boolean;
  readonly asks: boolean;
  readonly held?: HeldServer;
}

export interface CliMcp {
  readonly session: GatheredSession;
  readonly gathered: GatheredMcp;
  readonly listed: readonly ListedServer[];
}

/** All MCP servers as a run with these options would find them. Nothing is started. */
export async function gatherMcp(context: CommandContext): Promise<CliMcp> {
  const session = await gatherSession(context, { toleratesBrokenFiles: true });
  const found = await gatherMcpOf(session, context);
  const { brokenConfig } = found.gathered;
  if (brokenConfig !== undefined)
    throw misuse(`--mcp-config cannot be used: ${brokenConfig.message}`, brokenConfig.advice);
  return { session, ...found };
}

export async function gatherMcpOf(
  { discovered, trust }: GatheredSession,
  { host, session }: CommandContext,
): Promise<Omit<CliMcp, "session">> {
  const gathered = await gatherMcpServers({
    discovered,
    trusted: trust.trusted,
    environment: { ...host.environment, ...Object.fromEntries(discovered.settings.settings.env) },
    ...(session.settingSources === undefined ? {} : { settingSources: session.settingSources }),
    ...(session.mcpConfig === undefined ? {} : { mcpConfig: session.mcpConfig }),
    ...(session.strictMcpConfig === true ? { strictMcpConfig: true } : {}),
  });
  const attended = chooseMcpServers(gathered.entries, { ...gathered.facts, attended: true });
  const listed = gathered.entries.map((entry): ListedServer => {
    const held = gathered.held.find((each) => each.entry === entry);
    return {
      entry,
      connects: held === undefined,
      asks: attended.asked.some((each) => each.entry === entry),
      ...(held === undefined ? {} : { held }),
    };
  });
  return { gathered, listed };
}
