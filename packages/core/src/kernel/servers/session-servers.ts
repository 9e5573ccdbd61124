import { isRecord, parseJson } from "@retinue/base/foundation/json-record.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { McpScope, McpServer, McpTransport } from "@retinue/config/mcp/mcp-transport.ts";
import type { HeldServer } from "@retinue/config/settings/choose-mcp-servers.ts";
import type { AvailableTool } from "@retinue/config/tools/match-tools.ts";
import { joinResourceTools } from "../../mcp/create-resource-tools.ts";
import type { McpConnections, McpServerState, McpStatus } from "../../mcp/mcp-connections.ts";
import type { AgentPlan, PlannedDefinition } from "../../planning/agent-plan.ts";
import type { OwnServers, ServerInstructions } from "../../planning/servers-of-run.ts";
import type { Tool } from "../../tools/tool.ts";
import type { CanUseTool } from "../agent/create-authorize.ts";
import type { GatheredMcp } from "./gather-mcp-servers.ts";

/** The MCP servers that are listed in a child's definition, for one run of it. */
export interface ChildServers {
  readonly own: OwnServers;
  readonly tools: readonly Tool[];
  readonly resourceTools: (servers: ReadonlySet<string>) => readonly Tool[];
  /** What the definition names, its own and the session's, as it is configured. */
  readonly configured: readonly McpServer[];
  /** What the definition names and does not get, each as one sentence. */
  readonly notes: readonly string[];
  /** What the servers that it could have report about themselves, the session's among them. */
  readonly instructions?: readonly ServerInstructions[];
  /** Calls a tool by the pair, for hooks. */
  readonly call?: CallServer;
  /** Ends them; harmless when they have ended. */
  readonly release: () => Promise<void>;
}

export interface ConnectChildOptions {
  /** False in the background, where servers are not kept: then there are none. */
  readonly withServers: boolean;
  readonly starts: boolean;
  readonly signal: AbortSignal;
  /** Where they start; absent means where the session works. */
  readonly directory?: string;
}

export type CallServer = (
  server: string,
  tool: string,
  input: Readonly<Record<string, unknown>>,
  options: { readonly signal: AbortSignal },
) => Promise<{ readonly text: string; readonly isError: boolean }>;

/** How one MCP server of a session is doing. */
export interface SessionServer {
  readonly name: string;
  readonly scope: McpScope;
  /** How it is reached; absent for one that is held back. */
  readonly transport?: McpTransport;
  readonly status:
    | McpStatus
    /** Configured, and not connected. */
    | { readonly type: "held"; readonly reason: string; readonly advice?: string }
    /** It would be connected, if the session were more than a plan. */
    | { readonly type: "planned" };
}

/** The MCP servers of one session. They end with it, those of its children too. */
export interface SessionServers extends AsyncDisposable {
  /** Those that may be connected; `own` ones are in the definition of the main agent. */
  readonly servers: readonly { readonly name: string; readonly own: boolean }[];
  /** The same from start to end, so that prompts stay the same. */
  readonly tools: readonly Tool[];
  /** In place of tools, where nothing is connected. */
  readonly planned: readonly AvailableTool[];
  readonly notes: readonly string[];
  /** What those that were connected at the start report about themselves. */
  readonly instructions: readonly ServerInstructions[];
  readonly resourceTools: McpConnections["resourceTools"];
  readonly call: McpConnections["call"];
  states(): readonly SessionServer[];
  /** Starts the servers of a child's definition; the caller releases them. */
  connectFor(definition: PlannedDefinition, options: ConnectChildOptions): Promise<ChildServers>;
}

/** The tools over resources that a run has: of the servers in its plan that are not narrowed to some tools. */
export function resourceToolsOf(
  { tools, mcpServers = [] }: Pick<AgentPlan, "tools" | "mcpServers">,
  session: Pick<SessionServers, "resourceTools">,
  child?: Pick<ChildServers, "resourceTools" | "own">,
): readonly Tool[] {
  const granted = new Set(tools.map(({ name }) => name));
  const whole = mcpServers.filter((server) => server.tools === undefined).map(({ name }) => name);
  const isOwn = (name: string): boolean => child?.own.names.includes(name) === true;
  const [own, shared] = [new Set(whole.filter(isOwn)), new Set(whole.filter((name) => !isOwn(name)))];
  const joined = joinResourceTools([
    { servers: shared, tools: session.resourceTools(shared) },
    { servers: own, tools: child?.resourceTools(own) ?? [] },
  ]);
  return joined.filter(({ name }) => granted.has(name));
}

