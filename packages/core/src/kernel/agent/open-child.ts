import { settledSoon } from "@retinue/base/foundation/abortable.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { AgentDefinition } from "@retinue/config/agents/agent-definition.ts";
import type { Approver } from "@retinue/gate/approver.ts";
import { decideCall } from "@retinue/gate/decide-call.ts";
import { isInside, withMode } from "@retinue/gate/permission-policy.ts";
import { suggestRules } from "@retinue/gate/suggest-rules.ts";
import { countedEvents, createTreeFold } from "../../conversation/agent-event.ts";
import type { Message } from "../../conversation/message.ts";
import type { EventSink, RunEvent } from "../../conversation/run-event.ts";
import { type SpentRecord, spentRecord } from "../../conversation/spent-record.ts";
import { loadSession } from "../../journal/session-choices.ts";
import type { Model } from "../../models/model.ts";
import { type AgentPlan, type ChildPlan, isSameModel, startOf } from "../../planning/agent-plan.ts";
import type { ChildFacts, SpawnRequest } from "../../planning/agent-request.ts";
import { inWorktree } from "../../planning/in-worktree.ts";
import { withinDepth } from "../../planning/plan-rights.ts";
import { bandsOnly } from "../../planning/quote-agent.ts";
import { withinSession } from "../../planning/within-own-rights.ts";
import type { TaskState } from "../../protocol/agent-state.ts";
import { openChildRecord } from "../../tasks/child-record.ts";
import {
  createLocalExecutor,
  type KeptWorktree,
  type OpenAgent,
  type OpenedChild,
  type RefusedChild,
  runWatched,
} from "../../tasks/run-agent.ts";
import type { TaskControl } from "../../tasks/task-manager.ts";
import { refuseUnpaid } from "../../tasks/tree-budget.ts";
import { createStopwatch, type Stopwatch } from "../../tasks/watch-run.ts";
import { makeWorktree } from "../../tasks/worktree/make-worktree.ts";
import { readWorktreeSettings } from "../../tasks/worktree/read-worktree-settings.ts";
import type { Tool } from "../../tools/tool.ts";
import { liveTextEvents } from "../live/live-text.ts";
import type { ChildServers } from "../servers/session-servers.ts";
import type { MemberProcesses } from "../teams/create-member-processes.ts";
import { openTeamMember } from "../teams/open-team-member.ts";
import type { AgentServices } from "./agent-services.ts";
import { prepareMemory } from "./assemble-tools.ts";
import { type ChildSession, keptInBackground, refusePlan } from "./child-session.ts";
import { equipAgent } from "./equip-agent.ts";
import { openAgent, toolsOf } from "./open-agent.ts";
import { openRunner, reportRunner } from "./open-runner.ts";
import {
  gatherChild,
  hasServers,
  type MadeFacts,
  planGathered,
  refuseStart,
  startable,
} from "./plan-child.ts";
import { settleChild } from "./settle-child.ts";

interface OpenOptions {
  readonly signal: AbortSignal;
}

/** What was made for one child alone, and must be given back. */
interface ChildResources {
  servers?: ChildServers;
  worktree?: ChildWorktree;
  model?: Model;
}

