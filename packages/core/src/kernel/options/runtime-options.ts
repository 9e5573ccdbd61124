import type { WaitClock } from "@retinue/base/foundation/abortable.ts";
import type { Durability } from "@retinue/base/storage/durability.ts";
import type { AgentDefinition } from "@retinue/config/agents/agent-definition.ts";
import type { AgentInput } from "@retinue/config/agents/define-agent.ts";
import type { FiredEvent, HookInput, HookOutput } from "@retinue/config/hooks/hook-input.ts";
import type { McpOauth } from "@retinue/config/mcp/mcp-transport.ts";
import type { SettingsInput } from "@retinue/config/settings/settings.ts";
import type { ApprovalAnswer, ApprovalRequest, Approver } from "@retinue/gate/approver.ts";
import type { PermissionMode } from "@retinue/gate/permission-policy.ts";
import type { RunEvent } from "../../conversation/run-event.ts";
import type { HookFunction } from "../../hooks/run-handler.ts";
import type { ProgramServer } from "../../mcp/mcp-connections.ts";
import type { LanguageModel } from "../../models/language-model.ts";
import type { Model } from "../../models/model.ts";
import type { AgentPlan } from "../../planning/agent-plan.ts";
import type { SessionLimitOptions } from "../../planning/plan-limits.ts";
import type { Executor } from "../../tasks/run-agent.ts";
import type { Tool, ToolHost } from "../../tools/tool.ts";
import type { CanUseTool } from "../agent/create-authorize.ts";
import type { IntegrateOption } from "../merge/merge-options.ts";
import type { SessionPorts } from "../session-ports.ts";
import type { PortableOptions } from "../teams/portable-options.ts";
import type { OutputSchema } from "./typed-output.ts";

/** A model that answers: an alias, an id or `provider/model`, a model of the AI SDK, or one that the program wrote. */
export type ModelInput = string | Model | LanguageModel;

/** Agents as a list, or by name as the Claude Agent SDK takes them. */
export type AgentsInput =
  | readonly (AgentDefinition | AgentInput)[]
  | Readonly<Record<string, Omit<AgentInput, "name">>>;

/** A hook of the program as the Claude Agent SDK takes it. */
type HookCallback<Event extends FiredEvent> = (
  input: HookInput<Event>,
  toolUseId: string | undefined,
  options: { readonly signal: AbortSignal },
) => HookReturn | Promise<HookReturn>;

// biome-ignore lint/suspicious/noConfusingVoidType: a hook that only watches returns nothing
type HookReturn = HookOutput | SdkHookOutput | undefined | void;

/** What the Agent SDK types as an answer: one for any event, or that of a hook that decides nothing. */
type SdkHookOutput =
  | (Omit<HookOutput, "hookSpecificOutput"> & { readonly hookSpecificOutput?: object | undefined })
  | { readonly async: true; readonly asyncTimeout?: number | undefined };

/** Hooks of a program by event. */
export type HooksByEvent = {
  readonly [Event in FiredEvent]?: readonly (
    | HookCallback<Event>
    | {
        readonly matcher?: string | undefined;
        readonly hooks: readonly HookCallback<Event>[];
        /** Seconds. */
        readonly timeout?: number | undefined;
      }
  )[];
};

/** A tool as the Claude Agent SDK and the AI SDK make it. */
export interface ForeignTool {
  readonly name: string;
  readonly description?: string | undefined;
  readonly inputSchema?: unknown;
  handler?(input: never, context: never): unknown;
  execute?(input: never, context: never): unknown;
}

/** Names of built-in tools (`default`: all) and tools of the program, or tools of the AI SDK by name. */
export type ToolsInput = readonly (string | Tool | ForeignTool)[] | Readonly<Record<string, object>>;

/** Options of a session that a runtime can set for all of them; a session that says it itself decides. */
export type SessionDefaults = Pick<SessionOptions, (typeof sessionDefaults)[number]>;

export const sessionDefaults = [
  "agent",
  "effort",
  "fallbackModel",
  "permissionMode",
  "skipPermissions",
  "allowedTools",
  "systemPrompt",
  "appendSystemPrompt",
  "appendSubagentSystemPrompt",
  "maxTurns",
  "maxBudgetUsd",
  "limits",
  "background",
  "slashCommands",
] as const satisfies readonly (keyof SessionOptions)[];

