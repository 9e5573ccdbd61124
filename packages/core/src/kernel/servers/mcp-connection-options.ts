import { findKeychain } from "@retinue/base/storage/find-keychain.ts";
import type { McpScope } from "@retinue/config/mcp/mcp-transport.ts";
import { readEnvironment } from "@retinue/config/settings/read-environment.ts";
import type { McpConnectionOptions } from "../../mcp/mcp-connections.ts";
import { createCredentialStore } from "../../mcp/oauth/credential-store.ts";

/** What a timer takes. */
const maxWaitMs = 2 ** 31 - 1;
const charactersPerToken = 4;

/** How long the start of a session waits for servers that are merely configured. */
const timeoutMs = 5_000;
const configuredScopes: ReadonlySet<McpScope> = new Set(["local", "project", "user", "plugin"]);

/** The limits that variables set for MCP servers, and what all of them are started with. */
export function mcpConnectionOptions({
  environment,
  directory,
  configDirectory,
}: Pick<McpConnectionOptions, "environment" | "directory"> & {
  readonly configDirectory: string;
}): McpConnectionOptions {
  const { mcpTimeoutMs, mcpToolTimeoutMs, maxMcpOutputTokens } = readEnvironment(environment).options;
  return {
    environment,
    directory,
    credentials: createCredentialStore(
      configDirectory,
      findKeychain({ service: "retinue-mcp", environment }),
    ),
    startLimitMs: Math.min(mcpTimeoutMs ?? 30_000, maxWaitMs),
    // Who says how long a server may take wants it to be waited for; so does who names it for this run.
    timeoutMs: ({ scope }) =>
      mcpTimeoutMs === undefined && configuredScopes.has(scope) ? timeoutMs : undefined,
    callLimitMs: Math.min(mcpToolTimeoutMs ?? 100_000_000, maxWaitMs),
    maxResultCharacters: (maxMcpOutputTokens ?? 25_000) * charactersPerToken,
  };
}
