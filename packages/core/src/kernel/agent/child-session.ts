import type { LockGroup } from "@retinue/base/storage/owner-lock.ts";
import type { AgentDefinition } from "@retinue/config/agents/agent-definition.ts";
import type { AgentRegistry } from "@retinue/config/agents/agent-registry.ts";
import { mayWiden } from "@retinue/config/agents/agent-source.ts";
import type { DiscoveredAgents } from "@retinue/config/discovery/discover-agents.ts";
import { aliasTable, type ChosenModel } from "@retinue/config/models/select-subagent-model.ts";
import { childPolicy } from "@retinue/gate/build-policy.ts";
import { type BackgroundRight, backgroundRights } from "@retinue/gate/permission-policy.ts";
import type { Message } from "../../conversation/message.ts";
import { findOverride, lookUpModel, readModelOverrides } from "../../models/look-up-model.ts";
import type { Model, ModelFacts } from "../../models/model.ts";
import {
  type AgentPlan,
  type ChildPlan,
  isSameModel,
  type ProgramFunction,
} from "../../planning/agent-plan.ts";
import type { ChildFacts, SpawnRequest } from "../../planning/agent-request.ts";
import { selectChildModel } from "../../planning/plan-agent.ts";
import type { LimitFacts } from "../../planning/plan-limits.ts";
import { handInPlanTool, memberTools } from "../../planning/plan-rights.ts";
import { allowsSearch, startableAgents, webSearchName } from "../../planning/plan-tools.ts";
import type { ChildMemory } from "../../tasks/child-record.ts";
import type { TaskControl, TaskManager } from "../../tasks/task-manager.ts";
import type { AgentBudget } from "../../tasks/tree-budget.ts";
import type { AgentClocks, Stopwatch } from "../../tasks/watch-run.ts";
import { toolSearchName } from "../../tools/create-tool-search.ts";
import { readSandboxSettings } from "../../tools/sandbox/sandbox-settings.ts";
import { isServed, modelLimits } from "../choose-model.ts";
import type { SystemPromptFacts } from "../gather-system-prompt.ts";
import type { ChildOutputs } from "../options/typed-output.ts";
import type { Quotes } from "../quotes/open-quotes.ts";
import type { FolderContext, ProgramParts, RuntimeContext } from "../runtime-context.ts";
import type { SessionCommands } from "../session-commands.ts";
import { defaultEffort } from "../session-rules.ts";
import type { MemberProcesses } from "../teams/create-member-processes.ts";
import type { AgentServices } from "./agent-services.ts";
import type { Capability } from "./open-agent.ts";

/** What the children of a session share with it and with each other. */
export interface ChildSession {
  readonly services: AgentServices;
  /** Reads the agents again, so that a changed file counts at the next start. */
  readonly loadRegistry: () => Promise<{ readonly discovered: Pick<DiscoveredAgents, "registry"> }>;
  readonly tasks: TaskManager;
  readonly parent: { readonly plan: AgentPlan; readonly model: Model; readonly stopwatch: Stopwatch };
  /** The conversation of the parent. */
  readonly messages: () => readonly Message[];
  readonly context: SystemPromptFacts["child"];
  readonly commands: Pick<SessionCommands, "pendingMessages">;
  /** The typed outputs that children were asked for. */
  readonly outputs: ChildOutputs;
  readonly facts: SessionFacts;
  readonly clocks: AgentClocks;
  /** Takes children also from another process that holds them. */
  readonly takeOver: boolean;
  /** Has the transcripts where nothing is kept on disk. */
  readonly memory: ChildMemory;
  /** Their locks on their transcripts. */
  readonly locks: LockGroup;
  /** Counts those that wait for a place. */
  readonly nextQueued: () => number;
  /** Carries out members of a team in processes of their own; absent where the session leads none. */
  readonly processes?: MemberProcesses;
  /** What a subagent needs that may start agents of its own. */
  readonly nest: (session: ChildSession, agent: NestingAgent) => Promise<Capability>;
  /** The agents that subagents start, in the whole session. */
  readonly nested: NestedCount;
  /** What children are expected to take. */
  readonly quotes: Quotes;
  /** Set where the parent is a subagent itself: it is asked and waited for together with its parent. */
  readonly control?: TaskControl;
  /** Set there too: shows those above that it is at work. */
  readonly showLife?: () => void;
}

