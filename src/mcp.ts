/** `retinue/mcp`: configurations of MCP servers, and how those of a session are doing. */
export type { McpStatus, ProgramServer } from "./mcp/mcp-connections.ts";
export {
  type McpServerConfig as ReadMcpServer,
  type McpServersReading,
  readMcpServers,
} from "./mcp/mcp-server-config.ts";
export type { McpScope } from "./mcp/mcp-transport.ts";
export type { McpServerConfig } from "./runtime/options/runtime-options.ts";
export type { SessionServer } from "./runtime/servers/session-servers.ts";
