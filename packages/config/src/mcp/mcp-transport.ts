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
      /** How to log in, where the server's own metadata do not say it all. */
      readonly oauth?: McpOauth;
    }
  /** A server that a program holds in its own memory and hands over by name beside this. */
  | { readonly type: "sdk" };

/** What a configuration says about logging in at a server. */
export interface McpOauth {
  /** Without a person, `client_credentials`; otherwise a person logs in with a browser. */
  readonly grant: "authorization_code" | "client_credentials";
  /** A client that is registered already. */
  readonly clientId?: string;
  readonly clientSecret?: string;
  /** An https address that is the client's id, where the authorization server takes such. */
  readonly clientMetadataUrl?: string;
  /** The port of the address that the browser comes back to; any free one when left out. */
  readonly callbackPort?: number;
  /** Separated by spaces; what the server asks for when left out. */
  readonly scopes?: string;
  /** Where the authorization server describes itself, instead of what the MCP server names. */
  readonly authServerMetadataUrl?: string;
}

/** Where a server is configured, highest rank first; `agent` is one that is in a definition. */
export type McpScope = "managed" | "flag" | "agent" | "local" | "project" | "user" | "plugin" | "program";

/** One MCP server that may be connected. Plain data. */
export interface McpServer {
  /** As configured; tools carry it with what a tool name cannot hold as underscores. */
  readonly name: string;
  readonly transport: McpTransport;
  readonly scope: McpScope;
  readonly file?: string;
  /** Milliseconds for one call; absent means as in the environment. */
  readonly timeoutMs?: number;
  /** Its tools are in every prompt, however many there are. */
  readonly alwaysLoad?: boolean;
}
