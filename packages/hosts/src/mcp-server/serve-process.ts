import { randomUUID } from "node:crypto";
import type { Readable, Writable } from "node:stream";
import type { McpServer, WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/server";
import type { AgentHub } from "./agent-hub.ts";
import { createServerFactory } from "./create-server-factory.ts";
import { listenHttp } from "./listen-http.ts";
import type { Sdk } from "./serve-pending-call.ts";

export interface ServeOptions {
  readonly hub: AgentHub;
  readonly version: string;
  readonly log: (message: string) => void;
}

/** A server that is there for its clients; `done` resolves when it has none left to wait for. */
export interface Serving {
  readonly done: Promise<void>;
  close(): Promise<void>;
}

/** Speaks with the one client at the other end of stdin and stdout, until that closes them. */
export async function serveProcess(
  options: ServeOptions,
  { input, output }: { readonly input: Readable; readonly output: Writable },
): Promise<Serving> {
  const [{ serveStdio, StdioServerTransport }, factory] = await Promise.all([
    import("@modelcontextprotocol/server/stdio"),
    loadFactory(options),
  ]);
  const wire = new StdioServerTransport(input, output);
  const done = Promise.withResolvers<void>();
  const handle = serveStdio(factory.make, { transport: wire, onerror: logErrors(options) });
  const close = wire.onclose;
  wire.onclose = () => {
    close?.();
    done.resolve();
  };
  return { done: done.promise, close: handle.close };
}

/** Unused sessions are looked for this often. */
const sweepMs = 60_000;

/** Serves any number of clients on this machine, until it is closed. */
export async function serveHttp(
  options: ServeOptions & { readonly port: number; readonly token: string },
): Promise<Serving & { readonly url: string }> {
  const { sdk, make } = await loadFactory(options);
  const sessions = createHttpSessions({
    sdk,
    factory: make,
    now: () => performance.now(),
    onError: logErrors(options),
  });
  const { port, token, log } = options;
  const listener = await listenHttp({ port, token, log, answer: sessions.answer });
  const timer = setInterval(sessions.sweep, sweepMs).unref();
  const done = Promise.withResolvers<void>();
  return {
    url: `${listener.origin}/mcp`,
    done: done.promise,
    async close() {
      clearInterval(timer);
      await sessions.close();
      await listener.close();
      done.resolve();
    },
  };
}

async function loadFactory({ hub, version }: ServeOptions): Promise<{
  readonly sdk: Sdk;
  readonly make: (context: { readonly era: "legacy" | "modern" }) => McpServer;
}> {
  const [sdk, leadsTeam] = await Promise.all([import("@modelcontextprotocol/server"), hub.leadsTeam()]);
  return { sdk, make: createServerFactory({ sdk, hub, version, leadsTeam }) };
}

function logErrors({ log }: ServeOptions): (error: Error) => void {
  // The library's own words for a line that is JSON and no message of the protocol are a dump of its schema.
  return ({ message }) =>
    log(message.trimStart().startsWith("[") ? "A line that is no JSON-RPC message was left out." : message);
}

interface HttpSessions {
  answer(request: Request, sent: Promise<void>): Promise<Response>;
  /** Ends sessions that have not been used for long. */
  sweep(): void;
  readonly size: number;
  close(): Promise<void>;
}

interface HttpSessionsOptions {
  readonly sdk: Sdk;
  readonly factory: (context: { readonly era: "legacy" | "modern" }) => McpServer;
  readonly now: () => number;
  readonly maxSessions?: number;
  readonly idleMs?: number;
  readonly onError: (error: Error) => void;
}

interface HttpSession {
  readonly transport: WebStandardStreamableHTTPServerTransport;
  open: number;
  lastUsed: number;
}

const defaultSessions = 32;
const defaultIdleMs = 30 * 60_000;

/** Clients of the newer protocol send each request by itself; those of the older one open a session first. */
export function createHttpSessions(options: HttpSessionsOptions): HttpSessions {
  const { sdk, factory, now, maxSessions = defaultSessions, idleMs = defaultIdleMs, onError } = options;
  const table: SessionTable = { ...options, maxSessions, sessions: new Map() };
  const { sessions } = table;
  const modern = sdk.createMcpHandler(factory, {
    legacy: "reject",
    onerror: onError,
    maxSubscriptions: maxSessions,
  });
  return {
    async answer(request, sent) {
      if (new URL(request.url).pathname !== "/mcp") return refuse(404, "Only /mcp is served here.");
      if (!(await sdk.isLegacyRequest(request))) return modern.fetch(request);
      const id = request.headers.get("mcp-session-id");
      if (id === null) return begin(table, request);
      const session = sessions.get(id);
      if (session === undefined) return refuse(404, "There is no such session; initialize a new one.");
      use(session, sent, now);
      return session.transport.handleRequest(request);
    },
    sweep() {
      for (const [id, session] of sessions)
        if (session.open === 0 && now() - session.lastUsed >= idleMs) end(table, id, session);
    },
    get size() {
      return sessions.size;
    },
    async close() {
      await Promise.allSettled([...sessions.values()].map(({ transport }) => transport.close()));
      await modern.close();
    },
  };
}

interface SessionTable extends HttpSessionsOptions {
  readonly maxSessions: number;
  readonly sessions: Map<string, HttpSession>;
}

function use(session: HttpSession, sent: Promise<void>, now: () => number): void {
  session.open += 1;
  session.lastUsed = now();
  void sent.then(() => {
    session.open -= 1;
    session.lastUsed = now();
  });
}

async function begin(table: SessionTable, request: Request): Promise<Response> {
  const { sdk, factory, now, maxSessions, onError, sessions } = table;
  if (!makeRoom(table)) return refuse(503, `There are ${maxSessions} sessions in use already.`);
  const transport = new sdk.WebStandardStreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    onsessioninitialized: (id) => void sessions.set(id, { transport, open: 0, lastUsed: now() }),
  });
  const server = factory({ era: "legacy" });
  server.server.onerror = onError;
  server.server.onclose = () => void sessions.delete(transport.sessionId ?? "");
  await server.connect(transport);
  const response = await transport.handleRequest(request);
  // Anything but a proper beginning was refused by the transport, which then serves no client.
  if (transport.sessionId === undefined) await server.close();
  return response;
}

/** The session that was used longest ago is ended, unless all are in use. */
function makeRoom(table: SessionTable): boolean {
  const { sessions, maxSessions } = table;
  if (sessions.size < maxSessions) return true;
  const idle = [...sessions].filter(([, { open }]) => open === 0);
  const [oldest] = idle.sort(([, a], [, b]) => a.lastUsed - b.lastUsed);
  if (oldest === undefined) return false;
  end(table, ...oldest);
  return true;
}

function end({ sessions, onError }: SessionTable, id: string, { transport }: HttpSession): void {
  sessions.delete(id);
  transport.close().catch(onError);
}

function refuse(status: number, message: string): Response {
  return Response.json({ jsonrpc: "2.0", error: { code: -32000, message }, id: null }, { status });
}
