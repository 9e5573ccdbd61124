import { randomBytes } from "node:crypto";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { DiscoveredAgents } from "@retinue/config/agents/discover-agents.ts";
import type { ChosenModel } from "@retinue/config/models/select-subagent-model.ts";
import { isInside, withMode } from "@retinue/gate/permission-policy.ts";
import type { Message, UserMessage } from "../../conversation/message.ts";
import { loadSession } from "../../journal/session-choices.ts";
import type { LoopPorts } from "../../loop/loop-ports.ts";
import type { Model } from "../../models/model.ts";
import type { LimitFacts } from "../../planning/limit-plan.ts";
import type { ChildPlan, PlannedDefinition } from "../../planning/plan-run.ts";
import type { RunPlan } from "../../planning/plan-tools.ts";
import type { SpawnRequest } from "../../planning/spawn-request.ts";
import { createChildMemory, openChildRecord } from "../../tasks/child-record.ts";
import { createAgentTool, type Spawn, type SpawnOutcome } from "../../tasks/create-agent-tool.ts";
import type { OpenedAgent } from "../../tasks/create-local-executor.ts";
import { hasEnded } from "../../tasks/drive-task.ts";
import { lostMessageNotice } from "../../tasks/end-notice.ts";
import { findTasks } from "../../tasks/find-tasks.ts";
import { foldEarlierRun, loadEarlierRun } from "../../tasks/load-earlier-run.ts";
import { createChildMail, createMessenger } from "../../tasks/messenger.ts";
import { createSpawner, type Spawner } from "../../tasks/spawner.ts";
import type { ChildClocks, RefusedChild, TaskControl, TaskManager } from "../../tasks/task-manager.ts";
import { createStopwatch, type Stopwatch } from "../../tasks/watch-run.ts";
import { makeWorktree } from "../../tasks/worktree/make-worktree.ts";
import { readWorktreeSettings } from "../../tasks/worktree/read-worktree-settings.ts";
import { createSendMessageTool } from "../../teams/create-send-message-tool.ts";
import type { Tool } from "../../tools/tool.ts";
import type { SessionCommands } from "../gather-session.ts";
import type { SystemPromptFacts } from "../gather-system-prompt.ts";
import type { InteractiveOptions, SessionSetup } from "../options/runtime-options.ts";
import { type ChildOutputs, remindingOutputCapability } from "../options/typed-output.ts";
import type { RuntimeContext } from "../runtime-context.ts";
import type { ChildServers } from "../servers/session-servers.ts";
import { createMemberProcesses } from "../teams/create-member-processes.ts";
import { createParentMail, defaultBackgroundWaitMs, openTeamOf } from "../teams/create-parent-mail.ts";
import type { SessionTeamParts } from "../teams/found-team.ts";
import { openTeamMember } from "../teams/open-team-member.ts";
import type { SessionTeam } from "../teams/session-team.ts";
import { prepareMemory } from "./assemble-tools.ts";
import { createChildSource, followersOf } from "./create-child-source.ts";
import { listedAgents, type MadeWorktree, spawnFacts } from "./decide-child.ts";
import { type AgentServices, equipAgent } from "./equip-agent.ts";
import { type Capability, openAgent, toolsOf } from "./open-agent.ts";
import { preapprove } from "./preapprove.ts";
import { refusePlan } from "./program-functions.ts";
import { runChildRecovery } from "./run-child-recovery.ts";

/** What the children of a session share with it. */
export interface ChildrenParts {
  readonly services: AgentServices;
  /** Reads the agents again, so that a changed file counts at the next start. */
  readonly look: () => Promise<{ readonly discovered: Pick<DiscoveredAgents, "registry"> }>;
  readonly tasks: TaskManager;
  readonly parent: {
    readonly plan: RunPlan;
    readonly model: Model;
    readonly chosenModel: ChosenModel;
    readonly stopwatch: Stopwatch;
  };
  readonly messages: () => readonly Message[];
  readonly context: SystemPromptFacts["child"];
  readonly commands: Pick<SessionCommands, "news">;
  /** The typed outputs that children were asked for. */
  readonly outputs: ChildOutputs;
  readonly limitFacts: LimitFacts;
  readonly clocks: ChildClocks;
  /** Whether there is a parent that reads what children in the background report. */
  readonly readsNotices: boolean;
  /** Whether named agents form a team, whose mail the parent or the program reads. */
  readonly leadsTeam: boolean;
  /** Takes children also from another process that holds them. */
  readonly takeOver: boolean;
  /** The team mail that the conversation has, and how it is kept. */
  readonly mail: Pick<SessionTeamParts, "delivered" | "commit">;
  /** A person is at the session, who need not wait for the background. */
  readonly interactive: InteractiveOptions | undefined;
  readonly background: NonNullable<SessionSetup["background"]>;
}

