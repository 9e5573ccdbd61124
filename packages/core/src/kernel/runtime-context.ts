import type { WaitClock } from "@retinue/base/foundation/abortable.ts";
import type { DiscoveredAgents } from "@retinue/config/discovery/discover-agents.ts";
import type { AskedServer } from "@retinue/config/settings/choose-mcp-servers.ts";
import type { ApprovalsValue, EnvironmentOptions } from "@retinue/config/settings/read-environment.ts";
import type { SkillCatalog } from "@retinue/config/skills/skill-catalog.ts";
import type { Approver } from "@retinue/gate/approver.ts";
import type { RunEvent } from "../conversation/run-event.ts";
import type { HookFunction } from "../hooks/run-handler.ts";
import type { ProgramServer } from "../mcp/mcp-connections.ts";
import type { LocalServer } from "../models/local-models.ts";
import type { Model } from "../models/model.ts";
import type { ModelFactory } from "../models/model-factory.ts";
import type { QuotaWindows } from "../models/quota-window.ts";
import type { AgentPlan } from "../planning/agent-plan.ts";
import type { RecordKeeping } from "../tasks/open-record.ts";
import type { Executor } from "../tasks/run-agent.ts";
import type { ChildLimits } from "../tasks/task-manager.ts";
import type { TeamRuntime } from "../teams/team-settings.ts";
import type { SandboxRuntime } from "../tools/sandbox/sandbox-runtime.ts";
import type { Wall } from "../tools/sandbox/wall.ts";
import type { Tool, ToolHost } from "../tools/tool.ts";
import type { CanUseTool } from "./agent/create-authorize.ts";
import type { Capability } from "./agent/open-agent.ts";
import type { GatheredMcp, McpAnswer } from "./servers/gather-mcp-servers.ts";
import type { SessionPorts } from "./session-ports.ts";
import type { PortableOptions } from "./teams/portable-options.ts";

/** What is found in the folder of a session, in settings and in the environment; looked for anew with each session. */
export interface FolderContext {
  readonly discovered: DiscoveredAgents;
  /** Finds the skills there are now, also those in folders below the project that are named. */
  readonly skills: (nestedFolders?: readonly string[]) => Promise<SkillCatalog>;
  /** Finds the MCP servers there are now, and decides which may be connected; connects none. */
  readonly servers: (ask?: (server: AskedServer) => Promise<McpAnswer>) => Promise<GatheredMcp>;
  readonly trusted: boolean;
  /** Why a folder that was trusted is not: its files are others than its lock says. */
  readonly changed?: string;
  /** Whose settings and instruction files are read besides the organisation's; absent means every product's. */
  readonly settingSources?: readonly ("user" | "project" | "local")[];
  /** The process's variables with those of settings over them. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** What those of them that steer this product say. */
  readonly variables: EnvironmentOptions;
  readonly platform: NodeJS.Platform;
  readonly additionalDirectories: readonly string[];
  /** Files and folders that options name and that steer the runtime: settings, MCP servers, plugins. */
  readonly optionFiles: readonly string[];
  /** Where questions wait while the session is unattended; absent: such calls are refused. */
  readonly approvals?: ApprovalSettings;
}

/** What the program brought in code: values and functions that no file can say. */
export interface ProgramParts {
  /** Serves every session, where the program brought one. */
  readonly model?: Model;
  /** Models are wrapped by the program. */
  readonly wrapsModels?: true;
  readonly extraTools: readonly Tool[];
  /** MCP servers that the program holds in its own memory, by name. */
  readonly programServers: ReadonlyMap<string, ProgramServer>;
  /** Deny rules that hold for every session. */
  readonly disallowedTools: readonly string[];
  readonly host: ToolHost;
  readonly canUseTool?: CanUseTool;
  readonly approver?: Approver;
  readonly hooks: readonly HookFunction[];
  /** What the program says about children, in place of settings. */
  readonly childLimits?: Partial<ChildLimits>;
  /** What members of a team in processes of their own are started with. */
  readonly portable?: () => PortableOptions;
}

/** How a program has agents decided, carried out and named outside this process. */
export interface RemoteParts {
  /** Carries children out elsewhere. */
  readonly wrapExecutor?: (local: Executor) => Executor;
  /** Replaces the plan of a main agent by one that was decided elsewhere. */
  readonly wrapPlan?: (decided: AgentPlan) => AgentPlan;
  /** The key under which a call is known there. */
  readonly idempotencyKey?: (callId: string) => string | undefined;
}

/** What is made once in a runtime and shared by all its sessions. */
export interface SharedResources {
  readonly models: ModelFactory;
  /** Present where a used-up quota is waited for. */
  readonly quotas?: QuotaWindows | undefined;
  /** Servers of models on this machine; looked for at the first question, and never where that is switched off. */
  readonly localServers: () => Promise<readonly LocalServer[]>;
  /** Started at the first command that needs it. */
  readonly sandbox: SandboxRuntime;
  readonly wall: Wall;
  /** Set where agents may form teams. */
  readonly teams?: TeamRuntime;
  /** The time by which runs are limited. */
  readonly clock: WaitClock;
  readonly now: () => number;
}

/** What one session has beside others of its runtime: a host that takes part in it, a replay, telemetry. */
export interface SessionParticipants {
  /** What the host of a session changes while it runs. */
  readonly live?: SessionPorts;
  /** What is added to every agent, by its plan. */
  readonly additions?: readonly ((plan: AgentPlan) => Capability)[];
  /** Notified of what happens in every agent, and runs its hooks; absent where nothing is measured. */
  readonly observer?: SessionObserver;
  /** False where tools give only what was recorded of them: then no check is run either. */
  readonly runsChecks?: boolean;
}

/** Everything around a session that is not in its options: what its agents are decided by, run with and recorded in. */
export interface RuntimeContext
  extends FolderContext,
    ProgramParts,
    RemoteParts,
    SharedResources,
    SessionParticipants,
    RecordKeeping {
  /** Where a session that keeps no transcript writes its outputs; removed with it. */
  readonly scratch?: string;
}

/** Observers that measure a session. They neither wait nor throw. */
export interface SessionObserver {
  event(plan: AgentPlan, event: RunEvent): void;
  /** Around the hooks of one event. */
  hook<Outcome>(plan: AgentPlan, event: string, run: () => Promise<Outcome>): Promise<Outcome>;
}

/** Where questions wait. */
export interface ApprovalSettings extends Pick<ApprovalsValue, "webhook"> {
  /** The variable that holds the webhook's key, which is kept out of what agents and their commands inherit. */
  readonly key: Readonly<Record<string, string | undefined>>;
}
