// @io
import type { StreamableHTTPClientTransport, Transport } from "@modelcontextprotocol/client";
import { isRecord, quote } from "@retinue/base/foundation/json-record.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { runProcess } from "@retinue/base/foundation/start-process.ts";
import type { McpServer, McpTransport } from "@retinue/config/mcp/mcp-transport.ts";
import { commandEnvironment } from "@retinue/gate/command-environment.ts";
import { connectProcess, maxMessage } from "./connect-process.ts";
import { createBoundedFetch } from "./create-bounded-fetch.ts";
import type { McpConnectionOptions } from "./mcp-connections.ts";
import { createAuthProvider, NeedsLogin, type ServerLogin } from "./oauth/create-auth-provider.ts";
import { serverEnvironment } from "./server-environment.ts";
import { within } from "./within.ts";

export type Sdk = typeof import("@modelcontextprotocol/client");

export interface ServerTransport {
  readonly transport: Transport;
  /** What is known of its end; empty while nothing is. */
  readonly describe: () => string;
  /** Ends what the transport alone does not: a session at the server, the program's server object. */
  readonly release?: () => Promise<void>;
  /** Tokens and headers that are not in the configuration, and must not be shown. */
  readonly secrets?: () => readonly string[];
}

const defaultGraceMs = 1_000;

/** The way to a server, not yet taken. Rejects with a Error when there is none. */
export async function connectTransport(
  server: McpServer,
  sdk: Sdk,
  options: McpConnectionOptions & { readonly signal: AbortSignal },
): Promise<ServerTransport> {
  const { transport } = server;
  switch (transport.type) {
    case "stdio": {
      const started = connectProcess({
        file: transport.command,
        arguments: transport.args,
        directory: transport.cwd ?? options.directory,
        environment: serverEnvironment(options.environment, transport),
        graceMs: options.graceMs ?? defaultGraceMs,
      });
      return { transport: started, describe: started.describe };
    }
    case "http":
    case "sse":
      return connectHttp(transport, sdk, { ...options, name: server.name });
    case "sdk": {
      const { programServers, graceMs = defaultGraceMs } = options;
      const program = programServers?.get(server.name);
      if (program === undefined) {
        throw new RetinueError(
          "mcp-failed",
          "it is an in-process server, and the program did not provide it",
          {
            advice: "Pass the server object under this name when you create the runtime.",
          },
        );
      }
      const [own, theirs] = sdk.InMemoryTransport.createLinkedPair();
      await program.connect(theirs);
      return {
        transport: own,
        describe: () => "",
        release: () => within(program.close?.() ?? Promise.resolve(), graceMs),
      };
    }
  }
}

async function connectHttp(
  configured: Extract<McpTransport, { type: "http" | "sse" }>,
  sdk: Sdk,
  options: McpConnectionOptions & { readonly signal: AbortSignal; readonly name: string },
): Promise<ServerTransport> {
  const reading = await connectHeaders(configured, options);
  if (reading.type === "failed") throw new RetinueError("mcp-failed", reading.reason);
  if (!URL.canParse(configured.url)) {
    throw new RetinueError("mcp-failed", `its address ${JSON.stringify(configured.url)} is not a URL`);
  }
  const { url, headers } = withoutCredentials(new URL(configured.url), reading.headers);
  // Tokens of a login, unless the configuration has its own way to say who asks.
  const { credentials: store } = options;
  const hasAuthorization = Object.keys(headers).some((name) => name.toLowerCase() === "authorization");
  const login: ServerLogin | undefined =
    hasAuthorization || store === undefined ? undefined : createAuthProvider(configured, { sdk, store });
  const secrets = (): readonly string[] => [
    ...Object.values(reading.headers).flatMap((value) => [value, ...value.split(" ").slice(1)]),
    ...(login?.secrets() ?? []),
  ];
  const common = {
    requestInit: { headers },
    fetch: createBoundedFetch(maxMessage),
    authProvider: login,
  };
  if (configured.type === "sse") {
    const transport = new sdk.SSEClientTransport(url, common);
    // The session ends with its stream. In another one, which the transport would open, the server knows nothing of the
    // calls that are under way, and they would wait for ever.
    transport.onerror = (error) => (error instanceof sdk.SseError ? void transport.close() : undefined);
    return { transport, describe: () => "", secrets };
  }
  const transport = new sdk.StreamableHTTPClientTransport(url, common);
  // A stream that ends without the answer it was opened for would leave the call waiting until its limit.
  const send = withStepUp(transport.send.bind(transport), { sdk, login, configured });
  transport.send = (message, options) => {
    if (Array.isArray(message) || !("method" in message) || !("id" in message)) return send(message, options);
    const { id } = message;
    return send(message, {
      ...options,
      onRequestStreamEnd: () => {
        options?.onRequestStreamEnd?.();
        const error = { code: -32000, message: "the server closed the connection before it answered" };
        // For a call that was answered this has no receiver any more, and is dropped.
        transport.onmessage?.({ jsonrpc: "2.0", id, error });
      },
    });
  };
  return {
    transport,
    describe: () => "",
    release: () => within(transport.terminateSession(), options.graceMs ?? defaultGraceMs),
    secrets,
  };
}

