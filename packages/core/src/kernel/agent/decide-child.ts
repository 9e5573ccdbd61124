import {
  type AgentDefinition,
  type AgentRegistry,
  mayWiden,
} from "@retinue/config/agents/agent-definition.ts";
import { aliasTable, type ChosenModel } from "@retinue/config/models/select-subagent-model.ts";
import { childPolicy } from "@retinue/gate/build-policy.ts";
import type { Message, UserMessage } from "../../conversation/message.ts";
import type { RunEvent } from "../../conversation/run-event.ts";
import type { SessionFiles } from "../../journal/session-files.ts";
import { findOverride, lookUpModel, readModelOverrides } from "../../models/look-up-model.ts";
import type { Model, ModelFacts } from "../../models/model.ts";
import type { LimitFacts } from "../../planning/limit-plan.ts";
import {
  type ChildPlan,
  type ChildPlanned,
  type PlannedDefinition,
  planRun,
  type SpawnFacts,
} from "../../planning/plan-run.ts";
import { allowsSearch, type RunPlan, startableAgents } from "../../planning/plan-tools.ts";
import {
  type EarlierRun,
  runsInBackground,
  type SpawnRequest,
  selectChildModel,
  withEarlier,
  withModel,
} from "../../planning/spawn-request.ts";
import type { ChildRecord } from "../../tasks/child-record.ts";
import { unknownType } from "../../tasks/create-agent-tool.ts";
import type { OpenedAgent } from "../../tasks/create-local-executor.ts";
import type {
  ChildClocks,
  Executor,
  KeptWorktree,
  OpenChildOptions,
  RefusedChild,
  TaskControl,
} from "../../tasks/task-manager.ts";
import { refuseUnpaid, type TreeBudget } from "../../tasks/tree-budget.ts";
import { isServed, modelLimits } from "../gather-session.ts";
import type { ChildContext } from "../gather-system-prompt.ts";
import type { RuntimeContext } from "../runtime-context.ts";
import type { ChildServers, ConnectChildOptions } from "../servers/session-servers.ts";
import type { AgentServices } from "./equip-agent.ts";
import { programFunctions } from "./program-functions.ts";

/** Facts about the session that planning any of its children needs. */
type SessionSpawnFacts = Omit<
  SpawnFacts,
  | "definition"
  | "agentId"
  | "parent"
  | "own"
  | "serverInstructions"
  | "system"
  | "worktree"
  | "approved"
  | "preapproved"
  | "transcripts"
  | "memory"
  | "notes"
  | "skills"
  | "earlier"
>;

