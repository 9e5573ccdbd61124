import { abortable } from "@retinue/base/foundation/abortable.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { AgentDefinition } from "@retinue/config/agents/agent-definition.ts";
import { mcpIdentity, mcpServerPart, mcpToolName } from "@retinue/config/mcp/mcp-tool-name.ts";
import type { McpServer } from "@retinue/config/mcp/mcp-transport.ts";
import type { AskedServer } from "@retinue/config/settings/choose-mcp-servers.ts";
import { type AvailableTool, availableTool } from "@retinue/config/tools/match-tools.ts";
import { parseToolEntry } from "@retinue/config/tools/tool-entry.ts";
import type { Approver } from "@retinue/gate/approver.ts";
import type { McpConnectionOptions, McpConnections, McpServerState } from "../../mcp/mcp-connections.ts";
import type { PlannedDefinition } from "../../planning/agent-plan.ts";
import type { ServerInstructions } from "../../planning/servers-of-run.ts";
import type { RuntimeContext } from "../runtime-context.ts";
import {
  chooseAgentServers,
  type GatheredMcp,
  type McpAnswer,
  refuseBrokenMcpConfig,
} from "./gather-mcp-servers.ts";
import { mcpConnectionOptions } from "./mcp-connection-options.ts";
import {
  type ChildServers,
  type ConnectChildOptions,
  heldNotices,
  type SessionServers,
  sharedState,
} from "./session-servers.ts";

interface ConnectSessionOptions {
  /** The main agent; servers of its definition live as long as the session. */
  readonly definition: AgentDefinition | undefined;
  /** Nothing is connected: only plans are asked for. */
  readonly planOnly: boolean;
  /** Whose servers they are, for the person who is asked. */
  readonly sessionId: string;
  readonly signal: AbortSignal;
}

/** Connects the servers of a session, each within its limit. Without servers nothing is loaded and nothing waits. */
export async function connectSessionServers(
  runtime: RuntimeContext,
  { definition, planOnly, sessionId, signal }: ConnectSessionOptions,
): Promise<SessionServers> {
  const { approver } = runtime;
  // There is no question about a server that is not going to be started.
  const gathered = await runtime.servers(
    planOnly || approver === undefined ? undefined : createAskMcpServer(approver, { sessionId, signal }),
  );
  refuseBrokenMcpConfig(gathered);
  const main = chooseOwnServers(definition, gathered);
  const servers = [...main.servers, ...main.shared];
  const open = createConnector(runtime);
  const connections = planOnly ? undefined : await open(servers, signal);
  if (connections !== undefined) runtime.live?.serversConnected?.(connections);
  const planned = planOnly ? plannedTools(servers, definition) : [];
  const states = (): readonly McpServerState[] => connections?.states() ?? [];
  for (const text of heldNotices(gathered, { showsTrust: runtime.live?.showsTrust === true }))
    runtime.notice?.(text);

  async function connectFor(child: PlannedDefinition, options: ConnectChildOptions): Promise<ChildServers> {
    const own = chooseOwnServers(child, { ...gathered, servers: options.withServers ? servers : [], states });
    if (!options.withServers) return nothing(child.mcpServers === undefined ? [] : [noServers]);
    if (!options.starts) {
      const known = new Set(planned.map(({ name }) => name));
      const named = plannedTools(planOnly ? own.shared : [], child).filter(({ name }) => !known.has(name));
      const names = own.servers.map(({ name }) => name);
      return {
        ...nothing(own.notes),
        own: { names, tools: [...named, ...plannedTools(own.servers, child)] },
        configured: namedServers(child, own),
      };
    }
    const mine = await open(own.servers, options.signal, options.directory);
    const failed = (mine?.states() ?? []).flatMap(failureNote);
    // Where the session has these two already, the child's are joined to them.
    const reading = (connections?.resourceTools() ?? []).length > 0 ? [] : (mine?.resourceTools() ?? []);
    return {
      own: {
        names: own.servers.map(({ name }) => name),
        tools: [...(mine?.tools() ?? []), ...reading].map(availableTool),
      },
      tools: mine?.tools() ?? [],
      resourceTools: (names) => mine?.resourceTools(names) ?? [],
      configured: namedServers(child, own),
      notes: [...own.notes, ...failed],
      instructions: [...instructionsOf(states(), own.servers), ...instructionsOf(mine?.states() ?? [])],
      call: mine?.call,
      release: async () => mine?.[Symbol.asyncDispose](),
    };
  }

  return {
    servers: servers.map(({ name }) => ({ name, own: main.servers.some((own) => own.name === name) })),
    tools: connections?.tools() ?? [],
    planned,
    notes: [...main.notes, ...states().flatMap(failureNote)],
    instructions: instructionsOf(states()),
    resourceTools: (names) => connections?.resourceTools(names) ?? [],
    states: () => sharedState(servers, gathered, states()),
    call: connections?.call ?? callNothing,
    connectFor,
    [Symbol.asyncDispose]: open.close,
  };
}