/** A child from its request. Everything that has to be made or asked comes before the plan, so that the plan is final. */
export function openChild(
  request: SpawnRequest,
  session: ChildSession,
  { signal }: OpenOptions,
): Promise<OpenedChild | RefusedChild> {
  return releaseUnlessOpened(async (resources) => {
    const { runtime, servers, tools } = session.services;
    const gathered = await gatherChild(request, session);
    if (gathered.type === "refused") return gathered;
    const { background, context } = gathered;
    const { definition } = gathered.facts;
    const noRoom = refuseRoom({ background, workflow: gathered.request.workflow }, session);
    if (noRoom !== undefined) return refused(noRoom);
    const { approver } = runtime;
    const withServers = hasServers(gathered);
    // One that may ask later need not be asked for everything beforehand.
    const mayAsk = gathered.facts.backgroundKeeps?.includes("questions") === true;
    const isAsked = background && !mayAsk && approver !== undefined;
    const made: { -readonly [Key in keyof MadeFacts]: MadeFacts[Key] } = {};
    const { given } = gathered.request;
    if (given !== undefined) {
      made.worktree = given.worktree;
      made.preapproved = given.rules;
      made.system = await context.system(gathered.request, given.worktree.directory);
    }
    // A working tree and grants of a person are for a certain child, so a first plan decides whether it can be had at all.
    if (isAsked || (gathered.request.isolation ?? definition.isolation) !== undefined) {
      const known = await servers.connectFor(definition, { withServers, starts: false, signal });
      const sketch = planGathered(gathered, known);
      if (sketch.type === "refused") return sketch;
      const unable = await prepareModel(sketch.plan, session, resources);
      if (unable !== undefined) return unable;
      if (sketch.plan.task.isolation !== undefined) {
        const worktree = await makeChildWorktree(sketch.plan, session, signal);
        if (worktree.type === "refused") return worktree;
        resources.worktree = worktree;
        made.worktree = worktree.place;
        made.system = await context.system(
          gathered.request,
          startOf(inWorktree(sketch.plan, worktree.place)),
        );
      }
      // A person who does not answer, or an approver that fails, grants nothing; the child starts all the same.
      if (isAsked)
        made.preapproved = await preapprove(sketch.plan, {
          approver,
          main: session.parent.plan,
          tools: tools.tools,
          signal,
        }).catch(() => {
          signal.throwIfAborted();
          return [];
        });
    }
    resources.servers = await servers.connectFor(definition, {
      withServers,
      // A program of another vendor starts its servers itself.
      starts: definition.runner === undefined,
      signal,
      directory: made.worktree?.directory,
    });
    const decided = planGathered(gathered, resources.servers, made);
    const planned = decided.type === "planned" ? await startable(decided) : decided;
    if (planned.type === "refused") return planned;
    for (const note of context.skills?.notes ?? []) runtime.notice?.(note);
    let { plan } = planned;
    const { quotes } = session;
    // Where settings want quotes to be kept; one that cannot be made keeps nothing up.
    if (plan.quote === undefined && quotes.settings !== undefined) {
      const quoted = await quotes.agent(plan).catch(() => undefined);
      if (quoted !== undefined) plan = { ...plan, quote: bandsOnly(quoted) };
    }
    return openPlanned(plan, session, { resources, signal, definition, forksFrom: session.messages });
  });
}

/** The same for a plan that was decided before, perhaps by another process. */
export function openChildPlan(
  made: ChildPlan,
  session: ChildSession,
  { signal }: OpenOptions,
): Promise<OpenedChild | RefusedChild> {
  return releaseUnlessOpened(async (resources) => {
    const { services, parent } = session;
    const mode = services.runtime.live?.reading?.mode();
    const plan = withinDepth(
      withinSession(made, { policy: withMode(parent.plan.policy, mode) }),
      session.parent.plan,
    );
    const { task, directory, functions = [] } = plan;
    const reason = refuseRoom(task, session) ?? refusePlan(plan, services) ?? (await refuseStart(plan));
    if (reason !== undefined) return refused(reason);
    // A plan that was made elsewhere names the working tree it was made for.
    if (task.isolation !== undefined) {
      if (directory === plan.sessionDirectory)
        return refused("its plan asks for a worktree of its own, and none was created for it yet");
      const worktree = await makeChildWorktree(
        { ...plan, task: { ...task, resumed: true } },
        session,
        signal,
      );
      if (worktree.type === "refused") return worktree;
      resources.worktree = worktree;
      if (worktree.place.directory !== directory)
        return refused(`its working tree ${directory} no longer exists`);
    }
    resources.servers = await services.servers.connectFor(plan.definition, {
      withServers: !task.background || plan.policy.backgroundKeeps?.includes("mcpTools") === true,
      starts: plan.runner === undefined,
      signal,
      directory,
    });
    const found = functions.some(({ kind }) => kind === "onEnd")
      ? (await session.loadRegistry()).discovered.registry.find(task.agentType)
      : undefined;
    const definition = found?.type === "found" ? found.agent.definition : undefined;
    const forksFrom = () =>
      plan.history === undefined ? session.messages() : loadHistory(plan.history, session);
    return openPlanned(plan, session, { resources, signal, definition, forksFrom });
  });
}

