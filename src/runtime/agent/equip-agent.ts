import type { Stopwatch } from "../../foundation/stopwatch.ts";
import type { RecordRequest } from "../../journal/request-recorder.ts";
import { sessionFiles } from "../../journal/session-files.ts";
import type { Model } from "../../model/model.ts";
import { isReplaced } from "../../planning/own-servers.ts";
import type { ChildPlan, PlannedDefinition } from "../../planning/plan-run.ts";
import type { RunPlan } from "../../planning/run-plan.ts";
import { handInPlanTool, memberTools } from "../../planning/team-membership.ts";
import { readEnvironment } from "../../settings/read-environment.ts";
import type { TreeBudget } from "../../tasks/budget/tree-budget.ts";
import { createRunGuard, type RunGuard } from "../../tasks/run-guard.ts";
import type { TaskControl } from "../../tasks/task-manager.ts";
import type { TaskState } from "../../tasks/task-state.ts";
import type { Tool } from "../../tools/tool.ts";
import type { SessionInbox } from "../approvals/session-inbox.ts";
import { hooksCapability, openSessionHooks, type SessionHooks } from "../hooks/session-hooks.ts";
import type { LiveText } from "../live-text.ts";
import type { RuntimeContext } from "../runtime-context.ts";
import {
  type CallServer,
  type ChildServers,
  resourceToolsOf,
  type SessionServers,
} from "../servers/session-servers.ts";
import { type AgentSkills, createAgentSkills, skillsCapability } from "../skills/agent-skills.ts";
import type { ForkSkill } from "../skills/fork-skill.ts";
import type { SessionSkills } from "../skills/session-skills.ts";
import { registeredHooks } from "../skills/skill-hooks.ts";
import type { AssembledTools } from "./assemble-tools.ts";
import type { Capability } from "./capability.ts";
import { carryOverContext } from "./carry-over-context.ts";
import { createCompactionPort } from "./create-compaction-port.ts";
import type { createToolContexts } from "./create-tool-contexts.ts";
import { liveMainCapability, livePolicyCapability } from "./live-controls.ts";
import type { AgentParts } from "./open-agent.ts";
import { peopleToAsk } from "./people-to-ask.ts";
import type { openAsking } from "./while-asking.ts";

/** What all agents of a session share. */
export interface AgentServices {
  readonly world: RuntimeContext;
  readonly tools: AssembledTools;
  readonly servers: SessionServers;
  readonly skills: SessionSkills;
  readonly findModel: (name: string) => Promise<Model>;
  readonly toolContext: ReturnType<typeof createToolContexts>;
  readonly tree: TreeBudget;
  /** Takes down what models are asked; absent where nothing is recorded. */
  readonly recordRequest?: RecordRequest;
  /** Puts calls of all agents to the same person, in one queue; absent where no one can be asked. */
  readonly asking?: ReturnType<typeof openAsking>;
  /** Keeps questions until somebody answers them; absent: where no one can be asked, calls are refused. */
  readonly inbox?: SessionInbox;
  /** Passes what models write to viewers in other processes; absent where the session keeps no files. */
  readonly liveText?: LiveText;
}

/** What one agent has of its own. */
export interface AgentOwn {
  readonly definition: PlannedDefinition | undefined;
  readonly model: Model;
  readonly stopwatch: Stopwatch;
  readonly commit?: (() => Promise<void>) | undefined;
  /** Set for a child: how it is controlled, its own servers, and the clock of the agent that waits for it. */
  readonly child?: {
    readonly control: TaskControl;
    readonly servers: ChildServers | undefined;
    readonly waiting: Stopwatch;
    /** Behind what every agent has. */
    readonly last: readonly Capability[];
  };
  /** Set for the main agent. */
  readonly main?: {
    readonly source: "startup" | "resume" | "fork";
    /** Takes what hooks of the session's start set for later commands. */
    readonly environment: Map<string, string>;
    readonly fork: ForkSkill;
    readonly tasks: () => readonly TaskState[];
    /** Before and behind what every agent has. */
    readonly first: readonly Capability[];
    readonly last: readonly Capability[];
  };
}

export interface EquippedAgent {
  readonly parts: AgentParts;
  readonly hooks: SessionHooks | undefined;
  readonly skills: AgentSkills;
}

