import type { ProgramServer } from "../../mcp/mcp-connections.ts";

interface CommonConfig {
  /** Milliseconds that a call may take. */
  readonly timeout?: number;
  readonly disabled?: boolean;
}

/** A server that is a program, which is started for the session. */
interface StdioConfig extends CommonConfig {
  readonly type?: "stdio";
  readonly command: string;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** A server with an address. */
interface HttpConfig extends CommonConfig {
  readonly type: "http" | "sse";
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A server object of the official packages, inside this program. */
interface SdkConfig {
  readonly type: "sdk";
  readonly name?: string;
  readonly instance: ProgramServer;
}

/** An MCP server as a program configures it: the shape of an `.mcp.json`, or an object in its own memory. */
export type McpServerConfig = StdioConfig | HttpConfig | SdkConfig;