/** A working tree of a child's own. */
interface ChildWorktree {
  readonly type: "made";
  readonly place: NonNullable<ChildFacts["worktree"]>;
  /** The child is on disk now, so that another process that finds this one dead knows whose place it is. */
  readonly markStarted: () => void;
  readonly finish: () => Promise<KeptWorktree | undefined>;
}

const worktreeLimitMs = 120_000;

/** Makes the child's own working tree, or takes the one it has, until its caller is stopped and within a limit. */
async function makeChildWorktree(
  { agent, task, sessionDirectory }: ChildPlan,
  { services: { runtime } }: Pick<ChildSession, "services">,
  signal: AbortSignal,
): Promise<ChildWorktree | RefusedChild> {
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
    markStarted: worktree.markStarted,
    async finish() {
      const { kept, path, branch } = await worktree.finish();
      return kept ? { path, branch } : undefined;
    },
  };
}

/** A person who does not answer in this time has not granted anything. */
const answerTimeoutMs = 10 * 60_000;

/**
 * Before a child goes to the background, one question for all tools that it has and all its checks that no rule allows. The
 * rules that the person grants are a fact for its plan; everything else is refused later, because the child is unattended then.
 */
async function preapprove(
  sketch: ChildPlan,
  {
    approver,
    main,
    tools,
    signal,
  }: {
    readonly approver: Approver;
    readonly main: AgentPlan;
    readonly tools: readonly Tool[];
    /** Aborted when the agent is not wanted any more; the question is closed then. */
    readonly signal: AbortSignal;
  },
): Promise<readonly string[]> {
  const asked = toolsToAskFor(sketch, tools);
  const needed = asked.includes("Bash") ? asked : [...asked, ...(await checksToAskFor(sketch))];
  if (needed.length === 0) return [];
  const answer = await approver.approve(
    {
      sessionId: main.sessionId,
      agentId: sketch.agent.id,
      agentPath: [main.agent, sketch.agent],
      callId: sketch.task.callId ?? sketch.agent.id,
      tool: "Agent",
      input: {
        description: sketch.task.description,
        subagent_type: sketch.task.agentType,
        prompt: sketch.task.prompt,
      },
      reason: `in the background it cannot ask for approval, and it may use ${needed.join(", ")}`,
      suggestedRules: needed,
    },
    { signal: AbortSignal.any([signal, AbortSignal.timeout(answerTimeoutMs)]) },
  );
  if (answer.type !== "allow") return [];
  return answer.for === "call" ? needed : (answer.rules ?? needed);
}

/** Effects that a person is asked about; what only reads or talks to the runtime needs no question. */
const askedEffects: ReadonlySet<string> = new Set(["edit", "execute", "network"]);

const modesWithoutQuestions: ReadonlySet<string> = new Set(["bypassPermissions", "dontAsk", "plan"]);

/** Rules for the checks that no rule allows: they are run unattended. */
async function checksToAskFor({ verify, policy, directory }: ChildPlan): Promise<readonly string[]> {
  if (modesWithoutQuestions.has(policy.mode)) return [];
  const { toolScopes: _scopes, background: _background, ...person } = policy;
  const rules: string[] = [];
  for (const { run, refused } of verify?.checks ?? []) {
    if (refused !== undefined) continue;
    const call = { tool: "Bash", effect: "execute", input: { command: run }, paths: [] } as const;
    const { type, request } = await decideCall(call, person, { directory, attended: true });
    if (type === "ask") rules.push(...suggestRules(request, person, { anchor: directory }));
  }
  return rules;
}

