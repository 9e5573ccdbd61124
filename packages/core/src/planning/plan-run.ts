import type { AgentDefinition } from "@retinue/config/agents/agent-definition.ts";
import type { MemoryPlace } from "@retinue/config/instructions/memory-place.ts";
import {
  type AliasTable,
  type ChosenModel,
  type ModelLimits,
  refuseModel,
} from "@retinue/config/models/select-subagent-model.ts";
import type { AvailableTool } from "@retinue/config/tools/match-tools.ts";
import type { PermissionMode, PolicyRule } from "@retinue/gate/permission-policy.ts";
import { parseRule } from "@retinue/gate/rules/parse-rule.ts";
import { inWorktree, type WorktreePlace } from "./in-worktree.ts";
import { type LimitFacts, type LimitPlan, planChildLimits, refuseAgentLimits } from "./limit-plan.ts";
import { type ServerInstructions, withServerInstructions } from "./plan-session.ts";
import { maySpawn, type OwnServers, type RunPlan, serversOfChild } from "./plan-tools.ts";
import {
  type EarlierRun,
  membershipText,
  type PlannedRights,
  planRights,
  policyForMembers,
  type SkillOfSpawn,
  type SpawnRequest,
  selectChildModel,
  type TeamMembership,
  wantsToRunUnwatched,
  withSkill,
} from "./spawn-request.ts";

/** The definition that a child was decided from, without its prompt, which is in `system`, and without its functions. */
export type PlannedDefinition = Omit<AgentDefinition, "prompt" | "behaviour" | "written">;

/** A function of the program that started a child, by name; only a process that has it can carry out the plan. */
export interface ProgramFunction {
  readonly kind: "tool" | "hook" | "server" | "model" | "approver" | "canUseTool" | "ask" | "onEnd";
  readonly name: string;
}

/** A child's run, decided completely before it starts. Plain data: it survives JSON. */
export interface ChildPlan extends RunPlan {
  readonly chosenModel: ChosenModel;
  readonly definition: PlannedDefinition;
  /** Where its session works; another folder than `directory` for a child in a working tree of its own. */
  readonly sessionDirectory: string;
  /** Absent: it needs nothing but its plan, the journal and the disk. */
  readonly functions?: readonly ProgramFunction[];
  /** The transcript whose conversation it continues, and how many messages of it; absent: all, or nothing to continue. */
  readonly history?: { readonly transcript: string; readonly messages?: number };
  /** What was said too and did not count, because something stronger was said. */
  readonly overrode: readonly Overridden[];
  readonly task: {
    readonly agentType: string;
    readonly description: string;
    readonly prompt: string;
    readonly background: boolean;
    readonly parentId: string;
    readonly callId?: string;
    readonly name?: string;
    /** It continues an earlier conversation of its own. */
    readonly resumed: boolean;
    /** It works in a working tree of its own. */
    readonly isolation?: "worktree";
    /** It starts with its parent's conversation. */
    readonly forksContext: boolean;
    /** The skill whose text is its task. */
    readonly skill?: SkillOfSpawn;
    /** It is a teammate: idle after its work, until mail wakes it. */
    readonly team?: TeamMembership;
  };
}

export interface Overridden {
  readonly field: "model" | "maxTurns" | "effort" | "permissionMode";
  readonly value: string;
  readonly from: string;
}

