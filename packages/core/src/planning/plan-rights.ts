import { canonicalToolName } from "@retinue/base/foundation/tool-table.ts";
import type { AgentDefinition } from "@retinue/config/agents/agent-definition.ts";
import { mayWiden } from "@retinue/config/agents/agent-source.ts";
import type { ChosenModel } from "@retinue/config/models/select-subagent-model.ts";
import type { AvailableTool } from "@retinue/config/tools/match-tools.ts";
import { parseToolEntry } from "@retinue/config/tools/tool-entry.ts";
import type { GrantedTool, SpawnRule, ToolGrant } from "@retinue/config/tools/tool-grants.ts";
import { buildPolicy, childPolicy, isNoWider, type RequestedRights } from "@retinue/gate/build-policy.ts";
import { isUnavailableInBackground, type PermissionPolicy } from "@retinue/gate/permission-policy.ts";
import { type AgentPlan, type ChildPlan, levelOf } from "./agent-plan.ts";
import type {
  AgentFacts,
  AgentRequest,
  ChildFacts,
  EarlierRun,
  MainFacts,
  Refusal,
} from "./agent-request.ts";
import { decideMode } from "./decide-mode.ts";
import { builtinNames, chooseTools, planTools, type ToolsAbove, whyNoSearch } from "./plan-tools.ts";
import { serversOfChild, serversOfRun } from "./servers-of-run.ts";

export interface PlannedRights
  extends Pick<AgentPlan, "policy" | "modeFrom" | "tools" | "spawn" | "directory">,
    Partial<Pick<AgentPlan, "programSpawn" | "sessionTools" | "mcpServers">> {
  readonly type: "granted";
  readonly serverNotes: readonly string[];
  readonly toolNotes: readonly string[];
}

/** The tools it gets, the servers they come from, and the policy they are used under; never wider than what its parent has. */
export function planRights(
  request: AgentRequest,
  facts: AgentFacts,
  {
    background,
    selection,
  }: {
    readonly background: boolean;
    readonly selection: { readonly id: string; readonly model: ChosenModel };
  },
): PlannedRights | Refusal {
  const definition: Partial<AgentDefinition> = facts.definition ?? {};
  const child = facts.parent === undefined ? undefined : facts;
  const base =
    facts.parent === undefined ? mainRights(request, facts) : childRights(request, facts, background);
  if (base.type === "refused") return base;
  const canSearch = facts.canSearch?.(selection.model) !== false;
  const noSearch = whyNoSearch(base.policy, { model: selection.id, canSearch });
  const isNested = child?.parent.task !== undefined;
  // An agent whose memory is off has no tools for it.
  const { memory, ...withoutMemory } = definition;
  const toolsWithin = (above: ToolsAbove) =>
    planTools({
      above,
      definition:
        facts.memory === undefined ? withoutMemory : { ...withoutMemory, ...(memory && { memory }) },
      available: facts.available,
      own: facts.own,
      skillDeny: request.skill?.deny ?? [],
      noSearch,
      background: isUnavailableInBackground(base.policy, "mcpTools"),
      forTeam: base.teamTools,
      nests: child !== undefined && mayNest(request, child.parent),
      isNested,
    });
  const planned = toolsWithin(base.above);
  const grant = child === undefined ? planned.grant : keptGrant(planned.grant, request, child.earlier);
  if (grant.type === "refused") return { type: "refused", reason: grant.reason };
  const { tools } = grant;
  const spawn = child === undefined ? grant.spawn : spawnRuleOf(tools);
  const directory = facts.parent === undefined ? facts.directory : facts.parent.directory;
  const scope = {
    anchor: directory,
    tools,
    memoryDirectory: facts.memory?.directory,
    ...grant.exclusions,
    ...(definition.onlyReads === undefined ? {} : { onlyReads: definition.onlyReads }),
    ...(child === undefined || spawn === "none" ? {} : { limitsBelow: true as const }),
  };
  const forProgram = base.programAbove && toolsWithin(base.programAbove).grant;
  const ofServers = { available: planned.available, granted: tools };
  const { mcpServers } =
    facts.parent === undefined
      ? serversOfRun({ ...ofServers, definition, servers: facts.servers ?? [], policy: base.policy })
      : withinParentServers(serversOfChild(isNested ? ofParentOnly(facts) : facts, ofServers), facts.parent);
  return {
    type: "granted",
    policy: { ...base.policy, toolScopes: [...(base.policy.toolScopes ?? []), scope] },
    modeFrom: base.modeFrom,
    tools,
    spawn,
    ...(forProgram?.type === "granted" ? { programSpawn: forProgram.spawn } : {}),
    ...(child !== undefined || base.above.sessionTools === undefined
      ? {}
      : { sessionTools: base.above.sessionTools }),
    ...(isUnavailableInBackground(base.policy, "mcpTools") || mcpServers === undefined ? {} : { mcpServers }),
    directory,
    serverNotes: [...base.notes, ...planned.notes],
    // The parent reads these beside the result; mere remarks are shown where files are checked.
    toolNotes: grant.notes.flatMap(({ severity, message }) =>
      child !== undefined && severity === "note" ? [] : [message],
    ),
  };
}

