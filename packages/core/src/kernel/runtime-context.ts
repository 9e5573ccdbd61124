import type { WaitClock } from "@retinue/base/foundation/abortable.ts";
import { placeText } from "@retinue/base/foundation/diagnostic.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { Durability } from "@retinue/base/storage/durability.ts";
import type { AgentDefinition } from "@retinue/config/agents/agent-definition.ts";
import type { DiscoveredAgents } from "@retinue/config/discovery/discover-agents.ts";
import { losesHook } from "@retinue/config/hooks/read-hooks.ts";
import type { AskedServer } from "@retinue/config/settings/choose-mcp-servers.ts";
import type { EnvironmentOptions } from "@retinue/config/settings/read-environment.ts";
import type { SkillCatalog } from "@retinue/config/skills/skill-catalog.ts";
import type { Approver } from "@retinue/gate/approver.ts";
import type { RunEvent } from "../conversation/run-event.ts";
import type { HookFunction } from "../hooks/run-handler.ts";
import { findChoices } from "../journal/session-choices.ts";
import { sessionFiles } from "../journal/session-files.ts";
import type { IdSource } from "../journal/transcript-writer.ts";
import type { ProgramServer } from "../mcp/mcp-connections.ts";
import type { LocalServer } from "../models/local-models.ts";
import type { Model } from "../models/model.ts";
import type { ModelFactory } from "../models/model-factory.ts";
import type { QuotaWindows } from "../models/quota-window.ts";
import type { AgentPlan } from "../planning/agent-plan.ts";
import type { ChildLimits, Executor } from "../tasks/task-manager.ts";
import type { TeamRuntime } from "../teams/team-settings.ts";
import type { SandboxRuntime } from "../tools/sandbox/sandbox-runtime.ts";
import type { Wall } from "../tools/sandbox/wall.ts";
import type { Tool, ToolHost } from "../tools/tool.ts";
import type { CanUseTool } from "./agent/create-authorize.ts";
import type { Capability } from "./agent/open-agent.ts";
import type { ApprovalSettings } from "./approvals/open-inbox.ts";
import { type OpenSessionParts, openSession } from "./open-session.ts";
import { chooseSession } from "./open-transcript.ts";
import type { SessionSetup } from "./options/runtime-options.ts";
import { connectSessionServers } from "./servers/connect-session-servers.ts";
import type { GatheredMcp, McpAnswer } from "./servers/gather-mcp-servers.ts";
import { createPromptTool } from "./servers/session-servers.ts";
import type { Session } from "./session.ts";
import type { SessionPorts } from "./session-ports.ts";
import { refuseBrokenRestrictions } from "./session-rules.ts";
import type { PortableOptions } from "./teams/portable-options.ts";