/** The tools of a child that no rule allows as a whole: in the background it could not ask for them. */
function toolsToAskFor(
  { tools: grants, policy }: ChildPlan,
  tools: readonly { readonly name: string; readonly effect: string }[],
): readonly string[] {
  if (modesWithoutQuestions.has(policy.mode)) return [];
  const allowed = new Set(
    policy.allow.filter(({ rule }) => rule.specifier.type === "whole").map(({ rule }) => rule.canonicalTool),
  );
  return tools
    .filter(
      ({ name, effect }) =>
        askedEffects.has(effect) &&
        // In its own memory an agent needs no permission.
        grants.some((grant) => grant.name === name && grant.confinedTo === undefined) &&
        !allowed.has(name),
    )
    .filter(({ effect }) => policy.mode !== "acceptEdits" || effect !== "edit")
    .map(({ name }) => name);
}

/** What is made for a child that is not opened after all is given back. */
async function releaseUnlessOpened<Outcome extends { readonly type: string }>(
  open: (resources: ChildResources) => Promise<Outcome>,
): Promise<Outcome> {
  const resources: ChildResources = {};
  let isOpened = false;
  try {
    const outcome = await open(resources);
    isOpened = outcome.type !== "refused";
    return outcome;
  } finally {
    if (!isOpened) {
      await resources.servers?.release();
      await resources.worktree?.finish();
    }
  }
}

/** Asked once it is known whether the child runs in the background, and before anything is made for it. */
function refuseRoom(
  { background, workflow }: Pick<ChildPlan["task"], "background" | "workflow">,
  { tasks, services }: ChildSession,
): string | undefined {
  // Steps of a workflow have places of their own.
  const full = workflow === undefined ? tasks.refusal(background) : undefined;
  return full ?? services.tree.refusal()?.error;
}

/** No model or no money is a reason not to start at all. */
async function prepareModel(
  plan: ChildPlan,
  { services: { runtime, tree }, parent }: ChildSession,
  resources: ChildResources,
): Promise<RefusedChild | undefined> {
  const { chosenModel } = plan;
  // A program's own model serves its children too, unless they name another.
  const isParents = runtime.model !== undefined || isSameModel(chosenModel, parent.plan.chosenModel);
  resources.model ??= isParents ? parent.model : await runtime.models.model(chosenModel);
  const unpaid = refuseUnpaid(plan, resources.model, tree);
  return unpaid === undefined ? undefined : refused(unpaid);
}

/** The messages of a transcript that a plan refers to. */
async function loadHistory(
  { transcript, messages }: NonNullable<AgentPlan["history"]>,
  { services: { files } }: ChildSession,
): Promise<readonly Message[]> {
  // A plan could name any file; what other sessions have said is not for this one.
  if (transcript !== files.transcript && !isInside(transcript, [files.directory]))
    throw new RetinueError(
      "unreadable-plan",
      `The plan continues ${transcript}, which does not belong to its session.`,
    );
  const loaded = await loadSession(transcript);
  return loaded.messages.slice(0, messages);
}

interface Opening extends OpenOptions {
  readonly resources: ChildResources;
  /** As it was found here, with the functions of the program. */
  readonly definition: AgentDefinition | undefined;
  /** The parent's conversation, for a child that starts with it. */
  readonly forksFrom: () => readonly Message[] | Promise<readonly Message[]>;
}

