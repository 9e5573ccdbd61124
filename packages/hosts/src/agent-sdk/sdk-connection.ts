import { randomUUID } from "node:crypto";
import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { isRetinueError, RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { UserMessage } from "@retinue/core/conversation/message.ts";
import type { RunEvent } from "@retinue/core/conversation/run-event.ts";
import { createLivePolicy, type LivePolicy } from "@retinue/core/kernel/live/live-policy.ts";
import type { SessionPorts } from "@retinue/core/kernel/session-ports.ts";
import { sessionRecord } from "@retinue/core/kernel/session-record.ts";
import { hasEnded } from "@retinue/core/protocol/agent-state.ts";
import { checkAgentSdkOptions, readManagedSettings } from "../shared/agent-sdk-options.ts";
import type { CommandContext } from "../shared/command-context.ts";
import {
  checkpointFolder,
  createFileCheckpoints,
  type FileCheckpoints,
  keepFiles,
} from "../shared/file-checkpoints.ts";
import type { RunFlags } from "../shared/flags.ts";
import { misuse } from "../shared/misuse.ts";
import { refuseKeyless, refuseOffline } from "../shared/open-print-session.ts";
import { type PrintRequest, readPrintOptions } from "../shared/print-options.ts";
import {
  type AnswerContinuation,
  type AnswerStream,
  createAnswerContinuation,
  createAnswerStream,
} from "./answer-stream.ts";
import { type BackgroundCommands, createBackgroundCommands, runningAgents } from "./background-commands.ts";
import { type CallResults, createCallResults } from "./call-results.ts";
import { type ControlChannel, createControlChannel } from "./control-channel.ts";
import type { DeferredCall, HookReports } from "./host-hooks.ts";
import { createLongCommands, type LongCommands } from "./long-commands.ts";
import { createObservedHooks, type ObservedHooks } from "./observed-hooks.ts";
import type { HostServers } from "./open-sdk-session.ts";
import { openSessionOf, sessionIdOf, situationOf } from "./open-session-of.ts";
import { type Initialize, noInitialize } from "./read-initialize.ts";
import { createSdkHost, type SdkHost } from "./sdk-host.ts";
import { informational, programResult } from "./sdk-messages.ts";
import { createWorkflowMessages, type WorkflowMessages } from "./workflow-messages.ts";

export type ServeOptions = RunFlags;

/** Who is at the other end: a host on both pipes, or only a reader of what is written. */
export interface ConnectionEnd {
  readonly isHosted: boolean;
  /** Whether it sends messages, and with them may change the session while it runs. */
  readonly speaks: boolean;
  readonly write: (line: string) => void;
}

/** What a host may change of the running session; read by what opens and drives it. */
export interface Choices {
  model: string | undefined;
  effort: string | number | undefined;
  servers: HostServers;
  /** Settings that the host has applied since the start, beyond those that change a running session. */
  settings: JsonRecord;
  /** Folders that the host has registered since the start. */
  folders: readonly string[];
  /** The folder that the host has moved the session to. */
  directory: string | undefined;
  perTaskStopAffordance: boolean;
}

/** One host on both pipes, and everything that is kept for it. */
export interface SdkConnection {
  readonly context: CommandContext;
  readonly options: ServeOptions;
  readonly request: PrintRequest;
  /** False: only the output is read, as with `-p` and a prompt. */
  readonly isHosted: boolean;
  /** Whether the rules that decide calls may change while the session runs. */
  readonly changesRules: boolean;
  /** Tokens that the model is asked to get by with. */
  readonly taskBudget: number | undefined;
  readonly startedAt: number;
  readonly channel: ControlChannel;
  readonly host: SdkHost;
  readonly policy: LivePolicy;
  readonly reports: HookReports;
  /** Callbacks of the host for what the runtime has no hooks for; made from `initialize`. */
  readonly observed: () => ObservedHooks;
  readonly choices: Choices;
  /** Absent where the host did not ask for file checkpoints. */
  readonly checkpoints: FileCheckpoints | undefined;
  /** The ids of the transcript's lines, by event. */
  readonly lineIds: WeakMap<RunEvent, readonly string[]>;
  /** Shows answers while they are given, under the ids of their lines. */
  readonly answers: AnswerStream;
  /** Which results of the main agent's calls were shown. */
  readonly results: CallResults;
  /** What calls have asked children to do, by call. */
  readonly childPrompts: Map<string, string>;
  /** Commands that run in the background. */
  readonly commands: BackgroundCommands;
  readonly workflows: WorkflowMessages;
  /** The MCP servers of the session, where there are any. */
  mcp: ServerConnections | undefined;
  readonly serverPrompts: ServerPrompts;
  /** Commands that agents wait for. */
  readonly longCommands: LongCommands;
  /** Files that the host says the main agent knows, by real path. */
  readonly seenFiles: Map<string, NonNullable<ReturnType<NonNullable<SessionPorts["seenFile"]>>>>;
  /** Decides which answers are continued. */
  readonly continuation: AnswerContinuation;
  /** Texts of hooks that the model reads next. */
  readonly hookContexts: string[];
  /** Ends the connection with an error. */
  readonly stop: AbortController;
  readonly warn: (text: string) => void;
  initialize: Initialize;
  /** What the host has sent as `initialize`, as text. */
  initialized: string | undefined;
  /** Why no session can be opened. */
  startFailure: unknown;
  /** What the session is called, where a person or the host has named it. */
  title: string | undefined;
  /** The ids that the host gave the prompts of the running turn. */
  turnIds: readonly string[];
  /** Prompts of the host that it was notified of. */
  readonly queued: Set<string>;
  /** The id that the transcript's line of the next prompt gets. */
  promptId: string | undefined;
  /** The call that a callback has deferred; the turn ends with it. */
  deferred: DeferredCall | undefined;
  /** The host refused a call and wants the turn to end with that. */
  isDenialFinal: boolean;
  /** A callback wants the run to end after this turn. */
  isStopWanted: boolean;
  /** A hook made the main agent continue at its end, which the host has not been notified of yet. */
  isStopHeld: boolean;
}

export function createSdkConnection(
  given: CommandContext,
  options: ServeOptions,
  { isHosted, speaks, write }: ConnectionEnd,
): SdkConnection {
  const managed = readManagedSettings(options.managedSettings);
  const deny = managed.deny;
  const { session } = given;
  const context: CommandContext = {
    ...given,
    session: { ...session, disallowedTools: [...(session.disallowedTools ?? []), ...deny] },
  };
  const { host: cli } = context;
  const bypasses =
    options.dangerouslySkipPermissions === true || options.permissionMode === "bypassPermissions";
  if (!managed.mayBypass && bypasses)
    throw misuse("--managed-settings does not allow the mode bypassPermissions.");
  const request = readPrintOptions(options, { words: [], cwd: cli.cwd, session: context.session });
  const { thinkingTokens, taskBudget, notes } = checkAgentSdkOptions(options, { isForProgram: true });
  for (const note of notes) cli.stderr.write(`retinue: ${note}\n`);
  const keepsFiles = cli.environment["CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING"] === "true";
  const channel = createControlChannel(write);
  const warn = (text: string): void => channel.send(informational(text, sessionIdOf(connection)));
  let observed: ObservedHooks | undefined;
  const connection: SdkConnection = {
    context,
    options,
    request,
    isHosted,
    changesRules: speaks || managed.ask.length > 0,
    taskBudget,
    startedAt: Date.now(),
    channel,
    host: hostOf(() => connection),
    policy: policyOf(() => connection, managed.mayBypass),
    reports: reportsOf(() => connection, channel),
    choices: firstChoices(thinkingTokens),
    checkpoints: keepsFiles ? createFileCheckpoints(() => checkpointFolderOf(connection)) : undefined,
    lineIds: new WeakMap(),
    answers: answersOf(() => connection, request.partial),
    results: createCallResults(),
    childPrompts: new Map(),
    commands: commandsOf(() => connection),
    workflows: workflowsOf(() => connection),
    serverPrompts: createServerPrompts(() => connection.mcp),
    longCommands: longCommandsOf(() => connection),
    seenFiles: new Map(),
    continuation: createAnswerContinuation({
      notice: (text) => channel.send(informational(text, sessionIdOf(connection), "notice")),
    }),
    hookContexts: [],
    stop: new AbortController(),
    warn,
    queued: new Set(),
    ...unusedState(),
    title: options.name,
    observed() {
      observed ??= observedHooksOf(connection);
      return observed;
    },
  };
  for (const rule of managed.ask)
    void connection.policy.update({ type: "addRules", behavior: "ask", rules: [{ toolName: rule }] });
  return connection;
}

function firstChoices(effort: Choices["effort"]): Choices {
  return {
    model: undefined,
    effort,
    servers: { configured: {}, inProcess: [], disabled: new Set() },
    settings: {},
    folders: [],
    directory: undefined,
    perTaskStopAffordance: false,
  };
}

/** What is remembered of a host, before it has said anything. */
function unusedState() {
  return {
    initialize: noInitialize,
    initialized: undefined,
    startFailure: undefined,
    mcp: undefined,
    turnIds: [],
    promptId: undefined,
    isStopWanted: false,
    isStopHeld: false,
    deferred: undefined,
    isDenialFinal: false,
  };
}

function reportsOf(connection: Lazy, channel: ControlChannel): HookReports {
  const inform = (text: string, level: "warning" | "notice"): void =>
    channel.send(informational(text, sessionIdOf(connection()), level));
  return {
    warn: (text) => inform(text, "warning"),
    notify: (text) => inform(text, "notice"),
    defer(call) {
      connection().deferred = call;
      connection().isStopWanted = true;
    },
    enrich: (event, input) => enrichInput(event, input, connection()),
  };
}

function answersOf(connection: Lazy, partial: boolean): AnswerStream {
  const sessionId = (): string => sessionIdOf(connection());
  const results = createCallResults();
  return createAnswerStream({ sessionId, uuid: randomUUID, lineIds: () => [], results, partial });
}

function longCommandsOf(connection: Lazy): LongCommands {
  return createLongCommands({
    emit: (message) => connection().channel.send(message),
    sessionId: () => sessionIdOf(connection()),
  });
}

function commandsOf(connection: Lazy): BackgroundCommands {
  const current = () => connection().host.current();
  return createBackgroundCommands({
    emit: (message) => connection().host.emit(message),
    sessionId: () => sessionIdOf(connection()),
    mainAgentId: () => current()?.session.plan.agent.id ?? "",
    agents: () => current()?.tree.list() ?? [],
    others: () => connection().workflows.running(),
    settled: () => connection().host.wake(),
  });
}

function workflowsOf(connection: Lazy): WorkflowMessages {
  const current = () => connection().host.current();
  return createWorkflowMessages({
    emit: (message) => connection().host.emit(message),
    sessionId: () => sessionIdOf(connection()),
    runs: () => current()?.session.workflows?.runs.list() ?? [],
    others: () => [...runningAgents(current()?.tree.list() ?? []), ...connection().commands.running()],
  });
}

/** Beside the transcript, where one is kept. */
function checkpointFolderOf({ host, options }: SdkConnection): string | undefined {
  const session = host.current()?.session;
  if (session === undefined || options.sessionPersistence === false) return undefined;
  return checkpointFolder(sessionRecord(session).directory);
}

type Lazy = () => SdkConnection;

function hostOf(connection: Lazy): SdkHost {
  return createSdkHost({
    connection,
    open: (fresh, hosting) => openSessionOf(connection(), fresh, hosting),
    observed: () => connection().observed(),
    async reached(event) {
      const { checkpoints, host, context } = connection();
      if (checkpoints === undefined) return;
      await keepFiles(checkpoints, event, host.current()?.session.plan.directory ?? context.host.cwd);
    },
    begins({ uuid }) {
      const { checkpoints } = connection();
      connection().promptId = uuid;
      connection().continuation.begin();
      checkpoints?.begin(uuid);
    },
    refuse(session) {
      const { options, context, isHosted } = connection();
      const { environment, stderr } = context.host;
      try {
        refuseOffline(session, { model: options.model, environment });
        refuseKeyless(session, environment);
      } catch (error) {
        if (!isHosted && isRetinueError(error))
          stderr.write(`retinue: ${error.message}\n${error.advice ?? ""}\n`);
        throw error;
      }
    },
  });
}

const defaultHookTimeoutMs = 60_000;

function observedHooksOf(connection: SdkConnection): ObservedHooks {
  return createObservedHooks({
    hooks: connection.initialize.hooks,
    channel: connection.channel,
    reports: connection.reports,
    situation: () => situationOf(connection),
    addContext: (text) => void connection.hookContexts.push(text),
    stopRun() {
      connection.isStopWanted = true;
    },
    defaultTimeoutMs: defaultHookTimeoutMs,
  });
}

/** Programs read from the end of an agent what still runs. */
function enrichInput(
  event: string,
  input: JsonRecord,
  { host, commands, workflows }: SdkConnection,
): JsonRecord {
  if (event === "PostToolUse") return { ...input, tool_response: programResult(input["tool_response"]) };
  if (event !== "Stop" && event !== "SubagentStop") return input;
  const tasks = host.current()?.tree.list() ?? [];
  const agents = tasks
    .filter((task) => task.background && !hasEnded(task))
    .map(({ id, description, agentType }) => ({
      id,
      type: "subagent",
      status: "running",
      description,
      agent_type: agentType,
    }));
  return {
    ...input,
    background_tasks: [...agents, ...commands.summaries(), ...workflows.summaries()],
    session_crons: [],
  };
}

function policyOf(connection: Lazy, isAllowedByManaged: boolean): LivePolicy {
  return createLivePolicy({
    directory: () => connection().context.host.cwd,
    mayBypass() {
      const { options } = connection();
      if (!isAllowedByManaged) return false;
      return (
        options.allowDangerouslySkipPermissions === true ||
        options.dangerouslySkipPermissions === true ||
        options.permissionMode === "bypassPermissions"
      );
    },
    initialMode: () => connection().host.current()?.initialMode ?? "default",
    modeChanged(mode) {
      const { host } = connection();
      host.emit({
        type: "system",
        subtype: "status",
        status: null,
        permissionMode: mode,
        uuid: randomUUID(),
        session_id: sessionIdOf(connection()),
      });
    },
    paths: async () => (await connection().host.ready()).session.discovered.paths,
  });
}

/** The connected MCP servers of a session. */
type ServerConnections = Parameters<NonNullable<SessionPorts["serversConnected"]>>[0];
type ServerPrompt = Awaited<ReturnType<ServerConnections["prompts"]>>[number];

/** The prompts of MCP servers, which people call like commands: `/mcp__server__prompt words`. */
interface ServerPrompts {
  /** Asks the connected servers for what they offer. */
  load(signal: AbortSignal): Promise<void>;
  /** As commands that a host may offer. */
  commands(): readonly (JsonRecord & { readonly name: string })[];
  /** What the server makes of a prompt; undefined where the name is none of theirs. */
  expand(name: string, words: string, signal: AbortSignal): Promise<UserMessage["content"]> | undefined;
}

function createServerPrompts(connections: () => ServerConnections | undefined): ServerPrompts {
  let known: readonly ServerPrompt[] = [];
  return {
    async load(signal) {
      known = (await connections()?.prompts({ signal })) ?? [];
    },
    commands: () =>
      known.map((prompt) => ({
        name: prompt.command,
        description: prompt.description,
        argumentHint: prompt.arguments.map((each) => `[${each}]`).join(" "),
      })),
    expand(name, words, signal) {
      const prompt = known.find((each) => each.command === name);
      const open = connections();
      return prompt === undefined || open === undefined ? undefined : read(prompt, words, { open, signal });
    },
  };
}

async function read(
  { server, name, arguments: names }: ServerPrompt,
  words: string,
  { open, signal }: { readonly open: Pick<ServerConnections, "request">; readonly signal: AbortSignal },
): Promise<UserMessage["content"]> {
  const given = words.split(/\s+/).filter((word) => word !== "");
  const last = names.length - 1;
  // The last argument takes all words that are left.
  const values = names.map((_, at) => (at === last ? given.slice(at).join(" ") : given[at]));
  const filled = names.flatMap((each, at) => (values[at] ? [[each, values[at]] as const] : []));
  const end = await open.request(
    server,
    "prompts/get",
    { name, arguments: Object.fromEntries(filled) },
    { signal },
  );
  if (end.type !== "answered") throw new RetinueError("prompt-failed", end.reason);
  const messages = isRecord(end.result) ? end.result["messages"] : undefined;
  const blocks = (Array.isArray(messages) ? messages.filter(isRecord) : []).flatMap(({ content }) =>
    isRecord(content) && content["type"] === "text" && typeof content["text"] === "string"
      ? [{ type: "text", text: content["text"] } as const]
      : [],
  );
  if (blocks.length === 0)
    throw new RetinueError("prompt-failed", `The prompt ${name} of the MCP server ${server} has no text.`);
  return blocks;
}