/** What was found out before planning a child. */
export interface SpawnFacts {
  readonly definition: AgentDefinition;
  readonly agentId: string;
  readonly parent: RunPlan;
  readonly parentModel: ChosenModel;
  readonly aliases: AliasTable;
  /** What settings say about models; absent limits nothing. */
  readonly modelLimits?: ModelLimits;
  /** CLAUDE_CODE_SUBAGENT_MODEL and its FORCE. */
  readonly subagentModel?: string;
  readonly subagentModelForced?: boolean;
  /** Every tool of the session; which of them the parent has is in its plan. */
  readonly available: readonly AvailableTool[];
  /** The MCP servers of the session; absent means those that the parent has something of. */
  readonly servers?: readonly { readonly name: string }[];
  /** What comes from MCP servers of the definition itself; they take the place of the session's of the same name. */
  readonly own?: OwnServers;
  /** What the servers that it could have say about their tools. */
  readonly serverInstructions?: readonly ServerInstructions[];
  readonly system: readonly string[];
  /** The working tree that was made for it. */
  readonly worktree?: WorktreePlace;
  /** What people have allowed in this session so far, and what they have granted this child before it starts. */
  readonly approved?: readonly PolicyRule[];
  readonly preapproved?: readonly string[];
  /** Functions of the program that started the session; the plan names those that the child can reach. */
  readonly functions?: readonly ProgramFunction[];
  /** The transcripts it may continue, and how many messages its parent has; asked for only where it continues one. */
  readonly transcripts?: {
    readonly own: () => string;
    readonly parent: string;
    readonly messages: () => number;
  };
  /** Where the agent's memory is; without it, its `memory` adds nothing. */
  readonly memory?: MemoryPlace;
  /** What was already found not to count. */
  readonly notes?: readonly string[];
  /** The names of the skills whose text is in `system`. */
  readonly skills?: readonly string[];
  /** What was decided for the child before, when it is resumed. */
  readonly earlier?: Pick<EarlierRun, "tools" | "mode">;
  readonly trusted: boolean;
  readonly backgroundAllowed: boolean;
  /** Somebody answers for children in the background too. */
  readonly backgroundAttended?: boolean;
  readonly limits?: LimitFacts;
  /** Whether what a model costs is known; absent means it is. */
  readonly isPriced?: (model: ChosenModel) => boolean;
  /** Whether a model's provider searches the web itself; absent means it does. */
  readonly canSearch?: (model: ChosenModel) => boolean;
  /** Whether a provider is configured for a model; absent means it is. */
  readonly isServed?: (model: ChosenModel) => boolean;
}

export type ChildPlanned =
  | { readonly type: "planned"; readonly plan: ChildPlan }
  | { readonly type: "refused"; readonly reason: string };

/** Unless the call or the definition says otherwise. */
const defaultTurns = 50;

/** Decides a child completely, or says why there can be none. Pure. */
export function planRun(request: SpawnRequest, facts: SpawnFacts): ChildPlanned {
  const refusal = refuseSpawn(request, facts);
  if (refusal !== undefined) return { type: "refused", reason: refusal };
  const wantsBackground = wantsToRunUnwatched(request, facts.definition);
  const background = wantsBackground && facts.backgroundAllowed;
  const selection = selectChildModel(request, facts);
  const rights = planRights(request, facts, { background, model: selection.model });
  if (rights.type === "refused") return rights;
  const denied = refuseModel(selection.model, facts.modelLimits ?? {}, facts.aliases);
  if (denied !== undefined) return { type: "refused", reason: denied };
  const plan = assemble({ request, facts, background, selection, rights });
  const backgroundNotes =
    wantsBackground && !background ? ["Background work is switched off; it ran in the foreground."] : [];
  const notes = [
    ...(facts.notes ?? []),
    ...rights.serverNotes,
    ...backgroundNotes,
    ...priceNotes(selection.model, plan, facts),
    ...selection.unclear.map(
      ({ written, why }) => `The model ${JSON.stringify(written)} does not count: ${why}.`,
    ),
    ...rights.notes,
  ];
  const placed = withApprovals(inWorktree({ ...plan, notes }, facts.worktree), facts);
  return { type: "planned", plan: withServerInstructions(placed, facts.serverInstructions ?? []) };
}

interface Decisions {
  readonly request: SpawnRequest;
  readonly facts: SpawnFacts;
  readonly background: boolean;
  readonly selection: ReturnType<typeof selectChildModel>;
  readonly rights: PlannedRights;
}