interface LoginRequest {
  readonly configured: Extract<McpTransport, { type: "http" | "sse" }>;
  readonly headers: Readonly<Record<string, string>>;
  readonly sdk: Sdk;
  readonly options: McpConnectionOptions;
}

type Send = StreamableHTTPClientTransport["send"];

/** A call that needs more scopes than the token has: a program's account gets them immediately, a person has to log in again. */
function withStepUp(
  send: Send,
  {
    sdk,
    login,
    configured,
  }: Pick<LoginRequest, "sdk" | "configured"> & { readonly login: ServerLogin | undefined },
): Send {
  if (login === undefined) return send;
  return async (message, options) => {
    try {
      return await send(message, options);
    } catch (error) {
      if (!(error instanceof sdk.InsufficientScopeError)) throw error;
      await login.noteScope(error.requiredScope);
      if (configured.oauth?.grant !== "client_credentials") throw new NeedsLogin(error.requiredScope);
      return send(message, options);
    }
  };
}

/** `https://name:word@host`: as an address it would be refused, so name and word are sent as a header. */
function withoutCredentials(
  address: URL,
  headers: Readonly<Record<string, string>>,
): { readonly url: URL; readonly headers: Record<string, string> } {
  const { username, password } = address;
  if (username === "" && password === "") return { url: address, headers: { ...headers } };
  const url = new URL(address);
  url.username = "";
  url.password = "";
  if (Object.keys(headers).some((name) => name.toLowerCase() === "authorization"))
    return { url, headers: { ...headers } };
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return { url, headers: { authorization: `Basic ${Buffer.from(pair).toString("base64")}`, ...headers } };
}

type HeadersReading =
  | { readonly type: "headers"; readonly headers: Readonly<Record<string, string>> }
  | { readonly type: "failed"; readonly reason: string };

interface HelperOptions {
  /** Of the server, for a helper that serves several. */
  readonly name: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly directory: string;
  readonly signal: AbortSignal;
}

const limitMs = 10_000;

/** The headers of every request: those configured, then those that the helper command prints as JSON. */
async function connectHeaders(
  { headers, headersHelper }: Extract<McpTransport, { type: "http" | "sse" }>,
  options: HelperOptions,
): Promise<HeadersReading> {
  if (headersHelper === undefined) return { type: "headers", headers };
  const isWindows = process.platform === "win32";
  const result = await runProcess({
    file: isWindows ? "cmd.exe" : "/bin/sh",
    arguments: isWindows ? ["/d", "/s", "/c", headersHelper] : ["-c", headersHelper],
    directory: options.directory,
    environment: { ...commandEnvironment(options.environment), CLAUDE_CODE_MCP_SERVER_NAME: options.name },
    signal: options.signal,
    timeLimitMs: limitMs,
    maxBytes: 100_000,
  });
  if (result.timedOut) return failed(`it did not end within ${limitMs / 1000} s`);
  if (result.notStarted !== undefined) return failed(result.notStarted);
  if (result.exitCode !== 0) {
    return failed(
      `it ended with ${result.exitCode ?? result.signal ?? "no exit code"}: ${quote(result.stderr.trim(), 200)}`,
    );
  }
  let value: unknown;
  try {
    value = JSON.parse(result.stdout);
  } catch {
    return failed("it did not print JSON");
  }
  if (!isRecord(value)) return failed("it printed JSON that is not an object");
  const entries = Object.entries(value);
  const wrong = entries.find(([, text]) => typeof text !== "string");
  if (wrong !== undefined) return failed(`the header ${quote(wrong[0])} is not a string`);
  return {
    type: "headers",
    headers: { ...headers, ...Object.fromEntries(entries as [string, string][]) },
  };
}

function failed(reason: string): HeadersReading {
  return { type: "failed", reason: `its headersHelper failed: ${reason}` };
}
