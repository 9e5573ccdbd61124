import type { AgentDefinition } from "../definitions/agent-definition.ts";
import type { McpServer } from "../mcp/mcp-server.ts";
import { mcpIdentity, mcpServerPart, mcpToolName } from "../mcp/tool-name.ts";
import type { AvailableTool } from "../tools/match-tools.ts";
import { parseToolEntry } from "../tools/tool-entry.ts";

/** What stands in a plan for the tools of servers that were not asked: all of them, and those a definition names. */
export function plannedTools(
  servers: readonly Pick<McpServer, "name">[],
  definition: Pick<AgentDefinition, "tools" | "mcpServers"> | undefined,
): readonly AvailableTool[] {
  const entries = (definition?.tools ?? []).map((entry) => parseToolEntry(entry).name);
  const limits = (definition?.mcpServers ?? []).flatMap((server) =>
    server.type === "reference" ? [server] : [],
  );
  return servers.flatMap(({ name }) => {
    const part = mcpServerPart(name);
    const limit = limits.find((each) => mcpServerPart(each.name) === part)?.tools;
    const named = limit ?? entries.flatMap((entry) => toolIn(entry, part));
    const literal = [...new Set(named)].filter((tool) => !tool.includes("*"));
    return [
      ...literal.map((tool) => planned(name, tool)),
      ...(limit === undefined ? [whole(name, part)] : []),
    ];
  });
}

function toolIn(entry: string, server: string): readonly string[] {
  const [, named, tool] = /^mcp__(.+?)__(.+)$/.exec(entry) ?? [];
  return named !== undefined && tool !== undefined && mcpServerPart(named) === server ? [tool] : [];
}

function planned(server: string, tool: string): AvailableTool {
  const bare = toolIn(tool, mcpServerPart(server))[0] ?? tool;
  const identity = mcpIdentity(server, bare);
  return { name: mcpToolName(server, bare), effect: "execute", origin: "mcp", server, mcp: identity };
}

function whole(server: string, part: string): AvailableTool {
  const mcp = { server: part, tool: "*" };
  return { name: `mcp__${part}__*`, effect: "execute", origin: "mcp", server, mcp };
}
