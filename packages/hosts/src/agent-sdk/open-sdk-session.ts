import { readFileSync } from "node:fs";
import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import type { PermissionMode } from "@retinue/base/foundation/option-words.ts";
import { parseJsonDocument } from "@retinue/base/foundation/parse-json-document.ts";
import { isRetinueError, RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { AgentTree, TreeOptions } from "@retinue/core/kernel/agent-tree.ts";
import type { RuntimeOptions, SessionOptions } from "@retinue/core/kernel/options/runtime-options.ts";
import { sessionRecord } from "@retinue/core/kernel/session-record.ts";
import { hasEnded } from "@retinue/core/protocol/agent-state.ts";
import type { AgentDefinition, HookFunction } from "../../../../src/index.ts";
import type { ProgramServer } from "../../../../src/mcp.ts";
import type { CommandContext } from "../shared/command-context.ts";
import type { RunFlags } from "../shared/flags.ts";
import { loadAgentsOption } from "../shared/load-agents-option.ts";
import { createPrintRuntime, openPrintTree } from "../shared/open-print-session.ts";
import type { ControlChannel } from "./control-channel.ts";
import type { HostServerConfig, Initialize } from "./read-initialize.ts";

/** Everything that decides what a session is, before and between its turns. */
export interface SessionSetup {
  readonly context: CommandContext;
  readonly options: RunFlags;
  /** A host is at both pipes; otherwise only a reader. */
  readonly isHosted: boolean;
  readonly session: SessionOptions;
  readonly initialize: Initialize;
  /** Tokens that the model is asked to get by with. */
  readonly taskBudget: number | undefined;
  readonly hooks: readonly HookFunction[];
  /** How the host takes part in the session. */
  readonly hosting: Omit<TreeOptions, "runtime" | "session" | "signal">;
  readonly channel: ControlChannel;
  /** Settings that the host has applied since the start. */
  readonly settings: JsonRecord;
  /** Folders that the host has registered since the start. */
  readonly folders: readonly string[];
  /** Servers that the host has added since the start, and names of those it has switched off. */
  readonly servers: HostServers;
}

export interface HostServers {
  /** Configurations as in an `.mcp.json`. */
  readonly configured: Readonly<Record<string, unknown>>;
  readonly inProcess: readonly HostServerConfig[];
  readonly disabled: ReadonlySet<string>;
}

/** The one way from this program to the runtime: a tree of agents, and what belongs to it. */
export interface OpenSdkSession extends AsyncDisposable {
  readonly tree: AgentTree;
  readonly session: AgentTree["facts"];
  readonly initialMode: PermissionMode;
  /** Whether children work in the background. */
  hasRunningChildren(): boolean;
  outputFile(agentId: string): string;
  /** Hands a message of an in-process server to its connection. */
  receive(server: string, message: unknown): void;
}

export async function openSdkSession(setup: SessionSetup, signal: AbortSignal): Promise<OpenSdkSession> {
  const { context, options, initialize, servers, isHosted } = setup;
  const hosted = new Map(
    servers.inProcess.map(
      (config) => [config.name, createHostMcpServer(config.name, setup.channel)] as const,
    ),
  );
  const runtime = createPrintRuntime(withAdditions(setup, settingsOf(setup)), options, {
    ...(isHosted ? { entrypoint: "sdk-ts" } : {}),
    hooks: setup.hooks,
    // A host that names the project's settings wants what they run; one that names none has decided nothing.
    ...(isHosted && context.session.settingSources?.includes("project") === true ? { trusted: true } : {}),
    ...(initialize.agents.length === 0 ? {} : { agents: agentsOf(setup) }),
    mcpServers: mcpServersOf(servers, hosted),
  });
  try {
    const denied = await hiddenSkills(runtime, initialize.skills);
    // Prompts are refused without a key, each with its message; the host may set one before.
    const wanted = { ...sessionOptions(setup, denied), offlineDemo: true };
    const open = (session: SessionOptions) => openPrintTree({ ...setup.hosting, runtime, session, signal });
    const tree = await open(wanted).catch((error: unknown) => {
      // Where there is nothing to continue, a host begins.
      const isFirst = isRetinueError(error) && error.code === "session-missing" && wanted.continue === true;
      if (!isFirst) throw error;
      const { continue: _continue, forkSession: _fork, ...fresh } = wanted;
      return open(fresh);
    });
    const { facts } = tree;
    return {
      tree,
      session: facts,
      initialMode: facts.plan.policy.mode,
      hasRunningChildren: () =>
        facts.isTeamBusy() ||
        tree.list().some((task) => task.background && task.team === undefined && !hasEnded(task)),
      outputFile: sessionRecord(facts).outputOf,
      receive(server, message) {
        const found = hosted.get(server);
        if (found === undefined)
          throw new RetinueError("unknown-server", `There is no in-process server ${server}.`);
        found.receive(message);
      },
      async [Symbol.asyncDispose]() {
        await tree.close();
        await runtime[Symbol.asyncDispose]();
      },
    };
  } catch (error) {
    await runtime[Symbol.asyncDispose]();
    throw error;
  }
}

type Runtime = ReturnType<typeof createPrintRuntime>;

/** Servers that the host has switched off are denied, wherever they are configured. */
function settingsOf({ settings, servers, context }: SessionSetup): JsonRecord {
  if (servers.disabled.size === 0) return settings;
  const given = settings["deniedMcpServers"] ?? givenSettings(context.session.settings)["deniedMcpServers"];
  const denied = [...servers.disabled].map((serverName) => ({ serverName }));
  return { ...settings, deniedMcpServers: [...(Array.isArray(given) ? given : []), ...denied] };
}

/** Older hosts name their in-process servers twice; what they say in `initialize` counts. */
function withoutHosted(config: string, names: ReadonlySet<string>): string {
  if (!config.trim().startsWith("{")) return config;
  const { value } = parseJsonDocument(config, "--mcp-config");
  if (!isRecord(value) || !isRecord(value["mcpServers"])) return config;
  const isHosted = ([name, server]: readonly [string, unknown]): boolean =>
    names.has(name) && isRecord(server) && server["type"] === "sdk";
  const entries = Object.entries(value["mcpServers"]).filter((entry) => !isHosted(entry));
  return JSON.stringify({ ...value, mcpServers: Object.fromEntries(entries) });
}

function withAdditions(
  { context, folders, initialize: { plugins }, servers }: SessionSetup,
  settings: JsonRecord,
): CommandContext {
  const { session } = context;
  const hosted = new Set(servers.inProcess.map(({ name }) => name));
  const configs = session.mcpConfig?.map((config) => withoutHosted(config, hosted));
  return {
    ...context,
    session: {
      ...session,
      ...(configs === undefined ? {} : { mcpConfig: configs }),
      ...(folders.length === 0 ? {} : { addDir: [...(session.addDir ?? []), ...folders] }),
      ...(plugins.length === 0 ? {} : { pluginDir: [...(session.pluginDir ?? []), ...plugins] }),
      ...(Object.keys(settings).length === 0
        ? {}
        : { settings: JSON.stringify({ ...givenSettings(session.settings), ...settings }) }),
    },
  };
}

/** What `--settings` says, which is a JSON object or the path of a file that holds one. */
function givenSettings(given: string | undefined): JsonRecord {
  if (given === undefined) return {};
  const text = given.trim().startsWith("{") ? given : readFileSync(given, "utf8");
  const { value } = parseJsonDocument(text, "--settings");
  return isRecord(value) ? value : {};
}

/** Agents of `--agents` and of `initialize`, of which the later win. */
function agentsOf({ initialize, context: { session, host } }: SessionSetup): readonly AgentDefinition[] {
  const written = session.agents === undefined ? undefined : loadAgentsOption(session.agents, host.cwd);
  return [...(written?.definitions ?? []), ...initialize.agents];
}

function mcpServersOf(
  { configured, inProcess }: HostServers,
  hosted: ReadonlyMap<string, HostMcpServer>,
): NonNullable<RuntimeOptions["mcpServers"]> {
  const own = inProcess.map(({ name, timeoutMs }) => [
    name,
    {
      type: "sdk",
      instance: hosted.get(name)?.server,
      timeout: timeoutMs,
    },
  ]);
  // What a host sends is read like a configuration file, which finds what is wrong in it.
  return Object.fromEntries([...Object.entries(configured), ...own]) as NonNullable<
    RuntimeOptions["mcpServers"]
  >;
}

/** Skills that the host did not name are denied to the session, so that nothing offers or runs them. */
async function hiddenSkills(
  runtime: Pick<Runtime, "skills">,
  wanted: readonly string[] | undefined,
): Promise<readonly string[]> {
  if (wanted === undefined) return [];
  const isWanted = (name: string): boolean =>
    wanted.some((each) => each === name || name.endsWith(`:${each}`));
  const all = (await runtime.skills()).list();
  return all.filter(({ name }) => !isWanted(name)).map(({ name }) => `Skill(${name})`);
}

/** A host that names no prompt says so with an empty one, which does not represent that of a named agent. */
function promptOf(text: string | undefined, agent: string | undefined): Pick<SessionOptions, "systemPrompt"> {
  return text === undefined || (text === "" && agent !== undefined) ? {} : { systemPrompt: text };
}

function sessionOptions(
  { session, initialize, taskBudget }: SessionSetup,
  hidden: readonly string[],
): SessionOptions {
  const { permissionPromptTool, ...rest } = session;
  const plan = initialize.planModeInstructions;
  const appended = [
    rest.appendSystemPrompt,
    initialize.appendSystemPrompt,
    plan === undefined ? undefined : `While you are in plan mode, plan like this:\n${plan}`,
    taskBudget === undefined
      ? undefined
      : `You have about ${taskBudget} tokens for this task, tool results included; plan your work so that you finish within them.`,
  ].filter((text) => text !== undefined && text !== "");
  return {
    ...rest,
    ...(permissionPromptTool === undefined || permissionPromptTool === "stdio"
      ? {}
      : { permissionPromptTool }),
    ...promptOf(initialize.systemPrompt, rest.agent),
    ...(appended.length === 0 ? {} : { appendSystemPrompt: appended.join("\n\n") }),
    ...(initialize.appendSubagentSystemPrompt === undefined
      ? {}
      : { appendSubagentSystemPrompt: initialize.appendSubagentSystemPrompt }),
    ...(initialize.jsonSchema === undefined ? {} : { output: initialize.jsonSchema }),
    ...(hidden.length === 0 ? {} : { disallowedTools: [...(rest.disallowedTools ?? []), ...hidden] }),
  };
}

/** The part of an MCP transport that is used here. */
interface McpTransportEnd {
  onmessage?: (message: unknown) => void;
  onclose?: () => void;
  start?(): Promise<void>;
  send(message: unknown): Promise<void>;
  close?(): Promise<void>;
}

/** An MCP server in the memory of the host, reached through `mcp_message`. */
interface HostMcpServer {
  readonly server: ProgramServer;
  /** Passes on what the server says by itself, such as that its tools have changed. */
  receive(message: unknown): void;
}

function createHostMcpServer(name: string, channel: Pick<ControlChannel, "ask">): HostMcpServer {
  let end: McpTransportEnd | undefined;
  const pending = new Map<unknown, AbortController>();

  async function forward(message: unknown): Promise<void> {
    const request = isRecord(message) ? message : {};
    const { id, method, params } = request;
    if (method === "notifications/cancelled" && isRecord(params)) pending.get(params["requestId"])?.abort();
    const controller = new AbortController();
    if (id !== undefined) pending.set(id, controller);
    try {
      const answer = await channel.ask(
        { subtype: "mcp_message", server_name: name, message: request },
        controller.signal,
      );
      const { mcp_response: response } = answer;
      if (id !== undefined && isRecord(response)) await end?.send(response);
    } catch (error) {
      if (id === undefined || controller.signal.aborted) return;
      const reason = error instanceof Error ? error.message : String(error);
      await end?.send(errorAnswer(id, reason));
    } finally {
      pending.delete(id);
    }
  }

  return {
    server: {
      async connect(transport) {
        // The linked pair of the MCP package has these members; the interface of the runtime leaves the type open.
        end = transport as McpTransportEnd;
        end.onmessage = (message) => void forward(message).catch(() => undefined);
        await end.start?.();
      },
      async close() {
        for (const controller of pending.values()) controller.abort();
        await end?.close?.();
      },
    },
    receive: (message) => void end?.send(message).catch(() => undefined),
  };
}

function errorAnswer(id: unknown, message: string): JsonRecord {
  return { jsonrpc: "2.0", id, error: { code: -32603, message } };
}