/** Options for all sessions of a runtime. All have defaults. */
export interface RuntimeOptions extends SessionDefaults {
  /** The project folder; the current folder when absent. */
  readonly cwd?: string | undefined;
  readonly home?: string | undefined;
  /** Environment variables; those of the process when absent. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly platform?: NodeJS.Platform | undefined;
  /** Agents of this program, which take precedence over those in files of the project. */
  readonly agents?: AgentsInput | undefined;
  /**
   * The tools there are: tools of this program, and names of built-in ones. Absent: all built-in tools. A built-in tool that a list
   * does not name does not exist, so `[]` and `[own]` leave none; `["default", own]` adds to all of them. A record is read as tools
   * of the AI SDK by name.
   */
  readonly tools?: ToolsInput | undefined;
  readonly model?: ModelInput | undefined;
  /** Workers of this store carry out the runs: `postgres({ url })` of `retinue/cluster`. */
  readonly store?: RuntimeStore | undefined;
  /** Wraps the model of every agent, for limits that reach beyond this process. */
  readonly wrapModel?: ((model: Model) => Model) | undefined;
  /** Carries children out elsewhere, or gives them to the executor of this process, which it gets. */
  readonly wrapExecutor?: ((local: Executor) => Executor) | undefined;
  /** Takes the plan of every main agent before it is opened, and gives the one to carry out: one that was decided elsewhere. */
  readonly wrapPlan?: ((decided: AgentPlan) => AgentPlan) | undefined;
  /** The key under which a call is known outside this process; absent: made of the ids of session, agent and call. */
  readonly idempotencyKey?: ((callId: string) => string | undefined) | undefined;
  /** A settings file, JSON text, or an object as in a settings file. */
  readonly settings?: string | SettingsInput | undefined;
  /**
   * Which settings files take effect in full. Absent: none. Then deny rules still apply, but hooks, MCP servers, allow
   * rules, permission modes, variables and key helpers in settings files do nothing, and neither do hooks and servers of
   * plugins other than those of `pluginDirectories`.
   */
  readonly settingSources?: readonly ("user" | "project" | "local")[] | undefined;
  readonly pluginDirectories?: readonly string[] | undefined;
  /** Whose agent files are read: `claude`, `agents`, `opencode`, `codex` …; those of settings when absent, else the first two. */
  readonly agentSources?: readonly string[] | undefined;
  readonly additionalDirectories?: readonly string[] | undefined;
  /** MCP servers of this program, by name. */
  readonly mcpServers?: Readonly<Record<string, McpServerConfig>> | undefined;
  /** More MCP servers: JSON texts and paths of files. */
  readonly mcpConfig?: readonly string[] | undefined;
  /** True leaves out every MCP server but those of `mcpServers` and `mcpConfig`. */
  readonly strictMcpConfig?: boolean | undefined;
  /**
   * Whether the repository of `cwd` is trusted for this run; absent means what the person has accepted before. Other folders,
   * such as those of `additionalDirectories`, count by what was accepted for them.
   */
  readonly trusted?: boolean | undefined;
  /** Deny rules of every session; `Task(name)` also hides that agent. */
  readonly disallowedTools?: readonly string[] | undefined;
  /** Decides in code what rules leave open; asked before the approver. */
  readonly canUseTool?: CanUseTool | undefined;
  /** Asks a person what rules leave open; without it such calls are denied. */
  readonly approver?: Approver | undefined;
  /**
   * `inbox`: a call that no person can be asked about waits until it is answered, also after a restart; needs
   * `transcripts`. `refuse`: it is refused. Absent: as in settings, else `refuse`.
   */
  readonly approvals?: "refuse" | "inbox" | undefined;
  /** Hooks of this program: a list, or an object by event. */
  readonly hooks?: readonly HookFunction[] | HooksByEvent | undefined;
  /** Called with warnings: what hooks report, and which of them failed. */
  readonly onWarning?: ((text: string) => void) | undefined;
  /** What tools may ask of this program, such as a question to a person. */
  readonly host?: ToolHost | undefined;
  /** How many child agents of a session run at the same time; ten when absent. */
  readonly concurrency?: number | undefined;
  /** What happens to one more: by default it is queued when it is waited for, and refused in the background. */
  readonly overflow?: "queue" | "refuse" | undefined;
  /** Whether agents may form teams; absent: as in the environment and settings. */
  readonly teams?: boolean | undefined;
  /** True writes transcripts below the home folder, from which sessions can be resumed; a path writes them to that folder. */
  readonly transcripts?: boolean | string | undefined;
  /**
   * `sync`: what is about to happen is on the disk itself before it happens, so that it survives a power cut. `os` leaves
   * that to the operating system, and survives only the end of the process. Absent: as in settings, else `sync`.
   */
  readonly durability?: Durability | undefined;
  /** How sessions say they were started. */
  readonly entrypoint?: string | undefined;
  readonly managedDirectory?: string | undefined;
  /** The clock for time limits and pauses; the real one when absent. */
  readonly clock?: WaitClock | undefined;
  /**
   * True: sessions are measured with the OpenTelemetry of the program (`@opentelemetry/api`). `environment`: where variables
   * such as `OTEL_EXPORTER_OTLP_ENDPOINT` ask for it, exporters are started. Absent: nothing is measured.
   */
  readonly telemetry?: boolean | "environment" | undefined;
}

