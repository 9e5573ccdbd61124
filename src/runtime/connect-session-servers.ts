import type { AgentDefinition } from "../definitions/agent-definition.ts";
import { abortable } from "../foundation/abort.ts";
import { RetinueError } from "../foundation/retinue-error.ts";
import type { McpConnectionOptions, McpConnections, McpServerState } from "../mcp/mcp-connections.ts";
import type { McpServer } from "../mcp/mcp-server.ts";
import { mcpServerPart } from "../mcp/tool-name.ts";
import type { ServerInstructions } from "../planning/server-instructions.ts";
import type { ChildServers, ConnectChildOptions } from "../tasks/child-host.ts";
import { availableTool } from "../tools/match-tools.ts";
import { createAskMcpServer } from "./ask-mcp-server.ts";
import { chooseOwnServers } from "./choose-own-servers.ts";
import { type GatheredMcp, refuseBrokenMcpConfig } from "./gather-mcp-servers.ts";
import { mcpConnectionOptions } from "./mcp-options.ts";
import { plannedTools } from "./planned-tools.ts";
import { heldNotices, type SessionServers, sharedState } from "./session-servers.ts";
import type { RuntimeContext } from "./session-world.ts";

export interface ConnectSessionOptions {
  /** The main agent; servers of its definition live as long as the session. */
  readonly definition: AgentDefinition | undefined;
  /** Nothing is connected: only plans are asked for. */
  readonly planOnly: boolean;
  readonly signal: AbortSignal;
}

/** Connects the servers of a session, each within its limit. Without servers nothing is loaded and nothing waits. */
export async function connectSessionServers(
  world: RuntimeContext,
  { definition, planOnly, signal }: ConnectSessionOptions,
): Promise<SessionServers> {
  const gathered = await gather(world, planOnly, signal);
  refuseBrokenMcpConfig(gathered);
  const main = chooseOwnServers(definition, gathered);
  const servers = [...main.servers, ...main.shared];
  const open = createConnector(world);
  const connections = planOnly ? undefined : await open(servers, signal);
  const planned = planOnly ? plannedTools(servers, definition) : [];
  const states = (): readonly McpServerState[] => connections?.states() ?? [];
  for (const text of heldNotices(gathered)) world.notice?.(text);

  async function connectFor(child: AgentDefinition, options: ConnectChildOptions): Promise<ChildServers> {
    const own = chooseOwnServers(child, { ...gathered, servers: options.background ? [] : servers, states });
    if (options.background) return nothing(child.mcpServers === undefined ? [] : [noServers]);
    if (!options.starts) {
      const known = new Set(planned.map(({ name }) => name));
      const named = plannedTools(planOnly ? own.shared : [], child).filter(({ name }) => !known.has(name));
      const names = own.servers.map(({ name }) => name);
      return {
        ...nothing(own.notes),
        own: { names, tools: [...named, ...plannedTools(own.servers, child)] },
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
      notes: [...own.notes, ...failed],
      instructions: [...instructionsOf(states(), own.servers), ...instructionsOf(mine?.states() ?? [])],
      ...(mine === undefined ? {} : { call: mine.call }),
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
    call: async (server, tool, input, options) =>
      (await connections?.call(server, tool, input, options)) ?? {
        text: `There is no MCP server ${JSON.stringify(server)} here.`,
        isError: true,
      },
    connectFor,
    [Symbol.asyncDispose]: open.close,
  };
}

const noServers = "In the background there are no tools of MCP servers, so its `mcpServers` had no effect.";

function nothing(notes: readonly string[]): ChildServers {
  return {
    own: { names: [], tools: [] },
    tools: [],
    resourceTools: () => [],
    notes,
    release: async () => undefined,
  };
}

/** Nobody is asked about a server that is not going to be started. */
async function gather(world: RuntimeContext, planOnly: boolean, signal: AbortSignal): Promise<GatheredMcp> {
  const { approver } = world;
  return world.servers(planOnly || approver === undefined ? undefined : createAskMcpServer(approver, signal));
}

/** Connects groups of servers and remembers them, so that none outlives the session. */
function createConnector(world: RuntimeContext) {
  const opened = new Set<McpConnections>();
  let isClosed = false;
  async function open(
    servers: readonly McpServer[],
    signal: AbortSignal,
    directory = world.discovered.paths.cwd,
  ): Promise<McpConnections | undefined> {
    signal.throwIfAborted();
    if (servers.length === 0) return undefined;
    const { connectServers } = await import("../mcp/connect-servers.ts");
    if (isClosed) throw new RetinueError("session-closed", "The session is closed, so no MCP server is started.");
    const connections = connectServers(servers, connectionOptions(world, directory));
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

function connectionOptions(world: RuntimeContext, directory: string): McpConnectionOptions {
  return {
    ...mcpConnectionOptions({ environment: world.environment, directory }),
    programServers: world.programServers,
    ...(world.notice === undefined ? {} : { notice: world.notice }),
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
  if (status.type !== "failed") return [];
  const advice = status.advice === undefined ? "" : ` ${status.advice}`;
  return [`The MCP server ${JSON.stringify(server.name)} failed: ${status.reason}.${advice}`];
}
