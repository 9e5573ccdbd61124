import type { McpServer } from "@retinue/config/mcp/mcp-transport.ts";
import type { Tool } from "../tools/tool.ts";
import type { CallEnd } from "./listed-tool.ts";
import type { CredentialStore } from "./oauth/credential-store.ts";

/** A server object of a program: what the official server packages call `connect`. */
export interface ProgramServer {
  connect(transport: unknown): Promise<void>;
  close?(): Promise<void>;
}

/** What a server wants to know of the person in the middle of a call. */
export interface McpQuestion {
  readonly server: string;
  readonly message: string;
  /** Where it wants the person to go instead of filling in a form. */
  readonly url?: string;
  readonly elicitationId?: string;
  /** The form it wants filled in, as a JSON Schema. */
  readonly schema?: Readonly<Record<string, unknown>>;
}

export interface McpAnswer {
  readonly action: "accept" | "decline" | "cancel";
  readonly content?: Readonly<Record<string, string | number | boolean | string[]>>;
}

/** How often a server that ends is started again. */
export interface RestartLimits {
  /** Starts within the window, after which it is left alone. */
  readonly most: number;
  readonly windowMs: number;
  /** The wait before the second start within the window; each further one is twice as long. */
  readonly pauseMs: number;
}

/** How a server is doing, for people and for `/mcp`-like views. */
export type McpStatus =
  | {
      readonly type: "connected";
      readonly tools: number;
      readonly version?: string | undefined;
      readonly instructions?: string | undefined;
    }
  | { readonly type: "connecting" }
  | {
      readonly type: "failed";
      readonly reason: string;
      readonly advice?: string | undefined;
      /** It answered, and wants to know who asks. */
      readonly needsAuth?: true | undefined;
      /** A person can log in there; otherwise its configuration has to say who asks. */
      readonly canLogIn?: true | undefined;
    }
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
  /** Resolves when each server has answered or failed; never rejects. A new one once a server says its tools changed. */
  readonly ready: Promise<void>;
  /** The tools of all servers that answered, in the order of the servers; stable until `ready` has passed again. */
  tools(): readonly Tool[];
  /** Tools to list and read resources of the named servers, or of all; none where no such server has resources. */
  resourceTools(servers?: ReadonlySet<string>): readonly Tool[];
  states(): readonly McpServerState[];
  /** Calls a tool by the pair, for hooks and for programs. */
  call(
    server: string,
    tool: string,
    input: Readonly<Record<string, unknown>>,
    options: { readonly signal: AbortSignal },
  ): Promise<{ readonly text: string; readonly isError: boolean }>;
  /** Sends a request to one server, for programs; what comes back is untrusted. */
  request(
    server: string,
    method: string,
    parameters: Readonly<Record<string, unknown>>,
    options: { readonly signal: AbortSignal },
  ): Promise<CallEnd>;
  /** What the connected servers offer as prompts. */
  prompts(options: { readonly signal: AbortSignal }): Promise<readonly ServerPrompt[]>;
}

/** A prompt that a server offers to people, as a command. */
export interface ServerPrompt {
  readonly server: string;
  readonly name: string;
  /** The name under which a person calls it. */
  readonly command: string;
  readonly description: string;
  /** The names of its arguments, in the order in which a person writes them. */
  readonly arguments: readonly string[];
}

export interface McpConnectionOptions {
  /** The environment servers are started with, before their own `env`. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly directory: string;
  /** For the first answer of a server. */
  readonly startLimitMs: number;
  /** How long `ready` waits for a server, where that is less than its limit; one that answers later adds its tools then. */
  readonly timeoutMs?: (server: McpServer) => number | undefined;
  /** For one call, unless the server says otherwise. */
  readonly callLimitMs: number;
  /** Characters of one result that a model sees; the rest is kept in a file. */
  readonly maxResultCharacters: number;
  /** Shows the person what went wrong beside the work. */
  readonly notice?: (text: string) => void;
  /** Server objects of the program, by server name, for transports of type `sdk`. */
  readonly programServers?: ReadonlyMap<string, ProgramServer>;
  /** Puts a server's question to the person; absent means that servers are informed that the run is unattended. */
  readonly ask?: (question: McpQuestion, options: { readonly signal: AbortSignal }) => Promise<McpAnswer>;
  /** Is notified that `tools()` gives something other than before. */
  readonly onToolsChanged?: () => void;
  /** Logins of the person; absent: servers get what their configuration says, and no tokens. */
  readonly credentials?: CredentialStore;
  readonly restarts?: RestartLimits;
  /** How long a server may take to end after SIGTERM; after its input was closed, at most 300 ms of it. */
  readonly graceMs?: number;
}
