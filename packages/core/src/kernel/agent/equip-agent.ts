import { estimateTextTokens } from "../../conversation/estimate-request-tokens.ts";
import { compactionThreshold } from "../../loop/compactor.ts";
import type { CompactionPort } from "../../loop/loop-ports.ts";
import { shortenText } from "../../loop/summarize-by-rule.ts";
import type { Model, ModelFacts } from "../../models/model.ts";
import { withRequestSettings } from "../../models/with-request-settings.ts";
import { type AgentPlan, startOf } from "../../planning/agent-plan.ts";
import { handInPlanTool, memberTools } from "../../planning/plan-rights.ts";
import { isReplaced } from "../../planning/servers-of-run.ts";
import { hasEnded, type TaskState } from "../../protocol/agent-state.ts";
import { createRunGuard } from "../../tasks/run-guard.ts";
import type { TodoItem, Tool } from "../../tools/tool.ts";
import { hooksCapability, openSessionHooks, type SessionHooks } from "../hooks/session-hooks.ts";
import { outputCapability } from "../options/typed-output.ts";
import type { FolderContext, RuntimeContext } from "../runtime-context.ts";
import { type CallServer, type ChildServers, resourceToolsOf } from "../servers/session-servers.ts";
import { openVerifier } from "../verify/open-verifier.ts";
import type { AgentOwn, AgentServices, EquippedAgent } from "./agent-services.ts";
import { createAgentSkills, skillsCapability } from "./agent-skills.ts";
import { approvalRouting, holding } from "./approval-routing.ts";
import { openToolSearch } from "./assemble-tools.ts";
import { registeredHooks } from "./fork-skill.ts";
import {
  type AgentParts,
  type Capability,
  liveChildCapability,
  liveMainCapability,
  livePolicyCapability,
} from "./open-agent.ts";
import { waitForQuota } from "./wait-for-quota.ts";

/** Binds what a plan grants to this process: tools, servers, skills, hooks, limits, and the person who can be asked. */
export async function equipAgent(
  plan: AgentPlan,
  services: AgentServices,
  own: AgentOwn,
): Promise<EquippedAgent> {
  const { runtime, tools, servers, inbox, fallbackModels: fallbacks } = services;
  const { child, main, budget, stopwatch } = own;
  const isChild = child !== undefined;
  const model = withModelSettings(own.model, runtime, isChild);
  const guard = createRunGuard({ limits: plan.limits, tree: services.tree, budget, stopwatch });
  const directory = (): string => tools.directory(plan.agent.id) ?? startOf(plan);
  const findModel = async (name: string): Promise<Model> =>
    guard.pay(withModelSettings(await services.findModel(name), runtime, isChild));
  let hooks: SessionHooks | undefined;
  const verifier = openVerifier(plan, { services, own, hooks: () => hooks });
  hooks = await openSessionHooks({
    runtime,
    plan,
    model,
    pay: guard.pay,
    looking: services,
    definition: own.definition,
    ...{ source: main?.source ?? "startup", runningTasks: main?.runningTasks },
    directory,
    mayGrow: services.skills.bringHooks,
    callServer: ownFirst(child?.servers, servers.call),
    environment: main?.environment,
    child: child && {
      agentId: plan.agent.id,
      agentType: plan.task?.agentType ?? plan.agent.name,
      transcript: child.transcript,
      reported: child.control.reported,
      spent: child.spent,
      receipt: verifier.current,
    },
  });
  if (plan.task?.skill !== undefined)
    hooks?.add(registeredHooks(plan.task.skill, { id: plan.agent.id, isSubagent: true }));
  // A program's own tool of that name takes its place.
  const isGranted =
    plan.tools.some(({ name }) => name === "Skill") && !tools.tools.some(({ name }) => name === "Skill");
  // A person can call skills also where the main agent itself may load none.
  const skills =
    isGranted || main !== undefined
      ? createAgentSkills({
          skills: services.skills,
          runtime,
          plan,
          isSubagent: isChild,
          bash: tools.tools.find(({ name }) => name === "Bash"),
          hooks,
          fork: main?.fork,
          findModel,
        })
      : undefined;
  const all = grantedTools(plan, services, child?.servers);
  const search = openToolSearch(plan, {
    definition: own.definition,
    granted: all,
    mode: runtime.variables.toolSearch,
    contextWindow: model.facts.contextWindow,
  });
  if (search !== undefined && plan.spawn !== "none") services.loadedTools.set(plan.agent.id, search.loaded);
  const granted = search === undefined ? all : [...all, search.tool];

  // What the host of the session changes, and which model answers where another cannot, goes around everything else.
  const { live } = runtime;
  const aroundModel =
    live === undefined && fallbacks.length === 0
      ? []
      : [(isChild ? liveChildCapability : liveMainCapability)(live ?? {}, { find: findModel, fallbacks })];
  const loading = skills === undefined ? [] : [skillsCapability(skills, { plan, directory, isGranted })];
  const capabilities: readonly Capability[] = [
    ...waitingOf(services, own),
    ...aroundModel,
    ...(own.first ?? []),
    ...(main === undefined ? [{ tools: granted }, ...loading] : [...loading, { tools: granted }]),
    guard.capability,
    ...(inbox === undefined ? [] : [{ model: inbox.count }]),
    // Before the hooks, which are notified of an end with its receipt.
    verifier,
    ...(hooks === undefined ? [] : [hooksOf(plan, hooks)]),
    ...(live === undefined ? [] : [livePolicyCapability(live)]),
    ...(own.output === undefined ? [] : [outputCapability(own.output)]),
    ...(own.last ?? []),
    ...(runtime.additions ?? []).map((addTo) => addTo(plan)),
  ];

  const parts: AgentParts = {
    model,
    capabilities,
    serverTools: tools.serverTools(plan, model.facts),
    ...approvalRouting(plan, services, { ...own, directory }),
    acceptedFiles: services.acceptedFiles.forAgent(plan.agent.id, plan.task?.parentId),
    // Once it is moved to the background, it has no more tools of servers, unless it keeps them.
    isOffered:
      child !== undefined && granted.some(({ origin }) => origin === "mcp")
        ? ({ origin }) => origin !== "mcp" || child.hasServerTools()
        : undefined,
    present: search?.present,
    directory,
    now: runtime.now,
    concurrency: runtime.variables.maxToolUseConcurrency,
    compaction: createCompactionPort({
      runtime,
      model: model.facts,
      hooks,
      restate: () =>
        carryOverContext({
          tasks: main?.tasks(),
          todos: tools.todos(plan.agent.id),
          skills: skills?.called() ?? [],
          offered: skills?.offered() ?? "",
        }),
    }),
    recordRequest: services.recordRequest,
    commit: own.commit,
  };
  return { parts, hooks, verifier, skills };
}