/** What is found out once for all children of a session. */
export type SessionFacts = Pick<
  ChildFacts,
  | "aliases"
  | "modelLimits"
  | "subagentModel"
  | "subagentModelForced"
  | "available"
  | "servers"
  | "functions"
  | "trusted"
  | "backgroundAllowed"
  | "backgroundKeeps"
  | "effort"
  | "limits"
  | "verify"
  | "isPriced"
  | "canSearch"
  | "isServed"
  | "sandboxed"
>;

/** Counts the agents that subagents start in a session, over all its processes. */
export interface NestedCount {
  /** Why no more may be started; undefined: it is counted. */
  take(parent: AgentPlan, request: SpawnRequest): Promise<string | undefined>;
  giveBack(request: SpawnRequest): void;
  /** Numbers the starts of all agents of the session. */
  readonly nextOrder: () => number;
}

/** A subagent that may start agents of its own, while it runs. */
export interface NestingAgent {
  readonly plan: ChildPlan;
  readonly model: Model;
  readonly control: TaskControl;
  readonly stopwatch: Stopwatch;
  readonly budget: AgentBudget;
}

export function sessionFacts(
  { runtime, tools, servers }: Pick<AgentServices, "runtime" | "tools" | "servers">,
  parent: Pick<ChildSession["parent"], "plan" | "model">,
  limits: LimitFacts,
): SessionFacts {
  const { subagentModel, subagentModelForced, backgroundTasksDisabled } = runtime.variables;
  const factsOf = (chosen: ChosenModel) => knownFacts(chosen, runtime, parent);
  return {
    aliases: aliasTable({ environment: runtime.environment }),
    modelLimits: modelLimits(runtime),
    subagentModel,
    subagentModelForced: subagentModelForced === true,
    available: tools.available,
    servers: servers.servers,
    functions: programFunctions(runtime),
    trusted: runtime.trusted,
    backgroundAllowed: backgroundTasksDisabled !== true,
    backgroundKeeps: keptInBackground(runtime),
    ...defaultEffort(runtime),
    limits,
    verify: runtime.discovered.settings.settings.plain.verify,
    isPriced: (chosen) => factsOf(chosen).price !== undefined,
    canSearch: (chosen) => factsOf(chosen).supportsServerTools,
    isServed: (chosen) => isServed(runtime, chosen),
    sandboxed: readSandboxSettings(runtime.discovered.settings.settings.plain.sandbox).enabled,
  };
}

/** What is known of a model without asking any provider: as far as the catalog and settings know it. */
export function knownFacts(
  chosen: ChosenModel,
  runtime: AgentServices["runtime"],
  parent: Pick<ChildSession["parent"], "plan" | "model">,
): Pick<ModelFacts, "price" | "supportsServerTools"> {
  if (runtime.model !== undefined || isSameModel(chosen, parent.plan.chosenModel)) return parent.model.facts;
  return writtenFacts(chosen, runtime);
}

/** The price that a model is quoted at: its own, also where the offline model replaces it because there is no key. */
export function quotedPrice(
  chosen: ChosenModel,
  runtime: AgentServices["runtime"],
  parent: Pick<ChildSession["parent"], "plan" | "model">,
): ModelFacts["price"] {
  const facts = isServed(runtime, chosen)
    ? knownFacts(chosen, runtime, parent)
    : writtenFacts(chosen, runtime);
  return facts.price;
}

/** What the catalog and settings have about a model. */
function writtenFacts(
  chosen: ChosenModel,
  runtime: AgentServices["runtime"],
): Pick<ModelFacts, "price" | "supportsServerTools"> {
  const overrides = readModelOverrides(runtime.discovered.settings.settings.plain);
  if (chosen.provider !== undefined && chosen.provider !== "anthropic")
    return { ...findOverride(overrides, chosen), supportsServerTools: false };
  return lookUpModel(chosen.id, overrides.facts).facts;
}

