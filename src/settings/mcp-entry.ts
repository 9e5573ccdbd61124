import type { Locate } from "../foundation/diagnostic.ts";
import type { McpScope } from "../mcp/mcp-server.ts";
import type { McpServerConfig } from "../mcp/mcp-server-config.ts";

/** One server with where it is, before anything is decided about it. */
export interface McpEntry {
  readonly config: McpServerConfig;
  readonly scope: McpScope;
  readonly file?: string;
  /** It came with the working folder, which may be anybody's: it needs trust and a person's word. */
  readonly fromRepository: boolean;
  /** It is in a definition that came with the working folder: trust is enough, as for the definition's hooks. */
  readonly needsTrust?: boolean;
  /** Names that are expanded besides those of the environment, such as `CLAUDE_PLUGIN_ROOT`. */
  readonly variables?: ReadonlyMap<string, string>;
  /** Variables that the server's process gets before its own `env`. */
  readonly extraEnv?: Readonly<Record<string, string>>;
  readonly locate: Locate;
}