/** What a child is made from: facts are read, a plan is decided, and what the plan names is made. */
export interface ChildSourceParts {
  readonly facts: SessionSpawnFacts;
  /** The plan of the parent as it is now, and its conversation. */
  readonly parent: () => RunPlan;
  readonly messages: () => readonly Message[];
  /** Reads the agents again, so that a changed file counts at the next start. */
  readonly look: () => Promise<{ readonly discovered: { readonly registry: AgentRegistry } }>;
  /** What an earlier child was, by its id. */
  readonly recall: (agentId: string) => Promise<RecalledChild | undefined>;
  readonly gather: (definition: AgentDefinition) => Promise<ChildContext>;
  /** Absent where nothing is kept. */
  readonly files?: Pick<SessionFiles, "agent" | "transcript">;
  readonly approved?: (agentId: string) => NonNullable<SpawnFacts["approved"]>;
  /** Connects the servers of a definition; without `starts` it only says which there would be. */
  readonly servers?: (definition: PlannedDefinition, options: ConnectChildOptions) => Promise<ChildServers>;
  readonly model: (chosen: ChosenModel) => Promise<Model>;
  /** Carries children out elsewhere than in this process. */
  readonly wrapExecutor?: (local: Executor) => Executor;
  /** Makes a working tree for a child, or takes the one it has; never falls back to the shared one. */
  readonly worktree: (
    child: Pick<ChildPlan, "agent" | "task" | "sessionDirectory">,
    options: { readonly signal: AbortSignal },
  ) => Promise<MadeWorktree | RefusedChild>;
  /** Asks an attended caller once for what a child in the background will need. */
  readonly preapprove?: (sketch: ChildPlan) => Promise<readonly string[]>;
  /** Before a child is resumed: settles how its last run ended, where its process died. */
  readonly recover?: (agentId: string, definition: PlannedDefinition) => Promise<void>;
  readonly openRecord: (plan: ChildPlan) => Promise<ChildRecord>;
  /** The messages of a transcript that a plan refers to. */
  readonly loadHistory?: (history: NonNullable<ChildPlan["history"]>) => Promise<readonly Message[]>;
  readonly openAgent: (
    plan: ChildPlan,
    own: {
      readonly model: Model;
      readonly control: TaskControl;
      readonly servers: ChildServers | undefined;
      readonly transcript: string;
    },
  ) => Promise<OpenedAgent>;
  /** What a resumed child should know of what it had left running. */
  readonly news?: (agentId: string, wasReported: (taskId: string) => boolean) => readonly UserMessage[];
  readonly newAgentId: () => string;
  /** What all agents of the session may take together; absent limits nothing. */
  readonly budget?: TreeBudget;
  /** Absent: no clock ends a child. */
  readonly clocks?: ChildClocks;
  /** Called once when a child has ended: lets go of what it held. */
  readonly release: (agentId: string) => Promise<void>;
  /** Why this process cannot carry out a plan that another made. */
  readonly refuse?: (plan: ChildPlan) => string | undefined;
  /** Shows the person what went wrong beside the work. */
  readonly report?: ((message: string) => void) | undefined;
  /** Carries out members of a team in processes of their own. */
  readonly processes?: MemberProcesses;
}

export interface MemberProcesses {
  readonly refuse: (plan: ChildPlan) => string | undefined;
  readonly run: (plan: ChildPlan, control: TaskControl, signal: AbortSignal) => AsyncIterable<RunEvent>;
  readonly outputFile: (agentId: string) => string;
}

interface RecalledChild {
  readonly agentType: string;
  readonly model?: ChosenModel;
  readonly earlier?: EarlierRun;
}

export interface MadeWorktree {
  readonly type: "made";
  readonly place: NonNullable<SpawnFacts["worktree"]>;
  /** The child is on disk now, so that another process that finds this one dead knows whose place it is. */
  readonly begun: () => void;
  readonly finish: () => Promise<KeptWorktree | undefined>;
}

/** What was made for one child alone, and must be given back. */
export interface Held {
  servers?: ChildServers | undefined;
  worktree?: MadeWorktree;
  model?: Model;
}

/** A request with everything that was read for it; what has to be made is added before the plan is decided. */
interface Gathered {
  readonly request: SpawnRequest;
  readonly definition: AgentDefinition;
  readonly background: boolean;
  readonly context: ChildContext;
  readonly facts: SpawnFacts;
}

interface DecidedChild {
  readonly type: "decided";
  readonly plan: ChildPlan;
  readonly definition: AgentDefinition;
}

export interface Opening {
  readonly parts: ChildSourceParts;
  readonly held: Held;
  readonly options: OpenChildOptions;
}