/** Of a child of a subagent: what the session has is of no concern, only what its parent has. */
function ofParentOnly({ servers: _servers, ...facts }: ChildFacts): ChildFacts {
  return facts;
}

/** A folder in which tools need no rule is a right: a child of a subagent has it only where its parent has the same. */
export function withoutOwnMemory(facts: AgentFacts): AgentFacts {
  if (facts.parent === undefined || facts.memory === undefined) return facts;
  const { parent } = facts;
  if (parent.task === undefined || facts.memory.directory === parent.memory?.directory) return facts;
  const { memory: _memory, ...others } = facts;
  const note = `The memory of ${facts.definition.name} is off: ${parent.agent.name}, which starts it, does not have it.`;
  return { ...others, notes: [...(facts.notes ?? []), note] };
}

/** The rights before the tools are known, and what limits those. */
interface BaseRights {
  readonly type: "decided";
  readonly policy: PermissionPolicy;
  readonly modeFrom: string;
  readonly above: ToolsAbove;
  /** What would limit them if the list of the session had named Agent: what rules and the definition take away stays away. */
  readonly programAbove?: ToolsAbove;
  readonly teamTools?: readonly string[];
  readonly notes: readonly string[];
}

function mainRights(request: AgentRequest, facts: MainFacts): BaseRights | Refusal {
  const { tools: names, mode: permissionMode, skipPermissions } = request;
  const mode = decideMode({
    ...facts,
    ...(permissionMode === undefined ? {} : { permissionMode }),
    ...(skipPermissions === undefined ? {} : { skipPermissions }),
  });
  if (mode.type === "refused") return mode;
  const choice = chooseTools(facts.available, names);
  if (choice.type === "refused") return { ...choice, code: "unusable-tools" };
  const policy = buildPolicy(facts, mode.mode.value);
  const agent = { id: facts.agentId, name: facts.definition?.name ?? "main" };
  const limitedTo = (tools: readonly AvailableTool[]): ToolsAbove => ({
    policy,
    agent,
    sessionTools: names === undefined ? undefined : builtinNames(tools),
  });
  const isNamed =
    names?.some((entry) => canonicalToolName(parseToolEntry(entry).name) === agentTool) !== false;
  const program = isNamed ? undefined : chooseTools(facts.available, [...(names ?? []), agentTool]);
  return {
    type: "decided",
    policy,
    modeFrom: mode.mode.from,
    above: limitedTo(choice.tools),
    ...(program?.type === "chosen" ? { programAbove: limitedTo(program.tools) } : {}),
    notes: [...mode.notes, ...choice.notes],
  };
}

const agentTool = "Agent";

