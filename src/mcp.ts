/** `retinue/mcp`: configurations of MCP servers, and how those of a session are doing. */

export {
  type McpServerConfig as ReadMcpServer,
  type McpServersReading,
  readMcpServers,
} from "@retinue/config/mcp/mcp-server-config.ts";
export type { McpScope } from "@retinue/config/mcp/mcp-transport.ts";
export type { McpServerConfig } from "@retinue/core/kernel/options/runtime-options.ts";
export type { SessionServer } from "@retinue/core/kernel/servers/session-servers.ts";
export type { McpStatus, ProgramServer } from "@retinue/core/mcp/mcp-connections.ts";