/** Every configured server, connected or not; what the configuration as a whole leaves out is not part of the session. */
export function sharedState(
  servers: readonly McpServer[],
  { held, asked }: Pick<GatheredMcp, "held" | "asked">,
  states: readonly McpServerState[],
): readonly SessionServer[] {
  const live = servers.map(({ name, scope, transport }): SessionServer => {
    const state = states.find(({ server }) => server.name === name);
    return { name, scope, transport, status: state?.status ?? { type: "planned" } };
  });
  const others = held.filter(({ code }) => code !== "shadowed" && code !== "left-out").map(heldState);
  const waiting = asked.map(({ entry, reason }): SessionServer => {
    return { name: entry.config.name, scope: entry.scope, status: { type: "held", reason } };
  });
  return [...live, ...others, ...waiting];
}

function heldState({ entry, reason, advice }: HeldServer): SessionServer {
  return {
    name: entry.config.name,
    scope: entry.scope,
    status: { type: "held", reason, advice },
  };
}

/** What a person should know of servers that are not connected; deliberate decisions are not reported each time. */
export function heldNotices(
  { held }: Pick<GatheredMcp, "held">,
  { showsTrust = false } = {},
): readonly string[] {
  const reported = held.filter(({ code }) => !decided.has(code) && !(showsTrust && code === "untrusted"));
  const reasons = new Map<string, string[]>();
  for (const { entry, reason, advice } of reported) {
    const why = advice === undefined ? `${reason}.` : `${reason}. ${advice}`;
    reasons.set(why, [...(reasons.get(why) ?? []), entry.config.name]);
  }
  return [...reasons].map(([why, names]) => {
    const list = names.map((name) => JSON.stringify(name)).join(", ");
    return names.length === 1
      ? `The MCP server ${list} is not connected: ${why}`
      : `The MCP servers ${list} are not connected: ${why}`;
  });
}

const decided: ReadonlySet<string> = new Set(["rejected", "disabled", "denied", "left-out", "shadowed"]);

/** Asks a tool of an MCP server, in a person's place, about calls that rules leave open. What it does not allow is refused. */
export function createPromptTool(name: string, servers: Promise<SessionServers>): CanUseTool {
  return async (tool_name, input, { signal, callId }) => {
    const { tools, call } = await servers;
    const mcp = findPromptTool(name, tools)?.mcp;
    if (mcp === undefined) return { behavior: "deny", message: `there is no tool ${name} to ask` };
    const question = { tool_name, input, tool_use_id: callId };
    const { text, isError } = await call(mcp.serverName, mcp.tool, question, { signal });
    if (isError) return { behavior: "deny", message: `${name} failed: ${text}` };
    return readAnswer(name, text);
  };
}

export function refuseMissingPromptTool(name: string | undefined, tools: readonly Tool[]): void {
  if (name === undefined || findPromptTool(name, tools) !== undefined) return;
  const known = tools.map((tool) => tool.name).join(", ");
  throw new RetinueError("unusable-tools", `There is no MCP tool ${JSON.stringify(name)} to ask.`, {
    advice:
      known === ""
        ? "Write the tool as mcp__server__tool, and check with `retinue mcp list --check` that its server answers."
        : `The tools of the connected servers are ${known}.`,
  });
}

function findPromptTool(name: string, tools: readonly Tool[]): Tool | undefined {
  return tools.find((tool) => tool.name === name && tool.mcp !== undefined);
}

function readAnswer(name: string, text: string): Awaited<ReturnType<CanUseTool>> {
  const answer = parseJson(text);
  const { behavior, updatedInput, message } = isRecord(answer) ? answer : {};
  if (behavior === "allow") {
    return { behavior, ...(isRecord(updatedInput) ? { updatedInput } : {}) };
  }
  if (behavior === "deny") return { behavior, ...(typeof message === "string" ? { message } : {}) };
  return { behavior: "deny", message: `${name} answered neither "allow" nor "deny"` };
}