function childRights(request: AgentRequest, facts: ChildFacts, background: boolean): BaseRights {
  const { definition, parent, earlier } = facts;
  const above = request.team === undefined ? parent.policy : policyForMembers(parent.policy);
  const call = callMode(request, earlier);
  const { permissionMode: own } = definition;
  // Below a subagent not even a file of the person widens a mode.
  const mode = parent.task === undefined || (own && isNoWider(own, above.mode)) ? own : undefined;
  const policy = childPolicy(above, {
    call,
    definition: { mode, scope: definition.source.scope },
    projectMayWiden: mode !== undefined && mayWiden(definition.source, facts.trusted),
    background,
    backgroundKeeps: facts.backgroundKeeps,
  });
  const { skill } = request;
  const ownMode = call?.mode === policy.mode ? "the call" : "the definition";
  const isPlanning = policy.mode === "plan" && above.mode !== "plan";
  return {
    type: "decided",
    // A skill's own rules are added to the parent's; deny and ask rules of the parent go before what it allows.
    policy:
      skill === undefined
        ? policy
        : { ...policy, allow: [...policy.allow, ...skill.allow], deny: [...policy.deny, ...skill.deny] },
    modeFrom: policy.mode === parent.policy.mode ? "the parent" : ownMode,
    above: parent,
    ...(request.team === undefined
      ? {}
      : { teamTools: isPlanning ? [...memberTools, handInPlanTool] : memberTools }),
    notes: [],
  };
}

/** A mode that the child had of its own stays, as if a model asked for it: where that is no wider than today's. */
export function callMode(
  { mode, origin }: Pick<AgentRequest, "mode" | "origin">,
  earlier: Pick<EarlierRun, "mode"> | undefined,
): RequestedRights["call"] {
  if (mode !== undefined) return { mode, by: origin };
  return earlier?.mode === undefined ? undefined : { mode: earlier.mode, by: "model" };
}

/** A lead in `delegate` mode only coordinates. Its members do the work, and have what `default` gives them. */
export function policyForMembers(policy: PermissionPolicy): PermissionPolicy {
  return policy.mode === "delegate" ? { ...policy, mode: "default" } : policy;
}

/** What every member of a team has besides the tools of its definition. */
export const memberTools: readonly string[] = [
  "SendMessage",
  "TaskCreate",
  "TaskUpdate",
  "TaskList",
  "TaskGet",
];

/** With it a member in plan mode hands in its plan. */
export const handInPlanTool = "ExitPlanMode";

/** What a resumed child is granted: never more than in its first run, unless a program says so. */
export function keptGrant(
  grant: ToolGrant,
  { keepTools, origin }: Pick<AgentRequest, "keepTools" | "origin">,
  earlier: Pick<EarlierRun, "tools"> | undefined,
): ToolGrant {
  if (grant.type === "refused" || earlier?.tools === undefined) return grant;
  if (keepTools === false && origin === "program") return grant;
  const before = new Map(earlier.tools.map((tool) => [tool.name, tool]));
  const tools = grant.tools.flatMap((tool) => {
    const had = before.get(tool.name);
    return had === undefined ? [] : narrowed(tool, had);
  });
  return { ...grant, tools };
}

/** A tool of today, no further than it went then. */
function narrowed(tool: GrantedTool, had: GrantedTool): readonly GrantedTool[] {
  // Each list allows only what it names; absent allows everything.
  const allowOnly =
    tool.allowOnly === undefined || had.allowOnly === undefined
      ? (tool.allowOnly ?? had.allowOnly)
      : tool.allowOnly.filter((specifier) => had.allowOnly?.includes(specifier));
  if (allowOnly?.length === 0 && tool.alsoIn === undefined) return [];
  const deny = [...new Set([...(tool.deny ?? []), ...(had.deny ?? [])])];
  const isConfined = tool.confinedTo !== undefined || had.confinedTo !== undefined;
  const isAlso = tool.alsoIn !== undefined && (had.alsoIn !== undefined || had.allowOnly === undefined);
  return [
    {
      name: tool.name,
      allowOnly,
      ...(deny.length === 0 ? {} : { deny }),
      ...(isConfined ? { confinedTo: "memory" } : {}),
      ...(isAlso ? { alsoIn: "memory" } : {}),
    },
  ];
}

/** Whether a child of this parent may start the agents that its definition names. */
export function mayNest(
  { team, workflow }: Pick<AgentRequest, "team" | "workflow">,
  parent: AgentPlan,
): boolean {
  // A teammate starts none: its lead does. Nor does a step: its script does.
  if (parent.nesting === undefined || team !== undefined || workflow !== undefined) return false;
  return levelOf(parent) + 1 < parent.nesting.depth.value;
}

/** Whom a child may start: those that its tools name, never just any. */
export function spawnRuleOf(tools: readonly GrantedTool[]): SpawnRule {
  const only = tools.find(({ name }) => name === "Agent")?.allowOnly ?? [];
  return only.length === 0 ? "none" : { only };
}