/** The children of a session: the tool that starts them, what they report to their parent, and the wait for the last one. */
export interface Children {
  readonly tool: Tool;
  /** Writes to children, by id or name. */
  readonly messageTool: Tool;
  readonly spawner: Spawner;
  /** From now on a child that is resumed by a message is decided about like a call of the Agent tool. */
  readonly attach: (authorize: LoopPorts["authorize"]) => void;
  /** The tools that a planned child would have. Starts nothing. */
  readonly toolsOf: (plan: ChildPlan) => Promise<readonly Tool[]>;
  /** Settles how a child ended whose process died. */
  readonly recover: (agentId: string, signal?: AbortSignal) => Promise<void>;
  /** Queues a message for the parent, which reads it between its turns. */
  readonly notify: (message: UserMessage) => void;
  readonly takeMessages: () => readonly UserMessage[];
  /** The team that the session leads; absent where there are no teams. */
  readonly team?: SessionTeam;
  /** Before the parent ends: waits for children in the background, and gives their news. */
  readonly beforeEnd: (signal: AbortSignal) => Promise<UserMessage | undefined>;
}

/** What children add to the main agent: the tools that start them and write to them, and their news. */
export function childrenCapability(
  children: Children,
  {
    plan,
    tools,
    tasks,
  }: { readonly plan: RunPlan; readonly tools: readonly Tool[]; readonly tasks: TaskManager },
): Capability {
  const granted = new Set(plan.tools.map(({ name }) => name));
  const replaced = new Set(tools.map(({ name }) => name));
  const beside = [children.messageTool, ...(children.team?.tools ?? [])];
  return {
    tools: [
      ...(granted.has("Agent") ? [children.tool] : []),
      ...beside.filter(({ name }) => granted.has(name) && !replaced.has(name)),
    ],
    messages: children.takeMessages,
    // Children in the background are waited for before hooks learn that the work is over.
    beforeEnd: (_text, { signal }) => children.beforeEnd(signal),
    attach: ({ authorize }) => children.attach(authorize),
    async dispose() {
      await tasks[Symbol.asyncDispose]();
      await children.team?.[Symbol.asyncDispose]();
    },
  };
}

export function openChildren(parts: ChildrenParts): Children {
  const { tasks, parent } = parts;
  const { runtime } = parts.services;
  const { variables: options } = runtime;
  const mail = createChildMail(parts.readsNotices ? undefined : 0);
  const facts = spawnFacts(parts);
  const spawner = createSpawner({
    tasks,
    budget: parts.services.tree,
    children: openSource(parts, facts),
    report: runtime.notice,
    notify: mail.put,
    teammateEnded: async (plan, state, text) => team?.ended(plan, state, text),
    teammateSettled: () => team?.look(),
  });
  const tool = createAgentTool({
    agents: listedAgents(runtime.discovered.registry, parent.plan, facts),
    background: options.backgroundTasksDisabled !== true,
    // Those that have to wait do so in the queue, where they can be seen.
    concurrency: Number.MAX_SAFE_INTEGER,
    teams: runtime.teams !== undefined && parts.leadsTeam,
    inBackground: runtime.live?.childrenInBackground === true,
    spawn: (request, own) => (team?.spawn ?? spawner.spawn)(request, own),
  });
  const starts = authorizeStarts(tool, spawner.spawn);
  const { spawn, owesTeamNotices: owesNotices } = spawner;
  const team = openTeamOf(parts, { spawn, authorizedSpawn: starts.start, owesNotices });
  const { transcripts } = runtime.discovered.paths;
  const isRunning = (id: string): boolean => tasks.list().some((task) => task.id === id && !hasEnded(task));
  const messenger = createMessenger({
    tasks,
    find: () =>
      runtime.keepsTranscripts
        ? findTasks(transcripts, { sessionId: parent.plan.sessionId })
        : Promise.resolve([]),
    resume: starts.start,
    onLost: ({ id }, reason) => mail.put(lostMessageNotice(id, reason)),
  });
  return {
    spawner,
    recover: (agentId, signal) => recover(agentId, parts, { signal }),
    attach: starts.attach,
    toolsOf: (plan) => plannedTools(plan, parts),
    notify: mail.put,
    tool,
    messageTool: createSendMessageTool({ messenger, seat: team?.seat }),
    ...(team === undefined ? {} : { team }),
    ...createParentMail({
      mail,
      team,
      isBusy: () => spawner.owesNotices() || tasks.list().some((task) => task.background && !hasEnded(task)),
      hasQuestions: () => parts.services.inbox?.isAsking(isRunning) === true,
      limitMs: options.printBackgroundWaitMs ?? defaultBackgroundWaitMs,
      notice: runtime.notice,
      interactive: parts.interactive,
      background: parts.background,
    }),
  };
}