/** Options for one session. */
export interface SessionOptions<Output = unknown> {
  /** The agent that is the main thread; its prompt takes the place of the usual one. */
  readonly agent?: string | undefined;
  readonly model?: ModelInput | undefined;
  /** `low`, `medium`, `high`, `xhigh` or `max`, or a number from 0 to 100. */
  readonly effort?: string | number | undefined;
  /**
   * The model that answers where that of an agent is overloaded or gone, by name, for children too; several are tried in order.
   * Absent: as in settings. The chosen model is asked again with the next prompt.
   */
  readonly fallbackModel?: string | readonly string[] | undefined;
  readonly permissionMode?: PermissionMode | undefined;
  readonly skipPermissions?: boolean | undefined;
  /** As for a runtime: the names of all built-in tools there are, or `default`, and tools of the program besides those of the runtime. */
  readonly tools?: ToolsInput | undefined;
  /** Rules that allow calls without asking. */
  readonly allowedTools?: readonly string[] | undefined;
  readonly disallowedTools?: readonly string[] | undefined;
  readonly systemPrompt?: string | undefined;
  readonly appendSystemPrompt?: string | undefined;
  /** Added to the system prompt of every child agent. */
  readonly appendSubagentSystemPrompt?: string | undefined;
  /** Model calls of the main agent. */
  readonly maxTurns?: number | undefined;
  readonly maxBudgetUsd?: number | undefined;
  /** What each child, and the whole tree, may take; only ever narrows what settings set. */
  readonly limits?: SessionLimitOptions | undefined;
  /** The id or title of a session to resume. */
  readonly resume?: string | undefined;
  /** Continue the latest session of this folder. */
  readonly continue?: boolean | undefined;
  /** Continue in a copy, leaving the resumed session as it is. */
  readonly forkSession?: boolean | undefined;
  readonly sessionId?: string | undefined;
  /** Takes the session and its children also from another process that holds them; what that one writes next is refused. */
  readonly takeOver?: boolean | undefined;
  /** Only children are run: the main conversation is neither read nor written, so another process may have it. */
  readonly childrenOnly?: boolean | undefined;
  /** With `childrenOnly` and teams on: named agents are members of a team that the program leads; `takeNotices` reads their mail. */
  readonly leadsTeam?: boolean | undefined;
  /** An MCP tool, as `mcp__server__tool`, that answers in a person's place what rules leave open. */
  readonly permissionPromptTool?: string | undefined;
  /** Only plans are asked of it, so no MCP server is connected. */
  readonly planOnly?: boolean | undefined;
  /** True: without a key the offline model answers, for a person who is shown that it does. */
  readonly offlineDemo?: boolean | undefined;
  /** True: files that a prompt names as `@path` are attached to it. */
  readonly mentions?: boolean | undefined;
  /** Resume only up to this line of the transcript, by uuid; what followed is left in the file. */
  readonly resumeAt?: string | undefined;
  /** With `resumeAt`: the uuid of the prompt whose turn is left out; anything else left out is an error. */
  readonly resumeDrops?: string | undefined;
  /** False: a prompt such as `/name` is plain text and calls no skill. */
  readonly slashCommands?: boolean | undefined;
  /** The schema that the result must match: zod, Standard Schema or JSON Schema. */
  readonly output?: OutputSchema<Output> | undefined;
  /** The folder of this session; that of the runtime when absent. */
  readonly cwd?: string | undefined;
  /** Variables of this session, over those of the runtime; undefined removes one. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Whether the repository of `cwd` is trusted; absent: as set in the runtime for its own folder, else as people have accepted. */
  readonly trusted?: boolean | undefined;
  /** Decides for this session what rules leave open, in place of the runtime's. */
  readonly canUseTool?: CanUseTool | undefined;
  /** Asks a person what rules leave open in this session, in place of the runtime's. */
  readonly approver?: Approver | undefined;
  /** Hooks of this session alone, beside those of the runtime. */
  readonly hooks?: readonly HookFunction[] | HooksByEvent | undefined;
  /**
   * What a run does at its end with agents that still work in the background. `wait`, the default: waits for them and lets the
   * agent read their reports. `leave`: ends; they continue until the session or the runtime is closed. `stop`: stops them.
   */
  readonly background?: "wait" | "leave" | "stop" | undefined;
}

export interface RunOptions<Output = unknown> extends SessionOptions<Output> {
  /** At the end, brings the changes of its children back that are in worktrees of their own; the result has the queue as `merge`. */
  readonly integrate?: IntegrateOption | undefined;
  readonly signal?: AbortSignal | undefined;
}

