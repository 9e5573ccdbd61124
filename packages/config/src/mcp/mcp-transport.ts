/** How a server says it is reached; `ws` and `sdk` are known and cannot be used from here. */
export type McpKind = "stdio" | "http" | "sse" | "ws" | "sdk";

/** How a server is reached. What its values name of the environment is expanded already. */
export type McpTransport =
  | {
      readonly type: "stdio";
      readonly command: string;
      readonly args: readonly string[];
      readonly env: Readonly<Record<string, string>>;
      readonly cwd?: string;
    }
  | {
      readonly type: "http" | "sse";
      readonly url: string;
      readonly headers: Readonly<Record<string, string>>;
      /** A command that prints more headers as JSON. */
      readonly headersHelper?: string;
    }
  /** A server that a program holds in its own memory and hands over by name beside this. */
  | { readonly type: "sdk" };

/** Where a server is configured, highest rank first; `agent` is one that is in a definition. */
export type McpScope = "managed" | "flag" | "agent" | "local" | "project" | "user" | "plugin" | "program";

/** One MCP server that may be connected. Plain data. */
export interface McpServer {
  /** As configured; tools carry it with what a tool name cannot hold as underscores. */
  readonly name: string;
  readonly transport: McpTransport;
  readonly scope: McpScope;
  readonly file?: string;
  /** Milliseconds for one call; absent means what the environment says. */
  readonly timeoutMs?: number;
}