function assemble({ request, facts, background, selection, rights }: Decisions): Omit<ChildPlan, "notes"> {
  const { definition, parent } = facts;
  const { policy, tools, memory } = rights;
  const reminder = definition.criticalSystemReminder_EXPERIMENTAL;
  const servers = background ? {} : serversOfChild(facts, rights.available, tools);
  const task = { ...describeTask(request, facts, background), ...membershipOf(request, facts, policy.mode) };
  return {
    sessionId: parent.sessionId,
    agent: { id: facts.agentId, name: definition.name },
    model: { value: selection.model.id, from: selection.from },
    chosenModel: selection.model,
    overrode: [
      ...selection.overrode.map(({ written, origin }) => ({
        field: "model" as const,
        value: written,
        from: origin,
      })),
      ...listOverridden(request, definition, policy.mode),
    ],
    tools,
    spawn: "none",
    policy: withSkill(policy, request.skill),
    modeFrom: rights.modeFrom,
    system: task.team === undefined ? facts.system : [...facts.system, membershipText(task.team)],
    maxTurns: decideTurns(request, definition),
    ...planChildLimits({ ...request, background }, definition, { facts: facts.limits, parent }),
    ...decideEffort(request, definition),
    ...(reminder === undefined ? {} : { reminder }),
    ...memory,
    ...(facts.skills === undefined || facts.skills.length === 0 ? {} : { skills: facts.skills }),
    ...servers,
    directory: parent.directory,
    sessionDirectory: parent.directory,
    definition: plannedDefinition(definition),
    ...requiredFunctions(facts, { background, tools, ...servers }),
    ...historyOf(task, facts),
    task,
  };
}

export function plannedDefinition({
  prompt: _prompt,
  behaviour: _behaviour,
  written: _written,
  ...definition
}: AgentDefinition): PlannedDefinition {
  return definition;
}

/** Those functions of the program that this child can reach; no one is asked for one in the background. */
function requiredFunctions(
  { functions = [], definition }: SpawnFacts,
  plan: Pick<ChildPlan, "tools" | "mcpServers"> & { readonly background: boolean },
): Pick<ChildPlan, "functions"> {
  const granted = new Set(plan.tools.map(({ name }) => name));
  const servers = new Set((plan.mcpServers ?? []).map(({ name }) => name));
  const asking: ReadonlySet<string> = new Set(["approver", "canUseTool", "ask"]);
  const reached = functions.filter(({ kind, name }) => {
    if (kind === "tool") return granted.has(name);
    if (kind === "server") return servers.has(name);
    if (kind === "onEnd") return name === definition.name && definition.behaviour?.onEnd !== undefined;
    return !(plan.background && asking.has(kind));
  });
  return reached.length === 0 ? {} : { functions: reached };
}

function historyOf(
  { resumed, forksContext }: ChildPlan["task"],
  { transcripts }: SpawnFacts,
): Pick<ChildPlan, "history"> {
  if (transcripts === undefined) return {};
  if (resumed) return { history: { transcript: transcripts.own() } };
  if (!forksContext) return {};
  return { history: { transcript: transcripts.parent, messages: transcripts.messages() } };
}

/** Grants of people hold as they are, where the child works. */
function withApprovals(plan: ChildPlan, { approved = [], preapproved = [] }: SpawnFacts): ChildPlan {
  const granted = preapproved.flatMap((text) => {
    const reading = parseRule(text, { list: "allow" });
    return reading.type === "rule"
      ? [{ rule: reading.rule, anchor: plan.directory, from: "what was granted before it started" }]
      : [];
  });
  if (approved.length + granted.length === 0) return plan;
  return { ...plan, policy: { ...plan.policy, allow: [...plan.policy.allow, ...approved, ...granted] } };
}