/** The parent's plan under the mode that a person has chosen since. */
function planNow({ parent: { plan }, interactive }: ChildrenParts): RunPlan {
  return { ...plan, policy: withMode(plan.policy, interactive?.mode()) };
}

function openSource(parts: ChildrenParts, facts: ReturnType<typeof spawnFacts>) {
  const { services, parent } = parts;
  const { runtime, files, tools, servers, asking, tree } = services;
  const { approver, keepsTranscripts } = runtime;
  const memory = createChildMemory();
  let queued = 0;
  const nextQueued = (): number => {
    queued += 1;
    return queued;
  };
  return createChildSource({
    facts,
    parent: () => planNow(parts),
    messages: parts.messages,
    look: parts.look,
    recall: async (agentId) =>
      keepsTranscripts ? loadEarlierRun(files.agent(agentId)) : foldEarlierRun(memory.records(agentId)),
    gather: parts.context,
    ...(keepsTranscripts ? { files } : {}),
    ...(asking === undefined ? {} : { approved: asking.rulesFor }),
    servers: servers.connectFor,
    model: (chosen) => modelOf(chosen, parts),
    ...(runtime.wrapExecutor === undefined ? {} : { wrapExecutor: runtime.wrapExecutor }),
    worktree: (child, { signal }) => isolate(child, runtime, signal),
    ...(approver === undefined
      ? {}
      : {
          preapprove: (sketch: ChildPlan) =>
            preapprove(sketch, { approver, main: parent.plan, tools: tools.tools }),
        }),
    recover: (agentId, definition) => recover(agentId, parts, { definition }),
    openRecord: (plan) =>
      openChildRecord(plan, {
        session: runtime,
        files: files.agent(plan.agent.id),
        followers: followersOf(plan, services),
        takeOver: parts.takeOver,
        memory,
        nextQueued,
      }),
    loadHistory: async ({ transcript, messages }) => {
      // A plan could name any file; what other sessions have said is not for this one.
      if (transcript !== files.transcript && !isInside(transcript, [files.directory]))
        throw new RetinueError(
          "unreadable-plan",
          `The plan continues ${transcript}, which is no file of its session.`,
        );
      const loaded = await loadSession(transcript);
      return loaded.messages.slice(0, messages);
    },
    openAgent: (plan, own) => openChildAgent(plan, own, parts),
    news: parts.commands.news,
    newAgentId: () => `a${randomBytes(8).toString("hex")}`,
    budget: tree,
    clocks: parts.clocks,
    release: tools.release,
    refuse: (plan) => refusePlan(plan, services),
    ...(runtime.teams === undefined || !parts.leadsTeam
      ? {}
      : { processes: createMemberProcesses(services, parent.plan) }),
    report: runtime.notice,
  });
}

/** The child as its loop sees it: the same way as the main agent, with the control of its task. */
async function openChildAgent(
  plan: ChildPlan,
  {
    model,
    control,
    servers,
    transcript,
  }: {
    readonly model: Model;
    readonly control: TaskControl;
    readonly servers: ChildServers | undefined;
    readonly transcript: string;
  },
  { services, parent, clocks, outputs }: ChildrenParts,
): Promise<OpenedAgent> {
  if (plan.memory !== undefined) await prepareMemory(plan.memory, services.runtime.notice);
  const output = outputs.of(plan.agent.id);
  const { team } = plan.task;
  const member =
    team === undefined ? undefined : await openTeamMember(plan, team, { runtime: services.runtime, control });
  const stopwatch = control.stopwatch ?? createStopwatch(clocks.clock, clocks.tree);
  const { parts, hooks } = await equipAgent(plan, services, {
    definition: plan.definition,
    model,
    stopwatch,
    commit: control.commit,
    child: {
      control: services.runtime.live?.attendsBackground === true ? alwaysAttended(control) : control,
      servers,
      transcript,
      // No one waits for a teammate, so only its own clock stops while a person is asked.
      waiting: member === undefined ? parent.stopwatch : stopwatch,
      last: [
        ...(output === undefined ? [] : [remindingOutputCapability(output)]),
        ...(member === undefined ? [] : [member.capability]),
      ],
    },
  });
  member?.attachHooks(hooks);
  const agent = openAgent(plan, parts);
  return {
    ...(member === undefined ? {} : { standby: member.standby }),
    ports: agent.ports,
    async prompt(text, signal) {
      const content = [{ type: "text", text } as const];
      const ready = await agent.prepare(content, signal);
      return { role: "user", content: ready.type === "ready" ? ready.content : content };
    },
    end: agent.end,
  };
}