/** The agents that a model is shown: those it can start, with the tools that each would get. */
export function listedAgents(
  registry: Pick<AgentRegistry, "list">,
  parent: AgentPlan,
  facts: SessionFacts,
): readonly AgentDefinition[] {
  const canSearch = (definition: AgentDefinition): boolean => {
    const { permissionMode: mode, source } = definition;
    const policy = childPolicy(parent.policy, {
      definition: { mode, scope: source.scope },
      projectMayWiden: mayWiden(source, facts.trusted),
    });
    if (!allowsSearch(policy)) return false;
    return facts.canSearch?.(selectChildModel({}, { ...facts, parent, definition }).model) !== false;
  };
  const definitions = registry.list().map(({ definition }) => definition);
  return startableAgents(definitions, { parent, available: facts.available, canSearch });
}

/** What children of a session keep in the background: as settings specify, else as its host does. */
export function keptInBackground({
  live,
  discovered,
}: Pick<RuntimeContext, "live" | "discovered">): readonly BackgroundRight[] {
  const { mcpTools, questions } = discovered.settings.settings.plain.backgroundAgents ?? {};
  const isHosted = live?.attendsBackground === true;
  const kept = {
    mcpTools: mcpTools ?? isHosted,
    questions: questions === undefined ? isHosted : questions === "ask",
  };
  return backgroundRights.filter((right) => kept[right]);
}

/** The functions that the program of this runtime has supplied, by name, as plans name them. */
export function programFunctions(
  runtime: ProgramParts & Pick<FolderContext, "discovered">,
): readonly ProgramFunction[] {
  const { model, extraTools, hooks, programServers, approver, canUseTool, host, discovered } = runtime;
  const ending = discovered.registry
    .list()
    .filter(({ definition }) => definition.behaviour?.onEnd !== undefined);
  return [
    ...(model === undefined ? [] : [{ kind: "model", name: model.facts.id } as const]),
    ...extraTools.map(({ name }) => ({ kind: "tool", name }) as const),
    ...hooks.map(({ event, name }) => ({ kind: "hook", name: name ?? event }) as const),
    ...[...programServers.keys()].map((name) => ({ kind: "server", name }) as const),
    ...(approver === undefined ? [] : [{ kind: "approver", name: "approver" } as const]),
    ...(canUseTool === undefined ? [] : [{ kind: "canUseTool", name: "canUseTool" } as const]),
    ...(host.ask === undefined ? [] : [{ kind: "ask", name: "host.ask" } as const]),
    ...ending.map(({ definition }) => ({ kind: "onEnd", name: definition.name }) as const),
  ];
}

/** Why this process cannot carry out a plan: functions of the program that made it, or tools, that are missing here. */
export function refusePlan(
  plan: ChildPlan,
  { runtime, tools, servers }: Pick<AgentServices, "runtime" | "tools" | "servers">,
): string | undefined {
  const here = programFunctions(runtime);
  const missing = (plan.functions ?? []).filter(
    ({ kind, name }) => !here.some((own) => own.kind === kind && own.name === name),
  );
  if (missing.length > 0) {
    const list = missing.map(({ kind, name }) => `${kind} ${JSON.stringify(name)}`).join(", ");
    return `its plan needs functions of the program that made it, which this process does not have: ${list}`;
  }
  const { switches } = runtime.discovered.settings.settings.permissions;
  if (plan.policy.mode === "bypassPermissions" && switches.disableBypassPermissionsMode === "disable")
    return "its plan bypasses permissions, which the settings do not allow here";
  const own = new Set((plan.mcpServers ?? []).flatMap((server) => (server.own ? [server.name] : [])));
  const known = new Set([
    ...tools.tools.map(({ name }) => name),
    ...tools.available.map(({ name }) => name),
    ...servers.resourceTools().map(({ name }) => name),
    "Skill",
    toolSearchName,
    webSearchName,
    ...(plan.task.team === undefined ? [] : [...memberTools, handInPlanTool]),
  ]);
  const unknown = plan.tools
    .map(({ name }) => name)
    .filter((name) => !known.has(name) && (own.size === 0 || !name.startsWith("mcp__")));
  if (unknown.length === 0) return undefined;
  return `its plan grants tools that this process does not have: ${unknown.join(", ")}`;
}