/** What all sessions of a runtime share. */
export interface RuntimeContext {
  readonly discovered: DiscoveredAgents;
  /** Finds the skills there are now, also those in folders below the project that are named. */
  readonly skills: (nestedFolders?: readonly string[]) => Promise<SkillCatalog>;
  /** Finds the MCP servers there are now, and decides which may be connected; connects none. */
  readonly servers: (ask?: (server: AskedServer) => Promise<McpAnswer>) => Promise<GatheredMcp>;
  /** Those that the program holds in its own memory, by name. */
  readonly programServers: ReadonlyMap<string, ProgramServer>;
  readonly trusted: boolean;
  /** Why a folder that was trusted is not: its files are others than its lock says. */
  readonly changed?: string;
  /** Whose settings and instruction files are read besides the organisation's; absent means everybody's. */
  readonly settingSources?: readonly ("user" | "project" | "local")[];
  /** The process's variables with those of settings over them. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** What those of them that steer this product say. */
  readonly variables: EnvironmentOptions;
  readonly platform: NodeJS.Platform;
  readonly models: ModelFactory;
  /** Present where a used-up quota is waited for. */
  readonly quotas?: QuotaWindows | undefined;
  /** Servers of models on this machine; looked for at the first question, and never where that is switched off. */
  readonly localServers: () => Promise<readonly LocalServer[]>;
  /** Serves every session, where the program brought one. */
  readonly model?: Model;
  readonly extraTools: readonly Tool[];
  /** Carries children out elsewhere, where the program does so. */
  readonly wrapExecutor?: (local: Executor) => Executor;
  /** Replaces the plan of a main agent by one that was decided elsewhere, where the program does so. */
  readonly wrapPlan?: (decided: AgentPlan) => AgentPlan;
  /** The key under which a call is known outside this process, where the program says so. */
  readonly idempotencyKey?: (callId: string) => string | undefined;
  readonly additionalDirectories: readonly string[];
  /** Files and folders that options name and that steer the runtime: settings, MCP servers, plugins. */
  readonly optionFiles: readonly string[];
  /** Deny rules that hold for every session. */
  readonly disallowedTools: readonly string[];
  readonly host: ToolHost;
  readonly canUseTool?: CanUseTool;
  readonly approver?: Approver;
  /** Where questions wait while no one can be asked; absent: such calls are refused. */
  readonly approvals?: ApprovalSettings;
  /** Hooks of the program itself, in code. */
  readonly hooks: readonly HookFunction[];
  /** Shows the person what hooks say, and which of them failed. */
  readonly notice?: (text: string) => void;
  /** Started at the first command that needs it, and shared by all sessions. */
  readonly sandbox: SandboxRuntime;
  readonly wall: Wall;
  /** Set where agents may form teams. */
  readonly teams?: TeamRuntime;
  /** What members of a team in processes of their own are started with. */
  readonly portable?: () => PortableOptions;
  /** Models are wrapped by the program. */
  readonly wrapsModels?: true;
  readonly keepsTranscripts: boolean;
  /** Where a session that keeps no transcript writes its outputs; removed with it. */
  readonly scratch?: string;
  /** What the host of a session changes while it runs. */
  readonly live?: SessionPorts;
  /** What the program says about children, in place of settings. */
  readonly childLimits?: Partial<ChildLimits>;
  /** False where tools give only what was recorded of them: then no check is run either. */
  readonly runsChecks?: boolean;
  /** What is added to every agent, by its plan: a replay, or those who measure. */
  readonly additions?: readonly ((plan: AgentPlan) => Capability)[];
  /** Hears what happens in every agent, and runs its hooks; absent where no one measures. */
  readonly observer?: SessionObserver;
  readonly durability: Durability;
  readonly entrypoint: string;
  readonly ids: IdSource;
  /** The time by which runs are limited. */
  readonly clock: WaitClock;
  readonly now: () => number;
  /** Milliseconds since 1970. */
  readonly epochMs: () => number;
}

/** Those who measure a session. They neither wait nor throw. */
export interface SessionObserver {
  event(plan: AgentPlan, event: RunEvent): void;
  /** Around the hooks of one event. */
  hook<Outcome>(plan: AgentPlan, event: string, run: () => Promise<Outcome>): Promise<Outcome>;
}

/** Opens a session while its MCP servers are connected; where it cannot be opened, they end again. */
export async function beginSession<Output>(
  runtime: RuntimeContext,
  given: SessionSetup<Output>,
  { loadRegistry, signal }: Pick<OpenSessionParts, "loadRegistry" | "signal">,
): Promise<Session<Output>> {
  refuseBrokenRestrictions(runtime.discovered.settings);
  const options = await withEarlierChoices(runtime, given);
  const stop = new AbortController();
  const definition = findMainAgent(runtime.discovered, options.agent);
  const planOnly = options.planOnly === true;
  if (!planOnly) {
    reportChanges(runtime);
    reportHeldHooks(runtime);
    reportLostHooks(runtime);
  }
  const servers = connectSessionServers(runtime, {
    definition,
    planOnly,
    sessionId: options.sessionId ?? options.resume ?? "",
    signal: AbortSignal.any([signal, stop.signal]),
  });
  const ended = servers.catch(() => undefined);
  const { permissionPromptTool: asked } = options;
  const around = asked === undefined ? runtime : { ...runtime, canUseTool: createPromptTool(asked, servers) };
  try {
    return await openSession(around, options, { definition, loadRegistry, servers, signal });
  } catch (error) {
    stop.abort(error);
    await (await ended)?.[Symbol.asyncDispose]();
    throw error;
  }
}

