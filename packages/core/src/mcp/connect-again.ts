// @io
import { abortable, sleep } from "@retinue/base/foundation/abortable.ts";
import type { JsonRecord } from "@retinue/base/foundation/json-record.ts";
import type { McpServer } from "@retinue/config/mcp/mcp-transport.ts";
import { connectServer, type RequestLimits, type ServerConnection } from "./connect-server.ts";
import type { CallEnd, ListedTool } from "./listed-tool.ts";
import type { McpConnectionOptions, McpStatus, RestartLimits } from "./mcp-connections.ts";

export type LinkLimits = Omit<RequestLimits, "limitMs">;

/** A server over all its lives: connected at first, and again by the first caller that needs it after it has ended. */
export interface ServerLink {
  readonly server: McpServer;
  status(): McpStatus;
  /** As listed last. */
  tools(): readonly ListedTool[];
  hasResources(): boolean;
  hasPrompts(): boolean;
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
  /** Is notified of tools that were listed after a new start. */
  readonly onListed: () => void;
  /** Milliseconds that only ever grow. */
  readonly now?: () => number;
}

type Life =
  | { readonly type: "open"; readonly connection: ServerConnection }
  | { readonly type: "none"; readonly status: McpStatus };

const defaultRestarts: RestartLimits = { most: 5, windowMs: 60_000, pauseMs: 250 };

export function connectAgain(server: McpServer, options: LinkOptions): ServerLink {
  const link: LinkState = {
    server,
    options,
    disposal: new AbortController(),
    life: { type: "none", status: { type: "connecting" } },
    listed: [],
    connecting: undefined,
    starts: [],
  };
  return {
    server,
    status: () => {
      if (link.life.type === "none") return link.life.status;
      const { version, instructions } = link.life.connection;
      return {
        type: "connected",
        tools: link.listed.length,
        version,
        instructions,
      };
    },
    tools: () => link.listed,
    hasResources: () => link.life.type === "open" && link.life.connection.hasResources,
    hasPrompts: () => link.life.type === "open" && link.life.connection.hasPrompts,
    start: () => connectOnce(link, connect),
    async refresh() {
      if (link.life.type !== "open") return;
      const limits = { signal: link.disposal.signal, limitMs: options.startLimitMs };
      const tools = await link.life.connection.listTools(limits).catch(() => undefined);
      if (tools !== undefined) link.listed = tools;
    },
    ...requestsOn({
      open: (signal) => openConnection(link, signal),
      noteEnd: (connection, ending) => noteEnd(link, connection, ending),
      limitMs: server.timeoutMs ?? options.callLimitMs,
    }),
    async close() {
      link.disposal.abort(new Error("the connection was closed"));
      await link.connecting?.catch(() => undefined);
      const last = link.life;
      link.life = { type: "none", status: { type: "closed" } };
      if (last.type === "open") await last.connection.close();
    },
  };
}

interface LinkState {
  readonly server: McpServer;
  readonly options: LinkOptions;
  readonly disposal: AbortController;
  life: Life;
  listed: readonly ListedTool[];
  connecting: Promise<void> | undefined;
  /** When it was started again. */
  starts: readonly number[];
}

async function connect(link: LinkState): Promise<void> {
  const { server, options, disposal } = link;
  const result = await connectServer(server, {
    ...options,
    signal: disposal.signal,
    onListChanged: options.onListChanged,
  });
  if (result.type === "failed") {
    const { reason, advice, needsAuth, canLogIn } = result;
    const more = {
      advice,
      needsAuth,
      canLogIn,
    };
    link.life = { type: "none", status: { type: "failed", reason, ...more } };
    return;
  }
  const { connection } = result;
  link.listed = result.tools;
  link.life = { type: "open", connection };
  void connection.ended.then((ending) => noteEnd(link, connection, ending));
  if (disposal.signal.aborted) await connection.close();
}

function noteEnd(link: LinkState, connection: ServerConnection, ending: string): void {
  const { life } = link;
  if (life.type !== "open" || life.connection !== connection) return;
  const reason = ending === "" ? "the connection has ended" : ending;
  link.life = { type: "none", status: { type: "failed", reason, advice: "The next call restarts it." } };
}

/** One attempt at a time, shared by all who wait for it. */
function connectOnce(link: LinkState, work: (link: LinkState) => Promise<void>): Promise<void> {
  link.connecting ??= work(link).finally(() => {
    link.connecting = undefined;
  });
  return link.connecting;
}

async function restart(link: LinkState): Promise<void> {
  const { options, disposal } = link;
  const { restarts = defaultRestarts, onListed } = options;
  const recent = recentStarts(link);
  link.starts = [...recent, nowOf(link)];
  if (recent.length > 0) await sleep(restarts.pauseMs * 2 ** (recent.length - 1), disposal.signal);
  await connect(link);
  if (link.life.type === "open") onListed();
}

function recentStarts(link: LinkState): readonly number[] {
  const { windowMs } = link.options.restarts ?? defaultRestarts;
  return link.starts.filter((at) => nowOf(link) - at < windowMs);
}

function nowOf({ options }: LinkState): number {
  return options.now === undefined ? performance.now() : options.now();
}

/** The open connection, started again where it has ended, or the reason why there is none. */
async function openConnection(link: LinkState, signal: AbortSignal): Promise<ServerConnection | string> {
  const { server, options, disposal } = link;
  if (link.life.type === "open" && link.life.connection.isOpen()) return link.life.connection;
  if (disposal.signal.aborted) return `The MCP server ${JSON.stringify(server.name)} was closed.`;
  const recent = recentStarts(link);
  const { most } = options.restarts ?? defaultRestarts;
  if (link.connecting === undefined && recent.length >= most)
    return `The MCP server ${JSON.stringify(server.name)} ended ${recent.length + 1} times within a short time and is not restarted for now: ${reasonOf(link.life)}. Continue without it, or check its configuration.`;
  await abortable(connectOnce(link, restart), signal);
  const { life } = link;
  if (life.type === "open") return life.connection;
  return `The MCP server ${JSON.stringify(server.name)} could not be started: ${reasonOf(life)}.`;
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

function reasonOf(life: Life): string {
  return life.type === "none" && life.status.type === "failed" ? life.status.reason : "it has ended";
}