const noServers =
  "Agents in the background have no MCP tools, so its `mcpServers` had no effect; the setting backgroundAgents.mcpTools changes that.";

const callNothing: McpConnections["call"] = async (server) => ({
  text: `There is no MCP server ${JSON.stringify(server)} here.`,
  isError: true,
});

function nothing(notes: readonly string[]): ChildServers {
  return {
    own: { names: [], tools: [] },
    tools: [],
    resourceTools: () => [],
    configured: [],
    notes,
    release: async () => undefined,
  };
}

/** Those that a definition brings along or names. */
function namedServers(
  { mcpServers = [] }: PlannedDefinition,
  { servers, shared }: Pick<OwnServerChoice, "servers" | "shared">,
): readonly McpServer[] {
  const named = shared.filter(({ name }) => mcpServers.some((server) => isSame(server.name, name)));
  return [...servers, ...named];
}

/** Connects groups of servers and remembers them, so that none outlives the session. */
function createConnector(runtime: RuntimeContext) {
  const opened = new Set<McpConnections>();
  let isClosed = false;
  async function open(
    servers: readonly McpServer[],
    signal: AbortSignal,
    directory = runtime.discovered.paths.cwd,
  ): Promise<McpConnections | undefined> {
    signal.throwIfAborted();
    if (servers.length === 0) return undefined;
    const { connectServers } = await import("../../mcp/connect-servers.ts");
    if (isClosed)
      throw new RetinueError("session-closed", "The session is closed, so no MCP server is started.");
    const connections = connectServers(servers, connectionOptions(runtime, directory));
    const close = async (): Promise<void> => {
      opened.delete(tracked);
      await connections[Symbol.asyncDispose]();
    };
    const tracked: McpConnections = { ...connections, [Symbol.asyncDispose]: close };
    opened.add(tracked);
    try {
      await abortable(connections.ready, signal);
    } catch (error) {
      await close();
      throw error;
    }
    return tracked;
  }
  async function close(): Promise<void> {
    isClosed = true;
    await Promise.all([...opened].map((connections) => connections[Symbol.asyncDispose]()));
  }
  return Object.assign(open, { close });
}

function connectionOptions(runtime: RuntimeContext, directory: string): McpConnectionOptions {
  return {
    ...mcpConnectionOptions({
      environment: runtime.environment,
      directory,
      configDirectory: runtime.discovered.paths.configDirectory,
    }),
    programServers: runtime.programServers,
    ...(runtime.notice === undefined ? {} : { notice: runtime.notice }),
    ...(runtime.live?.elicit === undefined ? {} : { ask: runtime.live.elicit }),
  };
}

/** Of those that are connected, but for servers that others have taken the place of. */
function instructionsOf(
  states: readonly McpServerState[],
  replacing: readonly McpServer[] = [],
): readonly ServerInstructions[] {
  const taken = new Set(replacing.map(({ name }) => mcpServerPart(name)));
  return states.flatMap(({ server, status }) =>
    status.type === "connected" && status.instructions !== undefined && !taken.has(mcpServerPart(server.name))
      ? [{ server: server.name, text: status.instructions }]
      : [],
  );
}

function failureNote({ server, status }: McpServerState): readonly string[] {
  const name = JSON.stringify(server.name);
  if (status.type === "connecting")
    return [
      `The MCP server ${name} had not answered when the session started, so its tools are missing. MCP_TIMEOUT sets how long to wait for it.`,
    ];
  if (status.type !== "failed") return [];
  const advice = status.advice === undefined ? "" : ` ${status.advice}`;
  return [`The MCP server ${name} failed: ${status.reason}.${advice}`];
}

/** Puts the question about a project's server to what answers for tools; they see the definition before expansion. */
export function createAskMcpServer(
  approver: Approver,
  { sessionId, signal }: { readonly sessionId: string; readonly signal: AbortSignal },
): (server: AskedServer) => Promise<McpAnswer> {
  return async ({ entry, reason }) => {
    const { config, file } = entry;
    const answer = await approver.approve(
      {
        sessionId,
        agentId: "main",
        agentPath: [{ id: "main", name: "main" }],
        callId: `mcp-server:${config.name}`,
        tool: "McpServer",
        input: {
          name: config.name,
          definition: config.written,
          file,
        },
        reason: `The project wants to ${startWords(config.kind)} the MCP server ${config.name}: ${reason}.`,
        suggestedRules: [],
      },
      { signal },
    );
    if (answer.type !== "allow") return "no";
    return answer.for === "save" ? "remember" : "for this session";
  };
}

function startWords(kind: string | undefined): string {
  return kind === "stdio" ? "start" : "connect to";
}

