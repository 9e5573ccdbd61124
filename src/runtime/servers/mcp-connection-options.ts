import type { McpConnectionOptions } from "../../mcp/mcp-connections.ts";
import { readEnvironment } from "../../settings/read-environment.ts";

/** What a timer takes. */
const maxWaitMs = 2 ** 31 - 1;
const charactersPerToken = 4;

/** The limits that variables set for MCP servers, and what all of them are started with. */
export function mcpConnectionOptions({
  environment,
  directory,
}: Pick<McpConnectionOptions, "environment" | "directory">): McpConnectionOptions {
  const { mcpTimeoutMs, mcpToolTimeoutMs, maxMcpOutputTokens } = readEnvironment(environment).options;
  return {
    environment,
    directory,
    startLimitMs: Math.min(mcpTimeoutMs ?? 30_000, maxWaitMs),
    callLimitMs: Math.min(mcpToolTimeoutMs ?? 100_000_000, maxWaitMs),
    maxResultCharacters: (maxMcpOutputTokens ?? 25_000) * charactersPerToken,
  };
}