/** The host answers whether or not somebody waits for the child. */
function alwaysAttended(control: TaskControl): TaskControl {
  return { ...control, attended: () => true, unattended: new AbortController().signal };
}

async function plannedTools(
  plan: ChildPlan,
  { services, parent, clocks }: ChildrenParts,
): Promise<readonly Tool[]> {
  const { signal } = new AbortController();
  const { parts } = await equipAgent(plan, services, {
    definition: plan.definition,
    model: parent.model,
    stopwatch: createStopwatch(clocks.clock),
    child: {
      control: { attended: () => !plan.task.background, unattended: signal, takeMessages: () => [] },
      servers: undefined,
      transcript: services.files.agent(plan.agent.id).transcript,
      waiting: parent.stopwatch,
      last: [],
    },
  });
  return toolsOf(parts.capabilities);
}

async function recover(
  agentId: string,
  { services, look, parent, takeOver }: ChildrenParts,
  options: { readonly signal?: AbortSignal | undefined; readonly definition?: PlannedDefinition },
): Promise<void> {
  const { plan, model } = parent;
  return runChildRecovery(agentId, { services, look, plan, model, takeOver, ...options });
}

/** A program's own model serves its children too, unless they name another. */
async function modelOf(chosen: ChosenModel, { services, parent }: ChildrenParts): Promise<Model> {
  const { runtime } = services;
  const isParents = chosen.id === parent.chosenModel.id && chosen.provider === parent.chosenModel.provider;
  return isParents || runtime.model !== undefined ? parent.model : runtime.models.model(chosen);
}

const worktreeLimitMs = 120_000;

/** Makes the child's own working tree, until its caller is stopped, and within a limit. */
async function isolate(
  { agent, task, sessionDirectory }: Pick<ChildPlan, "agent" | "task" | "sessionDirectory">,
  runtime: RuntimeContext,
  signal: AbortSignal,
): Promise<MadeWorktree | RefusedChild> {
  const settings = readWorktreeSettings(runtime.discovered.settings.settings.plain.worktree);
  if (settings.type === "refused") return settings;
  const made = await makeWorktree({
    directory: sessionDirectory,
    agentId: agent.id,
    agentName: agent.name,
    settings: settings.settings,
    environment: runtime.environment,
    trusted: runtime.trusted,
    signal: AbortSignal.any([signal, AbortSignal.timeout(worktreeLimitMs)]),
    resume: task.resumed,
  });
  if (made.type === "refused") return made;
  const { worktree } = made;
  const { path, directory } = worktree;
  return {
    type: "made",
    place: { path, directory, root: runtime.discovered.paths.projectRoot },
    begun: worktree.begun,
    async finish() {
      const { kept, path, branch } = await worktree.finish();
      return kept ? { path, branch } : undefined;
    },
  };
}

/** Starts of children that no call of the Agent tool asks for, decided about as if one did. */
function authorizeStarts(tool: Tool, spawn: Spawn) {
  let authorize: LoopPorts["authorize"] | undefined;
  return {
    attach(port: LoopPorts["authorize"]): void {
      authorize = port;
    },
    async start(request: SpawnRequest, { signal }: { readonly signal: AbortSignal }): Promise<SpawnOutcome> {
      const input = {
        description: request.description,
        prompt: request.prompt,
        ...(request.agentType === undefined ? {} : { subagent_type: request.agentType }),
        ...(request.resume === undefined ? {} : { resume: request.resume }),
        ...(request.background === undefined ? {} : { run_in_background: request.background }),
      };
      const call = { type: "tool_use", id: request.callId ?? "message", name: tool.name, input } as const;
      const authorization = await authorize?.({ call, tool, input }, { signal });
      if (authorization?.type !== "allowed")
        return { type: "refused", reason: authorization?.reason ?? "The agent is not ready yet." };
      return spawn(request, { signal });
    },
  };
}