/** What is in a plan for the tools of servers that were not asked: all of them, and those a definition names. */
function plannedTools(
  servers: readonly Pick<McpServer, "name">[],
  definition: Pick<AgentDefinition, "tools" | "mcpServers"> | undefined,
): readonly AvailableTool[] {
  const entries = (definition?.tools ?? []).map((entry) => parseToolEntry(entry).name);
  const limits = (definition?.mcpServers ?? []).flatMap((server) =>
    server.type === "reference" ? [server] : [],
  );
  return servers.flatMap(({ name }) => {
    const part = mcpServerPart(name);
    const limit = limits.find((each) => mcpServerPart(each.name) === part)?.tools;
    const named = limit ?? entries.flatMap((entry) => toolIn(entry, part));
    const literal = [...new Set(named)].filter((tool) => !tool.includes("*"));
    return [
      ...literal.map((tool) => planned(name, tool)),
      ...(limit === undefined ? [whole(name, part)] : []),
    ];
  });
}

function toolIn(entry: string, server: string): readonly string[] {
  const [, named, tool] = /^mcp__(.+?)__(.+)$/.exec(entry) ?? [];
  return named !== undefined && tool !== undefined && mcpServerPart(named) === server ? [tool] : [];
}

function planned(server: string, tool: string): AvailableTool {
  const bare = toolIn(tool, mcpServerPart(server))[0] ?? tool;
  const identity = mcpIdentity(server, bare);
  return { name: mcpToolName(server, bare), effect: "execute", origin: "mcp", server, mcp: identity };
}

function whole(server: string, part: string): AvailableTool {
  const mcp = { server: part, tool: "*" };
  return { name: `mcp__${part}__*`, effect: "execute", origin: "mcp", server, mcp };
}

interface OwnServerChoice {
  /** Those that are in the definition and may be started. */
  readonly servers: readonly McpServer[];
  /** The session's, without those that are replaced. */
  readonly shared: readonly McpServer[];
  /** What the definition names and does not get, each as one sentence. */
  readonly notes: readonly string[];
}

type SessionMcp = Pick<GatheredMcp, "facts" | "held" | "servers"> & {
  /** How the session's servers are doing, once they were connected. */
  readonly states?: () => readonly McpServerState[];
};

/** Which servers a definition brings along, and what to report about those it only names. */
function chooseOwnServers(definition: PlannedDefinition | undefined, around: SessionMcp): OwnServerChoice {
  if (definition?.mcpServers === undefined) return { servers: [], shared: around.servers, notes: [] };
  const chosen = chooseAgentServers(definition, around.facts);
  const servers = chosen.servers.filter((server) => !takesAnothersPlace(server, definition, around));
  const displaced = chosen.servers.filter((server) => !servers.includes(server));
  const shared = around.servers.filter(({ name }) => !servers.some((own) => isSame(own.name, name)));
  const references = definition.mcpServers.filter(({ type }) => type === "reference");
  const missing = references.flatMap(({ name }) =>
    missingNote(name, { ...around, servers: [...servers, ...shared] }),
  );
  const held = chosen.held.map(({ entry, reason, advice }) => notUsed(entry.config.name, reason, advice));
  const warnings = chosen.diagnostics.filter(
    ({ severity, code }) => severity !== "note" && code !== "mcp-server-unusable",
  );
  return {
    servers,
    shared,
    notes: [
      ...held,
      ...displaced.map(({ name }) => notUsed(name, "your own server of this name is used instead")),
      ...missing,
      ...warnings.map(({ message }) => message),
    ],
  };
}

/** Rules that people wrote for a server of theirs must not come to hold for one that a repository brings. */
function takesAnothersPlace(
  server: McpServer,
  { source }: PlannedDefinition,
  { servers }: SessionMcp,
): boolean {
  if (source.scope !== "project") return false;
  return servers.some(({ name, scope }) => scope !== "project" && isSame(name, server.name));
}

function isSame(one: string, other: string): boolean {
  return mcpServerPart(one) === mcpServerPart(other);
}

function missingNote(name: string, { servers, held, states }: SessionMcp): readonly string[] {
  const found = servers.find((server) => isSame(server.name, name));
  if (found === undefined) {
    const why = held.find(({ entry }) => isSame(entry.config.name, name));
    return [notUsed(name, why?.reason ?? "no server of this name is configured", why?.advice)];
  }
  const status = states?.().find(({ server }) => server.name === found.name)?.status;
  return status?.type === "failed" ? [notUsed(name, status.reason, status.advice)] : [];
}

function notUsed(name: string, reason: string, advice?: string): string {
  const more = advice === undefined ? "" : ` ${advice}`;
  return `The MCP server ${JSON.stringify(name)} is not used: ${reason}.${more}`;
}
