import type { StreamableHTTPClientTransport, Transport } from "@modelcontextprotocol/client";
import { RetinueError } from "../foundation/retinue-error.ts";
import { createBoundedFetch } from "./connect-fetch.ts";
import { connectHeaders } from "./connect-headers.ts";
import { connectProcess, maxMessage } from "./connect-process.ts";
import type { McpConnectionOptions } from "./mcp-connections.ts";
import type { McpServer, McpTransport } from "./mcp-server.ts";
import { serverEnvironment } from "./server-environment.ts";
import { within } from "./within.ts";

export type Sdk = typeof import("@modelcontextprotocol/client");

export interface ServerTransport {
  readonly transport: Transport;
  /** What is known of its end; empty while nothing is. */
  readonly describe: () => string;
  /** Ends what the transport alone does not: a session at the server, the program's server object. */
  readonly release?: () => Promise<void>;
}

const defaultGraceMs = 1_000;

/** The way to a server, not yet taken. Rejects with a Fault when there is none. */
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
      return connectHttp(transport, sdk, options);
    case "sdk":
      return connectProgram(server, sdk, options);
  }
}

async function connectHttp(
  configured: Extract<McpTransport, { type: "http" | "sse" }>,
  sdk: Sdk,
  options: McpConnectionOptions & { readonly signal: AbortSignal },
): Promise<ServerTransport> {
  const reading = await connectHeaders(configured, options);
  if (reading.type === "failed") throw new RetinueError("mcp-failed", reading.reason);
  if (!URL.canParse(configured.url)) {
    throw new RetinueError("mcp-failed", `its address ${JSON.stringify(configured.url)} is not a URL`);
  }
  const { url, headers } = withoutCredentials(new URL(configured.url), reading.headers);
  const requestInit = { headers };
  const bounded = createBoundedFetch(maxMessage);
  if (configured.type === "sse") {
    const transport = new sdk.SSEClientTransport(url, { requestInit, fetch: bounded });
    // The session ends with its stream. In another one, which the transport would open, the server knows nothing of the
    // calls that are under way, and they would wait for ever.
    transport.onerror = (error) => (error instanceof sdk.SseError ? void transport.close() : undefined);
    return { transport, describe: () => "" };
  }
  const transport = new sdk.StreamableHTTPClientTransport(url, { requestInit, fetch: bounded });
  answerWhenStreamEnds(transport);
  return {
    transport,
    describe: () => "",
    release: () => within(transport.terminateSession(), options.graceMs ?? defaultGraceMs),
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

/** A stream that ends without the answer it was opened for would leave the call waiting until its limit. */
function answerWhenStreamEnds(transport: StreamableHTTPClientTransport): void {
  const send = transport.send.bind(transport);
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
}

async function connectProgram(
  { name }: McpServer,
  sdk: Sdk,
  { programServers, graceMs = defaultGraceMs }: McpConnectionOptions,
): Promise<ServerTransport> {
  const program = programServers?.get(name);
  if (program === undefined) {
    throw new RetinueError("mcp-failed", "it is a server of the program, and the program has not handed it over", {
      advice: "Give the server object under this name where the runtime is created.",
    });
  }
  const [own, theirs] = sdk.InMemoryTransport.createLinkedPair();
  await program.connect(theirs);
  return {
    transport: own,
    describe: () => "",
    release: () => within(program.close?.() ?? Promise.resolve(), graceMs),
  };
}
