// @io
import { abortable, sleep } from "../foundation/abortable.ts";
import type { JsonRecord } from "../foundation/json-record.ts";
import type { CallEnd } from "./call-end.ts";
import { connectServer, type RequestLimits, type ServerConnection } from "./connect-server.ts";
import type { ListedTool } from "./listed-tool.ts";
import type { McpConnectionOptions, McpStatus, RestartLimits } from "./mcp-connections.ts";
import type { McpServer } from "./mcp-server.ts";

export type LinkLimits = Omit<RequestLimits, "limitMs">;

/** A server over all its lives: connected at first, and again by whoever needs it after it has ended. */
export interface ServerLink {
  readonly server: McpServer;
  status(): McpStatus;
  /** As listed last. */
  tools(): readonly ListedTool[];
  hasResources(): boolean;
  /** Resolves when it has answered or failed; never rejects. */
  start(): Promise<void>;
  /** Lists the tools anew, as the server has said that they changed; never rejects. */
  refresh(): Promise<void>;
  callTool(tool: ListedTool, input: JsonRecord, limits: LinkLimits): Promise<CallEnd>;
  request(method: string, parameters: JsonRecord, limits: LinkLimits): Promise<CallEnd>;
  list(method: string, key: string, limits: LinkLimits): Promise<CallEnd>;
  close(): Promise<void>;
}

export interface LinkOptions extends McpConnectionOptions {
  readonly onListChanged: () => void;
  /** Hears of tools that were listed after a new start. */
  readonly onListed: () => void;
  /** Milliseconds that only ever grow. */
  readonly now?: () => number;
}

type Life =
  | { readonly type: "open"; readonly connection: ServerConnection }
  | { readonly type: "none"; readonly status: McpStatus };

const defaultRestarts: RestartLimits = { most: 5, windowMs: 60_000, pauseMs: 250 };

export function connectAgain(server: McpServer, options: LinkOptions): ServerLink {
  const { now = () => performance.now(), restarts = defaultRestarts, onListed } = options;
  const disposal = new AbortController();
  let life: Life = { type: "none", status: { type: "connecting" } };
  let listed: readonly ListedTool[] = [];
  let connecting: Promise<void> | undefined;
  let starts: readonly number[] = [];

  async function connect(): Promise<void> {
    const result = await connectServer(server, {
      ...options,
      signal: disposal.signal,
      onListChanged: options.onListChanged,
    });
    if (result.type === "failed") {
      const { reason } = result;
      life = { type: "none", status: { type: "failed", reason } };
      return;
    }
    const { connection } = result;
    listed = result.tools;
    life = { type: "open", connection };
    void connection.ended.then((ending) => noteEnd(connection, ending));
    if (disposal.signal.aborted) await connection.close();
  }

  function noteEnd(connection: ServerConnection, ending: string): void {
    if (life.type !== "open" || life.connection !== connection) return;
    const reason = ending === "" ? "the connection has ended" : ending;
    life = { type: "none", status: { type: "failed", reason, advice: "The next call starts it again." } };
  }

  /** One attempt at a time, shared by all who wait for it. */
  function connectOnce(work: () => Promise<void>): Promise<void> {
    connecting ??= work().finally(() => {
      connecting = undefined;
    });
    return connecting;
  }

  async function restart(): Promise<void> {
    const recent = starts.filter((at) => now() - at < restarts.windowMs);
    starts = [...recent, now()];
    if (recent.length > 0) await sleep(restarts.pauseMs * 2 ** (recent.length - 1), disposal.signal);
    await connect();
    if (life.type === "open") onListed();
  }

  async function open(signal: AbortSignal): Promise<ServerConnection | string> {
    if (life.type === "open" && life.connection.isOpen()) return life.connection;
    if (disposal.signal.aborted) return `The MCP server ${JSON.stringify(server.name)} was closed.`;
    const recent = starts.filter((at) => now() - at < restarts.windowMs);
    if (connecting === undefined && recent.length >= restarts.most)
      return tooOften(server, life, recent.length);
    await abortable(connectOnce(restart), signal);
    if (life.type === "open") return life.connection;
    return `The MCP server ${JSON.stringify(server.name)} could not be started: ${reasonOf(life)}.`;
  }

  return {
    server,
    status: () => statusOf(life, listed.length),
    tools: () => listed,
    hasResources: () => life.type === "open" && life.connection.hasResources,
    start: () => connectOnce(connect),
    async refresh() {
      if (life.type !== "open") return;
      const limits = { signal: disposal.signal, limitMs: options.startLimitMs };
      const tools = await life.connection.listTools(limits).catch(() => undefined);
      if (tools !== undefined) listed = tools;
    },
    ...requestsOn({ open, noteEnd, limitMs: server.timeoutMs ?? options.callLimitMs }),
    async close() {
      disposal.abort(new Error("the connection was closed"));
      await connecting?.catch(() => undefined);
      const last = life;
      life = { type: "none", status: { type: "closed" } };
      if (last.type === "open") await last.connection.close();
    },
  };
}

interface Opening {
  /** The open connection, or why there is none. */
  readonly open: (signal: AbortSignal) => Promise<ServerConnection | string>;
  readonly noteEnd: (connection: ServerConnection, ending: string) => void;
  readonly limitMs: number;
}

/** The requests of a link, each on the connection that is open by then. */
function requestsOn({ open, noteEnd, limitMs }: Opening): Pick<ServerLink, "callTool" | "request" | "list"> {
  /** A request that was refused because the session is gone had no effect, so it is sent once more; no other one is. */
  async function use(
    limits: LinkLimits,
    work: (connection: ServerConnection, limits: RequestLimits) => Promise<CallEnd>,
  ): Promise<CallEnd> {
    const full = { ...limits, limitMs };
    let reason = "";
    for (let round = 0; round < 2; round += 1) {
      const connection = await open(limits.signal);
      if (typeof connection === "string") return { type: "failed", reason: connection };
      const end = await work(connection, full);
      if (end.type !== "session-lost") return end;
      reason = end.reason;
      await connection.close();
      noteEnd(connection, "the server no longer knew the session");
    }
    return { type: "failed", reason };
  }
  return {
    callTool: (tool, input, limits) =>
      use(limits, (connection, full) => connection.callTool(tool, input, full)),
    request: (method, parameters, limits) =>
      use(limits, (connection, full) => connection.request(method, parameters, full)),
    list: (method, key, limits) => use(limits, (connection, full) => connection.list(method, key, full)),
  };
}

function statusOf(life: Life, tools: number): McpStatus {
  if (life.type === "none") return life.status;
  const { version, instructions } = life.connection;
  return {
    type: "connected",
    tools,
    ...(version === undefined ? {} : { version }),
    ...(instructions === undefined ? {} : { instructions }),
  };
}

function reasonOf(life: Life): string {
  return life.type === "none" && life.status.type === "failed" ? life.status.reason : "it has ended";
}

function tooOften({ name }: McpServer, life: Life, times: number): string {
  return `The MCP server ${JSON.stringify(name)} ended ${times + 1} times in a short while and is not started again for now: ${reasonOf(life)}. Go on without it, or look at its configuration.`;
}