/** Binds what a plan grants to this process: tools, servers, skills, hooks, limits, and the person who can be asked. */
export async function equipAgent(
  plan: RunPlan,
  services: AgentServices,
  own: AgentOwn,
): Promise<EquippedAgent> {
  const { world, tools } = services;
  const { child, main, model } = own;
  const guard = createRunGuard({ limits: plan.limits, tree: services.tree, stopwatch: own.stopwatch });
  const directory = (): string => tools.directory(plan.agent.id) ?? plan.directory;
  const hooks = await openHooks(plan, { services, own, directory, pay: guard.pay });
  const skills = openSkillsOf(plan, { services, own, hooks, pay: guard.pay });
  const granted = grantedTools(plan, services, child?.servers);
  const loading = skillsCapability(skills, { plan, directory, isGranted: hasSkillTool(plan, tools.tools) });
  const shared: readonly Capability[] = [
    { tools: granted },
    { model: guard.pay, limits: guard.limits },
    ...(services.inbox === undefined ? [] : [{ model: services.inbox.count }]),
    ...(hooks === undefined ? [] : [hooksOf(plan, hooks)]),
    ...(world.live === undefined ? [] : [livePolicyCapability(world.live)]),
  ];
  const [tooling, ...around] = shared;
  const parts: AgentParts = {
    model,
    capabilities: [
      ...(main === undefined
        ? [...(tooling === undefined ? [] : [tooling]), loading, ...around, ...(child?.last ?? [])]
        : [...liveOf(services, guard.pay), ...main.first, loading, ...shared, ...main.last]),
      ...(world.additions ?? []).map((addTo) => addTo(plan)),
    ],
    serverTools: tools.serverTools(plan, model.facts),
    ...peopleToAsk(plan, services, own),
    // Once it is moved to the background, it has no more tools of servers.
    ...(child === undefined
      ? {}
      : { isOffered: ({ origin }: Tool) => origin !== "mcp" || child.control.attended() }),
    directory,
    now: world.now,
    concurrency: readEnvironment(world.environment).options.maxToolUseConcurrency,
    compaction: createCompactionPort({
      world,
      model: model.facts,
      hooks,
      restate: () =>
        carryOverContext({
          ...(main === undefined ? {} : { tasks: main.tasks() }),
          todos: tools.todos(plan.agent.id),
          skills: skills.called(),
          offered: skills.offered(),
        }),
    }),
    recordRequest: services.recordRequest,
    ...(own.commit === undefined ? {} : { commit: own.commit }),
  };
  return { parts, hooks, skills };
}

/** A teammate that has done its work is idle, not at its end; hooks hear of that end when it comes. */
function hooksOf(plan: RunPlan, hooks: SessionHooks): Capability {
  const { beforeEnd, ...others } = hooksCapability(hooks);
  const isTeammate = "task" in plan && (plan as ChildPlan).task.team !== undefined;
  return isTeammate || beforeEnd === undefined ? others : { ...others, beforeEnd };
}

/** What the host of the session changes goes around everything else of the main agent. */
function liveOf({ world, findModel }: AgentServices, pay: RunGuard["pay"]): readonly Capability[] {
  const { live } = world;
  return live === undefined ? [] : [liveMainCapability(live, async (name) => pay(await findModel(name)))];
}

interface Opening {
  readonly services: AgentServices;
  readonly own: AgentOwn;
  readonly pay: RunGuard["pay"];
}

async function openHooks(
  plan: RunPlan,
  { services, own, directory, pay }: Opening & { readonly directory: () => string },
): Promise<SessionHooks | undefined> {
  const { world, servers } = services;
  const { definition, model, child, main } = own;
  const hooks = await openSessionHooks({
    world,
    plan,
    model,
    pay,
    definition,
    source: main?.source ?? "startup",
    directory,
    mayGrow: services.skills.bringHooks,
    callServer: ownFirst(child?.servers, servers.call),
    ...(main === undefined ? {} : { environment: main.environment }),
    ...(child === undefined ? {} : { child: childHookFacts(plan, world, child.control) }),
  });
  const skill = "task" in plan ? (plan as ChildPlan).task.skill : undefined;
  if (skill !== undefined) hooks?.add(registeredHooks(skill, { id: plan.agent.id, isSubagent: true }));
  return hooks;
}

function childHookFacts(plan: RunPlan, { discovered }: RuntimeContext, { reported }: TaskControl) {
  const { transcript } = sessionFiles(discovered.paths.transcripts, plan.sessionId).agent(plan.agent.id);
  const agentType = "task" in plan ? (plan as ChildPlan).task.agentType : plan.agent.name;
  return {
    agentId: plan.agent.id,
    agentType,
    transcript,
    ...(reported === undefined ? {} : { reported }),
  };
}

function openSkillsOf(
  plan: RunPlan,
  { services, own, hooks, pay }: Opening & { readonly hooks: SessionHooks | undefined },
): AgentSkills {
  const { world, skills, tools, findModel } = services;
  return createAgentSkills({
    skills,
    world,
    plan,
    isSubagent: own.child !== undefined,
    bash: tools.tools.find(({ name }) => name === "Bash"),
    hooks,
    ...(own.main === undefined ? {} : { fork: own.main.fork }),
    findModel: async (name) => pay(await findModel(name)),
  });
}

/** A program's own tool of that name takes its place. */
function hasSkillTool(plan: RunPlan, tools: readonly Tool[]): boolean {
  return plan.tools.some(({ name }) => name === "Skill") && !tools.some(({ name }) => name === "Skill");
}

function grantedTools(
  plan: RunPlan,
  { tools, servers }: AgentServices,
  own: ChildServers | undefined,
): readonly Tool[] {
  const isTeammate = "task" in plan && (plan as ChildPlan).task.team !== undefined;
  // Of the tools that a team brings, a teammate has those of its membership.
  const theirs = new Set(isTeammate ? [...memberTools, handInPlanTool] : []);
  const granted = new Set(plan.tools.map(({ name }) => name).filter((name) => !theirs.has(name)));
  const isShared = (mcp: Tool["mcp"]): boolean =>
    mcp === undefined || own === undefined || !isReplaced(mcp.serverName, own.own);
  return [
    ...tools.tools.filter(({ name, mcp }) => granted.has(name) && isShared(mcp)),
    ...(own?.tools ?? []).filter(({ name }) => granted.has(name)),
    ...resourceToolsOf(plan, servers, own),
  ];
}

/** Hooks of a child reach the servers of its definition, and those of the session. */
function ownFirst(servers: ChildServers | undefined, call: CallServer): CallServer {
  return (server, tool, input, options) =>
    servers?.call !== undefined && servers.own.names.includes(server)
      ? servers.call(server, tool, input, options)
      : call(server, tool, input, options);
}
