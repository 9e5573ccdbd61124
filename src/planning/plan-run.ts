import type { MemoryPlace } from "../context/memory-place.ts";
import type { AgentDefinition } from "../definitions/agent-definition.ts";
import type { AliasTable } from "../model/model-aliases.ts";
import { type ModelLimits, refuseModel } from "../model/model-limits.ts";
import type { ChosenModel } from "../model/select-model.ts";
import { type ChildWishes, childPolicy } from "../permissions/child-policy.ts";
import type { PermissionMode } from "../permissions/permission-mode.ts";
import type { PermissionPolicy } from "../permissions/permission-policy.ts";
import type { AvailableTool } from "../tools/match-tools.ts";
import { selectChildModel } from "./child-model.ts";
import { callMode, type EarlierRun, keptGrant } from "./earlier-run.ts";
import { wantsToRunUnwatched } from "./in-background.ts";
import { memoryFacts } from "./memory-facts.ts";
import { type OwnServers, serversOfChild } from "./own-servers.ts";
import { type LimitFacts, type LimitPlan, planChildLimits, refuseAgentLimits } from "./plan-limits.ts";
import { planTools } from "./plan-tools.ts";
import type { RunPlan } from "./run-plan.ts";
import type { SkillOfSpawn, SpawnRequest } from "./spawn-request.ts";
import { maySpawn } from "./startable-agents.ts";
import { refuseSearch, type SearchFacts } from "./web-search.ts";

/** A child's run, decided completely before it starts. Plain data: it survives JSON. */
export interface ChildPlan extends RunPlan {
  readonly chosenModel: ChosenModel;
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
    /** It goes on with an earlier conversation of its own. */
    readonly resumed: boolean;
    /** It works in a working tree of its own. */
    readonly isolation?: "worktree";
    /** It starts with its parent's conversation. */
    readonly forksContext: boolean;
    /** The skill whose text is its task. */
    readonly skill?: SkillOfSpawn;
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
  /** Every tool of the session; which of them the parent has stands in its plan. */
  readonly available: readonly AvailableTool[];
  /** The MCP servers of the session; absent means those that the parent has something of. */
  readonly servers?: readonly { readonly name: string }[];
  /** What comes from MCP servers of the definition itself; they take the place of the session's of the same name. */
  readonly own?: OwnServers;
  readonly system: readonly string[];
  /** Where the agent's memory is; without it, its `memory` adds nothing. */
  readonly memory?: MemoryPlace;
  /** What was already found not to count. */
  readonly notes?: readonly string[];
  /** The names of the skills whose text stands in `system`. */
  readonly skills?: readonly string[];
  /** What was decided for the child before, when it is resumed. */
  readonly earlier?: Pick<EarlierRun, "tools" | "mode">;
  readonly trusted: boolean;
  readonly backgroundAllowed: boolean;
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
  const { definition, parent } = facts;
  const refusal = refuseSpawn(request, facts);
  if (refusal !== undefined) return { type: "refused", reason: refusal };
  const wantsBackground = wantsToRunUnwatched(request, definition);
  const background = wantsBackground && facts.backgroundAllowed;
  const memory = memoryFacts(definition, facts.memory);
  const selection = selectChildModel(request, facts);
  const wishes: ChildWishes = {
    ...callMode(request, facts.earlier),
    definition: { mode: definition.permissionMode, scope: definition.source.scope },
    projectMayWiden: facts.trusted,
    background,
  };
  const search: SearchFacts = {
    policy: withSkill(childPolicy(parent.policy, wishes), request.skill),
    model: selection.model.id,
    canSearch: facts.canSearch?.(selection.model) !== false,
  };
  const tools = planTools({
    ...facts,
    definition: memory.definition,
    skillDeny: request.skill?.deny ?? [],
    refuse: (tool) => refuseSearch(tool, search),
    background,
  });
  const grant = keptGrant(tools.grant, request, facts.earlier);
  if (grant.type === "refused") return { type: "refused", reason: grant.reason };
  const denied = refuseModel(selection.model, facts.modelLimits ?? {}, facts.aliases);
  if (denied !== undefined) return { type: "refused", reason: denied };
  const policy = childPolicy(parent.policy, {
    ...wishes,
    tools: {
      anchor: parent.directory,
      tools: grant.tools,
      ...memory.scope,
      ...grant.exclusions,
    },
  });
  const limits = planChildLimits({ ...request, background }, definition, { facts: facts.limits, parent });
  return {
    type: "planned",
    plan: {
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
      tools: grant.tools,
      spawn: "none",
      policy: withSkill(policy, request.skill),
      modeFrom: modeOrigin(policy.mode, parent.policy.mode, wishes),
      system: facts.system,
      maxTurns: decideTurns(request, definition),
      ...limits,
      ...decideEffort(request, definition),
      ...(definition.criticalSystemReminder_EXPERIMENTAL === undefined
        ? {}
        : { reminder: definition.criticalSystemReminder_EXPERIMENTAL }),
      ...memory.plan,
      ...(facts.skills === undefined || facts.skills.length === 0 ? {} : { skills: facts.skills }),
      ...(background ? {} : serversOfChild(facts, tools.available, grant.tools)),
      directory: parent.directory,
      notes: [
        ...(facts.notes ?? []),
        ...tools.notes,
        ...(wantsBackground && !background
          ? ["Background work is switched off; it ran in the foreground."]
          : []),
        ...priceNotes(selection.model, limits, facts),
        ...selection.unclear.map(
          ({ written, why }) => `The model ${JSON.stringify(written)} does not count: ${why}.`,
        ),
        // The parent reads these beside the result; what is only worth knowing is said where files are checked.
        ...grant.notes.flatMap(({ severity, message }) => (severity === "note" ? [] : [message])),
      ],
      task: describeTask(request, facts, background),
    },
  };
}

/** A skill's own rules stand beside the parent's; deny and ask rules of the parent go before what it allows. */
function withSkill(policy: PermissionPolicy, skill: SkillOfSpawn | undefined): PermissionPolicy {
  if (skill === undefined) return policy;
  return { ...policy, allow: [...policy.allow, ...skill.allow], deny: [...policy.deny, ...skill.deny] };
}

/** A hard rule, not a depth limit: what was started by an agent starts none. */
function refuseSpawn(request: SpawnRequest, { definition, parent }: SpawnFacts): string | undefined {
  if ("task" in parent) return "An agent that was started by another cannot start agents.";
  const { spawn } = parent;
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

function modeOrigin(mode: PermissionMode, parent: PermissionMode, { call }: ChildWishes): string {
  if (mode === parent) return "the parent";
  return call?.mode === mode ? "the call" : "the definition";
}

/** A ceiling of money cannot be kept for a model nobody knows the price of. */
function priceNotes(
  model: ChosenModel,
  plan: LimitPlan,
  { isPriced, limits }: SpawnFacts,
): readonly string[] {
  const isLimited = (plan.limits?.cost ?? plan.treeLimits?.cost) !== undefined;
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