/** Around everything else: what an agent holds of a budget is given back while it waits. */
function waitingOf(
  { runtime: { quotas, clock }, unattended }: AgentServices,
  { stopwatch, child }: AgentOwn,
): readonly Capability[] {
  if (quotas === undefined || unattended === undefined) return [];
  const held = holding(stopwatch, ...(child === undefined ? [] : [child.waiting]));
  const park = child?.control.park;
  const whileWaiting = <T>(wait: () => Promise<T>): Promise<T> =>
    held(() => (park === undefined ? wait() : park(wait, { activity: "waiting-for-quota" })));
  const isMain = child === undefined;
  return [waitForQuota({ windowOf: quotas.of, clock, unattended, isMain, whileWaiting })];
}

/** A teammate that has done its work is idle, not at its end; hooks are notified of that end when it comes. */
function hooksOf(plan: AgentPlan, hooks: SessionHooks): Capability {
  const { beforeEnd, ...others } = hooksCapability(hooks);
  const isTeammate = plan.task?.team !== undefined;
  return isTeammate || beforeEnd === undefined ? others : { ...others, beforeEnd };
}

/** What settings set for every request, whichever model answers it. */
function withModelSettings(model: Model, { discovered, variables }: FolderContext, isChild: boolean): Model {
  const { plain } = discovered.settings.settings;
  const ofChildren = variables.subagentPromptCacheTtl ?? plain.subagentPromptCacheTtl;
  const chosen =
    isChild && ofChildren !== undefined && ofChildren !== "auto" ? ofChildren : plain.promptCacheTtl;
  return withRequestSettings(model, {
    cacheTtl: chosen,
    thinks: plain.alwaysThinkingEnabled,
    maxEffort: plain.maxEffortLevel,
  });
}