/** The agent that is the main thread, where the call or settings name one. */
function findMainAgent(
  { registry, settings }: DiscoveredAgents,
  named: string | undefined,
): AgentDefinition | undefined {
  const name = named ?? settings.settings.plain.agent;
  if (name === undefined || name === "") return undefined;
  const found = registry.find(name);
  if (found.type === "found") return found.agent.definition;
  if (found.type === "denied") {
    throw new RetinueError(
      "agent-denied",
      `The agent ${JSON.stringify(name)} is denied by the rule ${found.rule}.`,
    );
  }
  const near = found.nearest === undefined ? "" : ` Did you mean ${found.nearest}?`;
  throw new RetinueError("unknown-agent", `There is no agent ${JSON.stringify(name)}.${near}`, {
    advice: `There are ${found.available.join(", ")}.`,
  });
}

/** What was accepted is not what is there now, and nobody can be asked here. */
function reportChanges({ changed, notice }: Pick<RuntimeContext, "changed" | "notice">): void {
  if (changed === undefined) return;
  notice?.(
    `This folder counts as not trusted, because ${changed}. \`retinue trust\` shows what changed and asks; \`retinue agents lock\` accepts it for everybody.`,
  );
}

/** A hook may be there to refuse something, so that it does not run is never silent. */
function reportHeldHooks({ discovered, notice }: Pick<RuntimeContext, "discovered" | "notice">): void {
  const held = discovered.settings.settings.heldBack.filter(
    ({ key, reason }) => reason === "folder-not-trusted" && key.startsWith("hooks."),
  );
  if (held.length === 0) return;
  const files = [...new Set(held.map(({ source }) => source.file ?? source.scope))].join(", ");
  const hooks = held.length === 1 ? "1 hook does" : `${held.length} hooks do`;
  notice?.(
    `${hooks} not run, because this folder is not trusted (${files}). \`retinue trust\`, or /trust in the terminal, shows what waits; --trust lets it run once.`,
  );
}

/** So is one that cannot be read, or that nothing can match. */
function reportLostHooks({ discovered, notice }: Pick<RuntimeContext, "discovered" | "notice">): void {
  for (const diagnostic of discovered.settings.diagnostics.filter(losesHook)) {
    const place = diagnostic.file === undefined ? "" : `${placeText(diagnostic)}: `;
    notice?.([`${place}${diagnostic.message}`, diagnostic.advice ?? ""].join(" ").trim());
  }
}

/** The options with the agent and model of the session that is resumed, where they name none themselves. */
async function withEarlierChoices<Output>(
  { discovered, ids }: RuntimeContext,
  options: SessionSetup<Output>,
): Promise<SessionSetup<Output>> {
  if (options.resume === undefined && options.continue !== true) return options;
  const { transcripts } = discovered.paths;
  const { from } = await chooseSession(options, transcripts, ids);
  if (from === undefined) return options;
  const { agent, model } = await findChoices(sessionFiles(transcripts, from).transcript);
  if (options.agent === undefined && agent !== undefined && agent !== "") {
    refuseLostAgent(discovered.registry.find(agent).type, agent);
  }
  // By its id the session is found again immediately, and is the same one even if another was written to meanwhile.
  return {
    agent,
    model,
    ...options,
    resume: from,
  };
}

/** Without its agent the session would continue with other rights than it had. */
function refuseLostAgent(found: "found" | "denied" | "unknown", agent: string): void {
  if (found === "found") return;
  const what = found === "denied" ? "is denied by a rule now" : "is not there any more";
  throw new RetinueError(
    "unknown-agent",
    `The session ran as the agent ${JSON.stringify(agent)}, which ${what}.`,
    {
      advice: 'Name another with --agent, or none with --agent "".',
    },
  );
}