/** Reads what the request names: the earlier run, the definition, its memory, skills and prompt. Makes nothing. */
export async function gather(asked: SpawnRequest, parts: ChildSourceParts): Promise<Gathered | RefusedChild> {
  const recalled = asked.resume === undefined ? undefined : await parts.recall(asked.resume);
  if (asked.resume !== undefined && recalled === undefined)
    return refused(`There is no agent ${asked.resume} that could be resumed.`);
  const found = (await parts.look()).discovered.registry.find(
    recalled?.agentType ?? asked.agentType ?? "general-purpose",
  );
  const parent = parts.parent();
  if (found.type === "unknown") return refused(unknownType(asked, found, parent.spawn));
  if (found.type === "denied")
    return refused(`The agent ${found.agent.id} is denied by the rule ${found.rule}.`);
  const { definition } = found.agent;
  const earlier = recalled?.earlier;
  const context = await parts.gather(definition);
  const agentId = asked.resume ?? asked.agentId ?? parts.newAgentId();
  const { memory, skills } = context;
  const { files } = parts;
  return {
    request: withEarlier(withModel(asked, recalled?.model), earlier),
    definition,
    background: runsInBackground(asked, { ...parts.facts, definition }),
    context,
    facts: {
      ...parts.facts,
      definition,
      agentId,
      parent,
      system: await context.system(asked),
      approved: parts.approved?.(agentId) ?? [],
      ...(files === undefined
        ? {}
        : {
            transcripts: {
              own: () => files.agent(agentId).transcript,
              parent: files.transcript,
              messages: () => parts.messages().length,
            },
          }),
      ...(memory?.place === undefined ? {} : { memory: memory.place }),
      ...(skills === undefined ? {} : { skills: skills.names }),
      ...(earlier === undefined ? {} : { earlier }),
      notes: [...(memory?.diagnostics.map(({ message }) => message) ?? []), ...(skills?.notes ?? [])],
    },
  };
}

export function planWith(
  { request, facts }: Gathered,
  servers: ChildServers | undefined,
  made: Pick<SpawnFacts, "worktree" | "preapproved"> & Partial<Pick<SpawnFacts, "system">> = {},
): ChildPlanned {
  const planned = planRun(request, {
    ...facts,
    ...made,
    ...(servers === undefined ? {} : { own: servers.own, serverInstructions: servers.instructions ?? [] }),
    notes: [...(facts.notes ?? []), ...(servers?.notes ?? [])],
  });
  if (planned.type === "planned") return planned;
  return refused([planned.reason, ...(servers?.notes ?? [])].join(" "));
}

/** Everything that has to be made or asked comes before the plan, so that the plan is final. */
export async function decideChild(
  asked: SpawnRequest,
  opening: Opening,
): Promise<DecidedChild | RefusedChild> {
  const { parts, held, options } = opening;
  const gathered = await gather(asked, parts);
  if ("type" in gathered) return gathered;
  const { definition, background } = gathered;
  const made = await makeFacts(gathered, opening);
  if ("type" in made) return made;
  const directory = held.worktree === undefined ? {} : { directory: held.worktree.place.directory };
  const { signal } = options;
  held.servers = await parts.servers?.(definition, { background, starts: true, signal, ...directory });
  const planned = planWith(gathered, held.servers, made);
  if (planned.type === "refused") return planned;
  for (const note of gathered.context.skills?.notes ?? []) parts.report?.(note);
  return { type: "decided", plan: planned.plan, definition };
}

type MadeFacts = Pick<SpawnFacts, "worktree" | "preapproved"> & Partial<Pick<SpawnFacts, "system">>;

/** A working tree and grants of a person are for a certain child, so a first plan says whether it can be had at all. */
async function makeFacts(gathered: Gathered, opening: Opening): Promise<MadeFacts | RefusedChild> {
  const { parts, held, options } = opening;
  const { request, definition, background, context } = gathered;
  const isIsolated = (request.isolation ?? definition.isolation) !== undefined;
  const isAsked = background && parts.preapprove !== undefined;
  if (!isIsolated && !isAsked) return {};
  const { signal } = options;
  const known = await parts.servers?.(definition, { background, starts: false, signal });
  const sketch = planWith(gathered, known);
  if (sketch.type === "refused") return sketch;
  const unable = await prepareModel(sketch.plan, opening);
  if (unable !== undefined) return unable;
  let made: MadeFacts = {};
  if (sketch.plan.task.isolation !== undefined) {
    const worktree = await parts.worktree(sketch.plan, { signal });
    if (worktree.type === "refused") return worktree;
    held.worktree = worktree;
    const { place } = worktree;
    made = { worktree: place, system: await context.system(request, place.directory) };
  }
  // A person who does not answer, or an approver that fails, grants nothing; the child starts all the same.
  const granted = isAsked ? await parts.preapprove?.(sketch.plan).catch(() => []) : undefined;
  return { ...made, ...(granted === undefined ? {} : { preapproved: granted }) };
}