/** A child whose plan is final: its record is opened, and with it the plan is on disk. */
async function openPlanned(
  plan: ChildPlan,
  session: ChildSession,
  { resources, signal, definition, forksFrom }: Opening,
): Promise<OpenedChild | RefusedChild> {
  const { services, processes, clocks } = session;
  const { runtime, files, tools } = services;
  const { id } = plan.agent;
  const { task } = plan;
  if (task.team?.isProcess === true && processes !== undefined)
    return openProcess(plan, session, { resources, definition, processes });
  const unable = await prepareModel(plan, session, resources);
  if (unable !== undefined) return unable;
  const { model, servers, worktree } = resources;
  if (model === undefined) return refused("its model could not be created");
  if (task.resumed) await settleChild(id, session, { definition: plan.definition });
  // From here on it is on disk; a caller that was stopped before that gets no child.
  if (signal.aborted) return refused("it was stopped before it started");
  const forked = task.forksContext ? await forksFrom() : [];
  const own = files.agent(id);
  const record = await openChildRecord(plan, {
    session: runtime,
    transcripts: runtime.discovered.paths.transcripts,
    files: own,
    followers: followersOf(plan, services),
    takeOver: session.takeOver,
    memory: session.memory,
    locks: session.locks,
    nextQueued: session.nextQueued,
    observer: runtime.live?.childAppended,
  });
  worktree?.markStarted();
  reportRunner(plan, services);
  const history = record.history.length === 0 ? forked : record.history;
  const { transcript } = own;
  const { commit, reported, outputFile, enterQueue, leaveQueue } = record;
  const fold = createTreeFold();
  const counting: EventSink = {
    types: countedEvents,
    take: (event) => fold.add({ ...event, agentId: id }),
  };
  const spent = (): SpentRecord | undefined => {
    const [own] = fold.totals().agents;
    return own === undefined ? undefined : spentRecord(own);
  };
  const local = createLocalExecutor((carried, line) =>
    openChildAgent(carried, session, { model, control: line, servers, transcript, spent }),
  );
  const executor = runtime.wrapExecutor?.(local) ?? local;
  const wasReported = (taskId: string): boolean =>
    JSON.stringify(history).includes(`<task-id>${taskId}</task-id>`);
  return {
    type: "opened",
    plan,
    events(line, stop) {
      leaveQueue?.();
      const control = { ...line, commit, reported };
      return runWatched(executor, { plan, history }, { control, clocks, signal: stop });
    },
    outputFile,
    sinks: [counting, ...record.sinks],
    pendingMessages: task.resumed ? session.commands.pendingMessages(id, wasReported) : [],
    enterQueue,
    async close(state) {
      if (state !== undefined) await notifyDefinition(state, definition, runtime.notice);
      leaveQueue?.();
      // A caller that learns of its end must not find it cut off later, and have it do its work again.
      await record.close();
      await Promise.all([tools.release(id), servers?.release()]);
      return worktree?.finish();
    },
  };
}

/** A program's callback that does not return is not waited for longer than this. */
const callbackLimitMs = 5000;

/** Reports to a program's definition how its agent has ended; a callback that fails costs the agent nothing. */
async function notifyDefinition(
  { id, status, ending }: TaskState,
  definition: AgentDefinition | undefined,
  report: ((message: string) => void) | undefined,
): Promise<void> {
  const { name = "", behaviour } = definition ?? {};
  if (ending === undefined || behaviour?.onEnd === undefined) return;
  try {
    const called = behaviour.onEnd({ agent: name, agentId: id, status, text: ending.text });
    const late = new RetinueError("callback-late", `it did not return within ${callbackLimitMs} ms`);
    await settledSoon(Promise.resolve(called), AbortSignal.abort(late), callbackLimitMs);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    report?.(`The \`onEnd\` of the agent ${name} failed: ${why}`);
  }
}

/** A member that another process carries out: that one opens its record, its servers and its model. */
async function openProcess(
  plan: ChildPlan,
  { services: { runtime, tools } }: ChildSession,
  {
    resources,
    definition,
    processes,
  }: Pick<Opening, "resources" | "definition"> & { readonly processes: MemberProcesses },
): Promise<OpenedChild | RefusedChild> {
  await resources.servers?.release();
  delete resources.servers;
  const refusal = processes.refuse(plan);
  if (refusal !== undefined) return refused(refusal);
  return {
    type: "opened",
    plan,
    // No clock here ends it; those of its process do.
    events: (control, signal) => processes.run(plan, control, signal),
    outputFile: processes.outputFile(plan.agent.id),
    sinks: [],
    pendingMessages: [],
    async close(state) {
      if (state !== undefined) await notifyDefinition(state, definition, runtime.notice);
      await tools.release(plan.agent.id);
      return undefined;
    },
  };
}