function grantedTools(
  plan: AgentPlan,
  { tools, servers }: AgentServices,
  own: ChildServers | undefined,
): readonly Tool[] {
  const isTeammate = plan.task?.team !== undefined;
  // Of the tools that a team brings, a teammate has those of its membership.
  const theirs = new Set(isTeammate ? [...memberTools, handInPlanTool] : []);
  const granted = new Set(plan.tools.map(({ name }) => name).filter((name) => !theirs.has(name)));
  const isShared = (mcp: Tool["mcp"]): boolean =>
    mcp === undefined || own === undefined || !isReplaced(mcp.serverName, own.own);
  return [
    ...tools.tools.filter(({ name, mcp }) => granted.has(name) && isShared(mcp)),
    ...(own?.tools ?? []).filter(({ name }) => granted.has(name)),
    ...(plan.mcpServers === undefined ? [] : resourceToolsOf(plan, servers, own)),
  ];
}

/** Hooks of a child reach the servers of its definition, and those of the session. */
function ownFirst(servers: ChildServers | undefined, call: CallServer): CallServer {
  return (server, tool, input, options) =>
    servers?.call !== undefined && servers.own.names.includes(server)
      ? servers.call(server, tool, input, options)
      : call(server, tool, input, options);
}

/** What continues while a conversation is compacted. */
interface OngoingWork {
  readonly tasks?: readonly TaskState[];
  readonly todos?: readonly TodoItem[];
  /** Skills that were called, newest last, with the text the model read. */
  readonly skills?: readonly { readonly name: string; readonly text: string }[];
  /** Skills that the model was informed of, one line each. */
  readonly offered?: string;
}

/** What an agent must not forget when its conversation is replaced by a summary, each part as one text. */
export function carryOverContext({
  tasks = [],
  todos = [],
  skills = [],
  offered = "",
}: OngoingWork): readonly string[] {
  return [agentsText(tasks), todosText(todos), offeredText(offered), skillsText(skills)].filter(
    (text) => text !== "",
  );
}

function offeredText(list: string): string {
  return list === "" ? "" : `Skills for files you have used, which the Skill tool loads too:\n${list}`;
}

function agentsText(tasks: readonly TaskState[]): string {
  const running = tasks.filter((task) => task.background && !hasEnded(task));
  if (running.length === 0) return "";
  const lines = running.map(
    ({ id, agentType, description, status }) => `- ${id} (${agentType}): ${description} [${status}]`,
  );
  return [
    "Agents you have started that still run in the background; you are notified when they end, and TaskOutput reads them by id. Do not start them again.",
    ...lines,
  ].join("\n");
}

function todosText(todos: readonly TodoItem[]): string {
  if (todos.length === 0) return "";
  const lines = todos.map(({ content, status }) => `- [${status}] ${content}`);
  return ["Your list of steps:", ...lines].join("\n");
}

const skillTokens = 5_000;
const allSkillTokens = 25_000;
/** Less of a skill than this is of no use. */
const leastTokens = 250;

/** The newest skills first, as far as there is room. */
function skillsText(skills: NonNullable<OngoingWork["skills"]>): string {
  let left = allSkillTokens;
  const texts: string[] = [];
  for (const { name, text } of skills.toReversed()) {
    const shortened = shortenText(text, Math.min(skillTokens, left));
    if (left < leastTokens || shortened === "") break;
    left -= estimateTextTokens(shortened);
    texts.push(`The skill ${name}, which you have called:\n${shortened}`);
  }
  return texts.toReversed().join("\n\n");
}

interface CompactionParts {
  readonly runtime: Pick<RuntimeContext, "variables" | "discovered" | "live">;
  /** Of the agent's own model, which may have another window than its parent's. */
  readonly model: Pick<ModelFacts, "contextWindow">;
  readonly hooks: Pick<SessionHooks, "compaction"> | undefined;
  readonly restate: () => readonly string[];
}

/** How an agent's conversation is compacted, as settings and variables determine; undefined where it never is. */
function createCompactionPort({
  runtime,
  model,
  hooks,
  restate,
}: CompactionParts): CompactionPort | undefined {
  const { variables: options } = runtime;
  if (options.compactDisabled === true) return undefined;
  const { autoCompactEnabled, autoCompactWindow } = runtime.discovered.settings.settings.plain;
  const thresholdTokens = compactionThreshold(model.contextWindow, {
    automatic: options.autoCompactDisabled !== true && autoCompactEnabled !== false,
    percent: options.autoCompactPercent,
    windows: [options.autoCompactWindow, autoCompactWindow],
  });
  return {
    thresholdTokens,
    ...hooks?.compaction,
    restate,
    ...(runtime.live?.compactsShort === true ? { compactsShort: true } : {}),
  };
}
