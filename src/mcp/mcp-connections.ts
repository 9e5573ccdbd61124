import type { Tool } from "../tools/tool.ts";
import type { McpServer } from "./mcp-server.ts";

/** How a server is doing, for people and for `/mcp`-like views. */
export type McpStatus =
  | {
      readonly type: "connected";
      readonly tools: number;
      readonly version?: string;
      readonly instructions?: string;
    }
  | { readonly type: "connecting" }
  | { readonly type: "failed"; readonly because: string; readonly advice?: string }
  | { readonly type: "closed" };

export interface McpServerState {
  readonly server: McpServer;
  readonly status: McpStatus;
}

/**
 * The servers of one owner: a session, or one agent for those of its definition. A server that dies is an error for the
 * calls it had, and is started again by the next one.
 */
export interface McpConnections extends AsyncDisposable {
  /** Resolves when each server has answered or failed; never rejects. */
  readonly ready: Promise<void>;
  /** The tools of all servers that answered, in the order of the servers; stable until `ready` has passed again. */
  tools(): readonly Tool[];
  states(): readonly McpServerState[];
  /** Calls a tool by the pair, for hooks and for programs. */
  call(
    server: string,
    tool: string,
    input: Readonly<Record<string, unknown>>,
    options: { readonly signal: AbortSignal },
  ): Promise<{ readonly text: string; readonly isError: boolean }>;
}

export interface McpConnectionOptions {
  /** The environment servers are started with, before their own `env`. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly directory: string;
  /** For the first answer of a server. */
  readonly startLimitMs: number;
  /** For one call, unless the server says otherwise. */
  readonly callLimitMs: number;
  /** Characters of one result that a model sees; the rest is kept in a file. */
  readonly maxResultCharacters: number;
  /** Tells the person what went wrong beside the work. */
  readonly notice?: (text: string) => void;
}