/** The child as its loop sees it: the same way as the main agent, with the control of its task. */
async function openChildAgent(
  plan: ChildPlan,
  session: ChildSession,
  {
    model,
    control: line,
    servers,
    transcript,
    spent,
  }: {
    readonly model: Model;
    readonly control: TaskControl;
    readonly servers: ChildServers | undefined;
    readonly transcript: string;
    readonly spent: () => SpentRecord | undefined;
  },
): Promise<OpenAgent> {
  const { services, parent, clocks, outputs } = session;
  const { runtime } = services;
  const above = session.control;
  // An agent that a subagent has started can ask questions only while the subagent can.
  const control =
    above === undefined
      ? line
      : {
          ...line,
          attended: () => line.attended() && above.attended(),
          unattended: AbortSignal.any([line.unattended, above.unattended]),
        };
  if (plan.memory !== undefined) await prepareMemory(plan.memory, runtime.notice);
  const output = outputs.of(plan.agent.id);
  const { team } = plan.task;
  const member = team === undefined ? undefined : await openTeamMember(plan, team, { runtime, control });
  const stopwatch = control.stopwatch ?? createStopwatch(clocks.clock, clocks.tree);
  const keeps = keptInBackground(runtime);
  // It is answered whether or not its parent waits for it.
  const attended = { attended: () => true, unattended: new AbortController().signal };
  const budget = services.tree.agent(plan.limits);
  const nested =
    plan.spawn === "none" ? [] : [await session.nest(session, { plan, model, control, stopwatch, budget })];
  const equipped = await equipAgent(plan, services, {
    definition: plan.definition,
    model,
    stopwatch,
    budget,
    commit: control.commit,
    output,
    child: {
      spent,
      control: keeps.includes("questions") ? { ...control, ...attended } : control,
      hasServerTools: () => keeps.includes("mcpTools") || control.attended(),
      servers,
      transcript,
      // A teammate has no caller that waits, so only its own clock stops while a person is asked.
      waiting: member === undefined ? heldWhileWaiting(parent.stopwatch, control) : stopwatch,
    },
    first: nested,
    last: member === undefined ? [] : [member.capability],
  });
  member?.attach(equipped);
  const { runner } = plan;
  return {
    ...openAgent(plan, equipped.parts),
    loop: runner && openRunner(plan, runner, { runtime, servers, budget, output }),
    standby: member?.standby,
  };
}

/** The clock of a parent, which stops for questions of a child only as long as the parent waits for that child. */
function heldWhileWaiting(
  stopwatch: Stopwatch,
  { attended, unattended }: Pick<TaskControl, "attended" | "unattended">,
): Stopwatch {
  return {
    ...stopwatch,
    async hold(wait) {
      if (!attended()) return wait();
      const answer = wait();
      const moved = Promise.withResolvers<void>();
      const move = (): void => moved.resolve();
      unattended.addEventListener("abort", move, { once: true });
      try {
        await stopwatch.hold(() => Promise.race([answer, moved.promise]));
      } finally {
        unattended.removeEventListener("abort", move);
      }
      return answer;
    },
  };
}

/** The tools that a planned child would have. Starts nothing. */
export async function plannedTools(plan: ChildPlan, { services, parent, clocks }: ChildSession) {
  const { signal } = new AbortController();
  const { parts } = await equipAgent(plan, services, {
    definition: plan.definition,
    model: parent.model,
    stopwatch: createStopwatch(clocks.clock),
    child: {
      control: { attended: () => !plan.task.background, unattended: signal, takeMessages: () => [] },
      hasServerTools: () => true,
      servers: undefined,
      transcript: services.files.agent(plan.agent.id).transcript,
      waiting: parent.stopwatch,
    },
  });
  return toolsOf(parts.capabilities);
}

function refused(reason: string): RefusedChild {
  return { type: "refused", reason };
}

/** Followers of an agent while it runs: viewers in other processes, and telemetry. */
export function followersOf(
  plan: AgentPlan,
  { liveText, runtime: { observer } }: Pick<AgentServices, "liveText" | "runtime">,
): readonly EventSink[] {
  const agentId = plan.task === undefined ? "main" : plan.agent.id;
  return [
    { types: liveTextEvents, take: (event: RunEvent) => liveText.onEvent(agentId, event) },
    ...(observer === undefined ? [] : [{ take: (event: RunEvent) => observer.event(plan, event) }]),
  ];
}