interface CommonConfig {
  /** Timeout of a call, in milliseconds. */
  readonly timeout?: number | undefined;
  readonly disabled?: boolean | undefined;
  /** True: its tools are in every prompt, however many there are. */
  readonly alwaysLoad?: boolean | undefined;
}

/** A server that is a program, which is started for the session. */
interface StdioConfig extends CommonConfig {
  readonly type?: "stdio" | undefined;
  readonly command: string;
  readonly args?: readonly string[] | undefined;
  readonly env?: Readonly<Record<string, string>> | undefined;
}

/** A server with an address. */
interface HttpConfig extends CommonConfig {
  readonly type: "http" | "sse";
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** A command that prints more headers as a JSON object. */
  readonly headersHelper?: string | undefined;
  /** How to log in, where the server's own metadata is not enough. */
  readonly oauth?: Partial<McpOauth> | undefined;
}

/** A server object of the official packages, inside this program. */
interface SdkConfig {
  readonly type: "sdk";
  readonly name?: string | undefined;
  readonly instance: ProgramServer;
  /** True: its tools are in every prompt, however many there are. */
  readonly alwaysLoad?: boolean | undefined;
}

/** An MCP server as a program configures it: the shape of an `.mcp.json`, or an object in its own memory. */
export type McpServerConfig = StdioConfig | HttpConfig | SdkConfig;

/** Options that have another name or shape once they were checked. */
type Reshaped =
  | "agents"
  | "tools"
  | "model"
  | "env"
  | "hooks"
  | "onWarning"
  | "settings"
  | "mcpServers"
  | "concurrency"
  | "overflow"
  | (typeof sessionDefaults)[number];

/** The options of a runtime after they were checked and brought into one shape. */
export interface RuntimeSetup extends Omit<RuntimeOptions, Reshaped> {
  readonly environment?: Readonly<Record<string, string | undefined>>;
  readonly agents?: readonly (AgentDefinition | AgentInput)[] | undefined;
  /** Tools of the program, beside the built-in ones. */
  readonly extraTools?: readonly Tool[] | undefined;
  /** Serves every session in place of what settings and the environment choose. */
  readonly model?: Model | undefined;
  /** Wraps the model of every agent, for limits that reach beyond this process. */
  readonly wrapModel?: ((model: Model) => Model) | undefined;
  /** Carries children out elsewhere. */
  readonly wrapExecutor?: ((local: Executor) => Executor) | undefined;
  /** The key under which a call is known outside this process. */
  readonly idempotencyKey?: ((callId: string) => string | undefined) | undefined;
  readonly settings?: string | undefined;
  /** The program wrote its settings itself, so what is wrong with them is a mistake of the call. */
  readonly ownSettings?: boolean | undefined;
  /** Of the settings files of the person and the project, only what restricts counts. */
  readonly restrictionsOnly?: boolean | undefined;
  readonly mcpServers?: Readonly<Record<string, unknown>>;
  readonly hooks?: readonly HookFunction[] | undefined;
  readonly notice?: ((text: string) => void) | undefined;
  /** What members of a team in processes of their own are started with. */
  readonly portable?: (() => PortableOptions) | undefined;
  /** What the host of a session changes while it runs. */
  readonly live?: SessionPorts | undefined;
}

/** The options of a session after they were checked and brought into one shape. */
export interface SessionSetup<Output = unknown>
  extends Omit<
    SessionOptions<Output>,
    "model" | "tools" | "cwd" | "env" | "trusted" | "canUseTool" | "approver" | "hooks"
  > {
  /** An alias, an id, or `provider/model`. */
  readonly model?: string | undefined;
  /** Which built-in tools exist; absent means all. */
  readonly tools?: readonly string[] | undefined;
}

/** Where the sessions of a runtime are carried out instead of in this process. */
export interface RuntimeStore {
  /**
   * Hands a session to the workers, or the next prompt to one that is there. The events are those that can be seen from
   * here while it runs, and end with one `run-ended`. Leaving them early leaves the session running.
   */
  run(request: StoreRunRequest, options: { readonly signal: AbortSignal }): AsyncIterable<RunEvent>;
  /** Ends a session on whichever worker. */
  stop(sessionId: string, reason: string): Promise<void>;
  close(): Promise<void>;
}

export interface StoreRunRequest {
  readonly sessionId: string;
  readonly prompt: string;
  /** The next prompt of a session that is there. */
  readonly isResumed: boolean;
  readonly options: SessionOptions;
  /** Definitions keyed by name, as plain data. */
  readonly agents?: unknown;
  /** The folder of the runtime. */
  readonly directory: string;
  /** Where the person's own files are; absent: the home folder. */
  readonly home?: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Answers calls that wait for a person; without it the session waits for an answer from elsewhere. */
  readonly approve?: (request: ApprovalRequest) => Promise<ApprovalAnswer>;
}