interface NestedStart {
  readonly definition: AgentDefinition;
  readonly parent: AgentPlan;
}

/** Why an agent that was started by another cannot start this one; whom it may start is another question. */
export function refuseNested(
  request: Pick<AgentRequest, "team" | "teamName" | "isolation">,
  { definition, parent }: NestedStart,
): string | undefined {
  const { nesting } = parent;
  const who = parent.agent.name;
  if (nesting === undefined) return "An agent that was started by another cannot start agents.";
  if (levelOf(parent) >= nesting.depth.value)
    return `${depthText(nesting.depth.value)}, and ${who} is on the last level.`;
  if (request.team !== undefined || request.teamName !== undefined)
    return `Only the main agent has a team, and ${who} is a subagent; leave the team out.`;
  if (definition.forkContext === true)
    return `${definition.name} starts with the conversation of its parent, and only the main agent can start such an agent.`;
  const brought = (definition.mcpServers ?? [])
    .filter(({ type }) => type === "inline")
    .map(({ name }) => name);
  if (brought.length > 0)
    return `${definition.name} brings MCP servers of its own (${brought.join(", ")}), which ${who} does not have; an agent that a subagent starts has no more than the subagent.`;
  const isolation = request.isolation ?? definition.isolation;
  if (isolation !== undefined && parent.task?.isolation !== undefined)
    return `${who} works in a working tree of its own, which the agents that it starts share; leave the isolation out.`;
  return undefined;
}

function depthText(depth: number): string {
  return `The setting limits.depth allows ${depth} levels of agents`;
}

/** What an agent and its parent are shown when its definition names agents that the depth does not allow any more. */
export function endOfNesting(
  { team }: Pick<AgentRequest, "team">,
  { definition, parent }: NestedStart,
): { readonly prompt: string; readonly note: string } | undefined {
  const { nesting } = parent;
  if (nesting === undefined || team !== undefined || levelOf(parent) + 1 < nesting.depth.value)
    return undefined;
  const entry = definition.tools?.find((text) => {
    const { type, name } = parseToolEntry(text);
    return type === "scoped" && canonicalToolName(name) === "Agent";
  });
  if (entry === undefined) return undefined;
  const text = `${depthText(nesting.depth.value)}`;
  return {
    prompt: `You are on the last level of agents here: you cannot start others, so do the work yourself and hand in what you have.`,
    note: `${text}, so ${definition.name} cannot start agents here, although its tools name ${entry}.`,
  };
}

/** Of the servers of a child of a subagent, no more tools and resources than its parent has of them. */
export function withinParentServers(
  { mcpServers }: Pick<AgentPlan, "mcpServers">,
  parent: AgentPlan,
): Pick<AgentPlan, "mcpServers"> {
  if (mcpServers === undefined || parent.task === undefined)
    return mcpServers === undefined ? {} : { mcpServers };
  const above = new Map((parent.mcpServers ?? []).map((server) => [server.name, server]));
  return {
    mcpServers: mcpServers.flatMap((server) => {
      const parents = above.get(server.name);
      if (parents === undefined || server.own) return [];
      if (parents.tools === undefined) return [server];
      const tools = server.tools?.filter((tool) => parents.tools?.includes(tool)) ?? parents.tools;
      return [{ ...server, tools }];
    }),
  };
}

/** A plan that was made elsewhere starts agents only as far as this session allows it too. */
export function withinDepth(plan: ChildPlan, { nesting }: Pick<AgentPlan, "nesting">): ChildPlan {
  if (plan.spawn === "none") return plan;
  const { nesting: planned, ...rest } = plan;
  if (planned !== undefined && nesting !== undefined && levelOf(plan) < nesting.depth.value) {
    const depth = nesting.depth.value < planned.depth.value ? nesting.depth : planned.depth;
    const agents = nesting.agents.value < planned.agents.value ? nesting.agents : planned.agents;
    return { ...plan, nesting: { depth, agents } };
  }
  return {
    ...rest,
    spawn: "none",
    tools: plan.tools.filter(({ name }) => name !== "Agent"),
    notes: [
      ...plan.notes,
      "It cannot start agents here, although its plan allows it: the setting limits.depth does not.",
    ],
  };
}