/** A hard rule, not a depth limit: what was started by an agent starts none. */
function refuseSpawn(request: SpawnRequest, { definition, parent }: SpawnFacts): string | undefined {
  if ("task" in parent) return "An agent that was started by another cannot start agents.";
  const spawn = request.origin === "program" ? (parent.programSpawn ?? parent.spawn) : parent.spawn;
  if (spawn === "none") return "This agent may not start others; its definition does not list Agent.";
  if (spawn !== "any" && !maySpawn(spawn, definition)) {
    const id = definition.source.id ?? definition.name;
    return `This agent may only start ${spawn.only.join(", ")}, not ${id}.`;
  }
  const limits = refuseAgentLimits(request.limits, "limits");
  if (limits !== undefined) return limits;
  const isolation = isolationOf(request, definition);
  if (isolation === undefined || isolation === "worktree") return undefined;
  return `There is no isolation ${JSON.stringify(isolation)}, and running without it would not be what was asked for; "worktree" is the one there is.`;
}

/** A ceiling of money cannot be kept for a model no one knows the price of. */
function priceNotes(
  model: ChosenModel,
  plan: LimitPlan,
  { isPriced, limits }: SpawnFacts,
): readonly string[] {
  const isLimited = (plan.limits?.costUsd ?? plan.treeLimits?.costUsd) !== undefined;
  if (!isLimited || isPriced?.(model) !== false) return [];
  const effect =
    limits?.settings?.unknownPrice === "refuse"
      ? "its calls are refused"
      : "its calls are not counted in money";
  return [`The price of ${model.id} is not known, so ${effect}.`];
}

function isolationOf(request: SpawnRequest, definition: AgentDefinition): string | undefined {
  return request.isolation ?? definition.isolation;
}

/** The call is heard before the definition; a mode of either counts only where it does not widen. */
function listOverridden(
  request: SpawnRequest,
  definition: AgentDefinition,
  mode: PermissionMode,
): readonly Overridden[] {
  const beaten = (field: "maxTurns" | "effort"): readonly Overridden[] =>
    request[field] === undefined || definition[field] === undefined
      ? []
      : [{ field, value: String(definition[field]), from: "the definition" }];
  const modes = [
    [request.mode, "the call"],
    [definition.permissionMode, "the definition"],
  ] as const;
  const unheard = modes.flatMap(([value, from]): readonly Overridden[] =>
    value === undefined || value === mode ? [] : [{ field: "permissionMode", value, from }],
  );
  return [...beaten("maxTurns"), ...beaten("effort"), ...unheard];
}

function decideTurns(request: SpawnRequest, definition: AgentDefinition) {
  if (request.maxTurns !== undefined) return { value: request.maxTurns, from: "the call" };
  if (definition.maxTurns !== undefined) return { value: definition.maxTurns, from: "the definition" };
  return { value: defaultTurns, from: "the default" };
}

function decideEffort(request: SpawnRequest, definition: AgentDefinition): Pick<RunPlan, "effort"> {
  if (request.effort !== undefined) return { effort: { value: request.effort, from: "the call" } };
  if (definition.effort !== undefined)
    return { effort: { value: definition.effort, from: "the definition" } };
  return {};
}

/** A member that plans first gets the mode of its parent when its plan is approved, never a wider one. */
function membershipOf(
  { team }: SpawnRequest,
  { parent }: SpawnFacts,
  mode: PermissionMode,
): Pick<ChildPlan["task"], "team"> {
  if (team === undefined) return {};
  const isPlanning = mode === "plan" && parent.policy.mode !== "plan";
  return { team: isPlanning ? { ...team, approvedMode: policyForMembers(parent.policy).mode } : team };
}

function describeTask(
  request: SpawnRequest,
  { definition, parent }: SpawnFacts,
  background: boolean,
): ChildPlan["task"] {
  return {
    agentType: definition.source.id ?? definition.name,
    description: request.description,
    prompt: request.prompt,
    background,
    parentId: parent.agent.id,
    ...(request.callId === undefined ? {} : { callId: request.callId }),
    ...(request.name === undefined ? {} : { name: request.name }),
    resumed: request.resume !== undefined,
    ...(isolationOf(request, definition) === "worktree" ? { isolation: "worktree" } : {}),
    forksContext: definition.forkContext === true,
    ...(request.skill === undefined ? {} : { skill: request.skill }),
  };
}