/** No place, no model or no money is a reason not to start at all. */
export async function prepareModel(
  plan: ChildPlan,
  { parts, held, options }: Opening,
): Promise<RefusedChild | undefined> {
  const full = options.refusal(plan.task.background);
  if (full !== undefined) return refused(full);
  held.model ??= await parts.model(plan.chosenModel);
  const unpaid = refuseUnpaid(plan, held.model, parts.budget);
  return unpaid === undefined ? undefined : refused(unpaid);
}

export function refused(reason: string): RefusedChild {
  return { type: "refused", reason };
}

/** Everything that planning a child asks about the session. */
export function spawnFacts({
  services,
  parent,
  limitFacts,
}: {
  readonly services: Pick<AgentServices, "runtime" | "tools" | "servers">;
  readonly parent: { readonly model: Model; readonly chosenModel: ChosenModel };
  readonly limitFacts: LimitFacts;
}): SessionSpawnFacts {
  const { runtime, tools, servers } = services;
  const { variables: options } = runtime;
  return {
    aliases: aliasTable({ environment: runtime.environment }),
    modelLimits: modelLimits(runtime),
    ...(options.subagentModel === undefined ? {} : { subagentModel: options.subagentModel }),
    subagentModelForced: options.subagentModelForced === true,
    available: tools.available,
    servers: servers.servers,
    functions: programFunctions(runtime),
    trusted: runtime.trusted,
    backgroundAllowed: options.backgroundTasksDisabled !== true,
    ...(runtime.live?.attendsBackground === true ? { backgroundAttended: true } : {}),
    parentModel: parent.chosenModel,
    limits: limitFacts,
    isPriced: (chosen) => knownFacts(chosen, runtime, parent).price !== undefined,
    canSearch: (chosen) => knownFacts(chosen, runtime, parent).supportsServerTools,
    isServed: (chosen) => isServed(runtime, chosen),
  };
}

/** Without asking any provider: as far as the catalog and settings know it. */
function knownFacts(
  chosen: ChosenModel,
  runtime: RuntimeContext,
  parent: { readonly model: Model; readonly chosenModel: ChosenModel },
): Pick<ModelFacts, "price" | "supportsServerTools"> {
  const isParents = chosen.id === parent.chosenModel.id && chosen.provider === parent.chosenModel.provider;
  if (isParents || runtime.model !== undefined) return parent.model.facts;
  const overrides = readModelOverrides(runtime.discovered.settings.settings.plain);
  if (chosen.provider !== undefined && chosen.provider !== "anthropic")
    return { ...findOverride(overrides, chosen), supportsServerTools: false };
  return lookUpModel(chosen.id, overrides.facts).facts;
}

/** The agents that a model is shown: those it can start, with the tools that each would get. */
export function listedAgents(
  registry: Pick<AgentRegistry, "list">,
  parent: RunPlan,
  facts: SessionSpawnFacts,
): readonly AgentDefinition[] {
  const canSearch = (definition: AgentDefinition): boolean => {
    const { permissionMode: mode, source } = definition;
    const wishes = {
      definition: { mode, scope: source.scope },
      projectMayWiden: mayWiden(source, facts.trusted),
    };
    if (!allowsSearch(childPolicy(parent.policy, wishes))) return false;
    return facts.canSearch?.(selectChildModel({}, { ...facts, definition }).model) !== false;
  };
  const definitions = registry.list().map(({ definition }) => definition);
  return startableAgents(definitions, { parent, available: facts.available, canSearch });
}
