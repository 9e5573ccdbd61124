import type { AgentDefinition } from "@retinue/config/agents/agent-definition.ts";
import { unsafeManagedCode } from "@retinue/config/settings/load-settings.ts";
import type { EventSink, RunEvent } from "../conversation/run-event.ts";
import { createRequestRecorder } from "../journal/create-request-recorder.ts";
import { outputFolder } from "../journal/session-files.ts";
import { transcriptEvents } from "../journal/transcript-writer.ts";
import type { AgentPlan } from "../planning/agent-plan.ts";
import type { LimitFacts } from "../planning/limit-plan.ts";
import type { ChildClocks } from "../tasks/task-manager.ts";
import { createTreeBudget } from "../tasks/tree-budget.ts";
import type { RunWatch } from "../tasks/watch-run.ts";
import { createStopwatch, type Stopwatch } from "../tasks/watch-run.ts";
import { createAcceptedFiles } from "./agent/accepted-files.ts";
import { type AssembledTools, createToolContexts, prepareMemory } from "./agent/assemble-tools.ts";
import { type AgentServices, type EquippedAgent, equipAgent } from "./agent/equip-agent.ts";
import { createForkSkill } from "./agent/fork-skill.ts";
import type { Capability } from "./agent/open-agent.ts";
import { followersOf } from "./agent/open-child.ts";
import { type Children, childrenCapability, openChildren } from "./agent/open-children.ts";
import { openAsking } from "./agent/people-to-ask.ts";
import { openInbox } from "./approvals/open-inbox.ts";
import type { SessionParts } from "./conversation.ts";
import { type GatheredSession, gatherSession, modelFinder, refuseUnserved } from "./gather-session.ts";
import { createLiveText, liveFiles } from "./live/live-text.ts";
import {
  type ChosenSession,
  type OpenOptions,
  type OpenTranscript,
  openTranscript,
  transcriptFacts,
} from "./open-transcript.ts";
import type { InteractiveOptions, SessionSetup } from "./options/runtime-options.ts";
import {
  createChildOutputs,
  createTypedOutput,
  outputCapability,
  remindingOutputCapability,
  type TypedOutput,
} from "./options/typed-output.ts";
import { runRecovery } from "./run-recovery.ts";
import type { RuntimeContext } from "./runtime-context.ts";
import type { SessionServers } from "./servers/session-servers.ts";
import { createSession, type Session } from "./session.ts";
import { decidePlan, findFolders, findWalled, limitFacts, requireSandbox } from "./session-rules.ts";

export interface OpenSessionParts {
  readonly definition: AgentDefinition | undefined;
  /** Reads the agents again. */
  readonly look: () => Promise<Pick<RuntimeContext, "discovered">>;
  readonly servers: Promise<SessionServers>;
  readonly signal: AbortSignal;
}

/** Facts, plan, and an agent that is opened from the plan, with a transcript and children around it. */
export async function openSession<Output>(
  runtime: RuntimeContext,
  options: SessionSetup<Output>,
  { look, signal, ...found }: OpenSessionParts,
): Promise<Session<Output>> {
  const output = openOutput(runtime, options);
  const gathered = await gatherSession(runtime, options, found);
  const { servers, tools } = gathered;
  const limited = limitFacts(runtime, options);
  const plan = await planMain(runtime, options, { gathered, limited });
  // A plan may be carried out elsewhere, by a process that has a key.
  if (options.planOnly !== true && options.offlineDemo !== true)
    refuseUnserved(runtime, options.model, gathered.chosenModel);
  const treeTime = createStopwatch(runtime.clock);
  const stopwatch = createStopwatch(runtime.clock, treeTime);
  const keeping = keepingOf(runtime, options, signal);
  const transcript = await openTranscript({ ...transcriptOf(runtime, plan, { options, gathered }), keeping });
  for (const note of gathered.preloaded.notes) runtime.notice?.(note);
  // What hooks of the start set for later commands, of children too.
  const environment = new Map<string, string>();
  const services: AgentServices = {
    ...openServices(runtime, plan, { gathered, environment, options }),
    tree: runtime.live?.tree ?? createTreeBudget(plan.treeLimits, { ...(limited.settings ?? {}) }),
  };
  const childOutputs = createChildOutputs(outputRetries(runtime));
  let opened: Session<Output> | undefined;
  const children = openChildren({
    ...childFacts(options, gathered),
    services,
    loadRegistry: look,
    takeOver: keeping.takeOver,
    parent: { plan, model: gathered.model, stopwatch },
    messages: () => opened?.messages() ?? [],
    outputs: childOutputs,
    mail: { delivered: transcript.mail ?? new Set(), commit: transcript.commit },
    limitFacts: limited,
    clocks: childClocks(plan, limited, { clock: runtime.clock, tree: treeTime }),
  });
  const { interactive } = options;
  const { commit } = transcript;
  const main = { gathered, children, output, interactive, environment, stopwatch, commit };
  const agent = await equipMain(plan, services, main);
  children.team?.attachHooks(agent.hooks);
  opened = createSession<Output>({
    plan,
    agent,
    children,
    childOutputs,
    discovered: runtime.discovered,
    ...reachOf(gathered),
    watch: mainWatch(plan, { runtime, stopwatch, treeTime }),
    stopsBackground: options.background === "stop",
    moveCommands: () => tools.moveCommands(plan.agent.id),
    partialText: services.liveText.partialText,
    ...promptFeatures(options),
    ...beginning(plan, runtime),
    ...recoveryOf(transcript.heard, { runtime, plan, children, commands: gathered.commands, ...keeping }),
    ...kept(transcript),
    sinks: sinksOf(plan, services, { transcript, children }),
    output,
    dispose: (endAgent) => closeSession(endAgent, { ...services, transcript, servers }),
  });
  transcript.setIdle?.(true);
  return opened;
}

function keepingOf({ durability, notice }: RuntimeContext, { takeOver }: SessionSetup, signal: AbortSignal) {
  return { durability, notice, takeOver: takeOver === true, signal };
}

/** Its children, its servers, and how other processes reach it. */
function reachOf({ tasks, servers, control }: GatheredSession) {
  return { tasks, mcpServers: servers.states, control };
}

function promptFeatures({ slashCommands, mentions }: SessionSetup) {
  return { slashCommands: slashCommands !== false, mentions: mentions === true };
}

/** What children take from the session as it was gathered. */
function childFacts(
  {
    childrenOnly,
    leadsTeam,
    interactive,
    background = "wait",
  }: Pick<SessionSetup, "childrenOnly" | "leadsTeam" | "interactive" | "background">,
  { tasks, system, commands }: GatheredSession,
) {
  return {
    tasks,
    context: system.child,
    commands,
    readsNotices: childrenOnly !== true,
    leadsTeam: childrenOnly !== true || leadsTeam === true,
    interactive,
    background,
  };
}

/** What a session uses of its transcript. */
function kept({ history, commit, rename, setIdle }: Awaited<ReturnType<typeof openTranscript>>) {
  return { history, commit, rename, setIdle };
}

/** The main agent's own: children, its typed result, and the start of the session for hooks. */
function equipMain(
  plan: AgentPlan,
  services: AgentServices,
  {
    gathered,
    children,
    output,
    interactive,
    environment,
    ...own
  }: {
    readonly gathered: GatheredSession;
    readonly children: Children;
    readonly output: TypedOutput | undefined;
    readonly interactive: InteractiveOptions | undefined;
    readonly environment: Map<string, string>;
    readonly stopwatch: Stopwatch;
    readonly commit: OpenTranscript["commit"];
  },
): Promise<EquippedAgent> {
  const { tasks, tools } = gathered;
  return equipAgent(plan, services, {
    ...own,
    definition: gathered.definition,
    model: gathered.model,
    main: {
      source: sourceOf(gathered.chosen),
      environment,
      fork: createForkSkill({ plan, children: () => children }),
      tasks: tasks.list,
      first: [
        ...(gathered.control === undefined ? [] : [{ messages: gathered.control.takeMessages }]),
        ...(interactive === undefined ? [] : [{ messages: interactive.takeMessages }]),
        childrenCapability(children, { plan, tools: tools.tools, tasks }),
      ],
      last: output === undefined ? [] : [outputOf(output, services.runtime)],
    },
  });
}

async function closeSession(
  endAgent: () => Promise<void>,
  {
    tools,
    transcript,
    servers,
    inbox,
    liveText,
  }: Pick<AgentServices, "inbox" | "liveText"> & {
    readonly tools: AssembledTools;
    readonly transcript: Pick<OpenTranscript, "close">;
    readonly servers: SessionServers;
  },
): Promise<void> {
  try {
    await endAgent();
    await tools.dispose();
  } finally {
    inbox?.[Symbol.dispose]();
    liveText.close();
    await transcript.close();
    await servers[Symbol.asyncDispose]();
  }
}

function transcriptOf(
  runtime: RuntimeContext,
  plan: AgentPlan,
  { options, gathered }: { readonly options: SessionSetup; readonly gathered: GatheredSession },
): Omit<OpenOptions, "keeping"> {
  return {
    ...gathered.chosen,
    isKept: runtime.keepsTranscripts && options.childrenOnly !== true,
    transcripts: runtime.discovered.paths.transcripts,
    file: gathered.files.transcript,
    ids: runtime.ids,
    now: runtime.epochMs,
    facts: transcriptFacts(runtime, plan, gathered.system.branch),
    plan,
    choices: options,
    until: options.resumeAt,
    drops: options.resumeDrops,
    observer: runtime.live?.transcript,
  };
}

function childClocks(
  { treeLimits }: AgentPlan,
  { background }: LimitFacts,
  clocks: Pick<ChildClocks, "clock" | "tree">,
): ChildClocks {
  return {
    ...clocks,
    ...(treeLimits?.timeMs === undefined ? {} : { treeTimeMs: treeLimits.timeMs.value }),
    ...(background === undefined ? {} : { backgroundStopMs: background.stopMs }),
  };
}

async function planMain(
  runtime: RuntimeContext,
  options: SessionSetup,
  { gathered, limited }: { readonly gathered: GatheredSession; readonly limited: LimitFacts },
): Promise<AgentPlan> {
  const { definition, rules, system, servers, preloaded, model, files } = gathered;
  if (options.planOnly !== true) await requireSandbox(runtime);
  const plan = decidePlan(runtime, options, {
    sessionId: gathered.chosen.sessionId,
    chosenModel: gathered.chosenModel,
    definition,
    model: gathered.decidedModel,
    canSearch: () => model.facts.supportsServerTools,
    available: gathered.tools.available,
    servers: servers.servers,
    serverInstructions: servers.instructions,
    system: system.parts,
    memory: system.memory.place,
    skills: preloaded.names,
    limits: limited,
    rules,
    notes: [
      ...gathered.modelNotes,
      ...unsafeManaged(runtime),
      ...system.notes,
      ...system.memory.diagnostics.map(({ message }) => message),
      ...preloaded.notes,
      ...servers.notes,
    ],
    ...(await findFolders(runtime, files, outputFolder(runtime, gathered.chosen.sessionId))),
    ...(await findWalled(runtime)),
  });
  // Whatever was decided elsewhere, here this model answers.
  return { ...(runtime.wrapPlan?.(plan) ?? plan), chosenModel: plan.chosenModel };
}

function openServices(
  runtime: RuntimeContext,
  plan: AgentPlan,
  {
    gathered,
    environment,
    options: { planOnly, interactive },
  }: {
    readonly gathered: GatheredSession;
    readonly environment: Map<string, string>;
    readonly options: SessionSetup;
  },
): Omit<AgentServices, "tree"> {
  const { tools, servers, skills, chosenModel } = gathered;
  const { approver } = runtime;
  const { projectRoot } = runtime.discovered.paths;
  const inbox = planOnly === true ? undefined : openInbox(runtime, plan);
  return {
    inbox,
    liveText: createLiveText(runtime.keepsTranscripts ? liveFiles(gathered.files) : undefined),
    ...(runtime.keepsTranscripts ? { recordRequest: createRequestRecorder(gathered.files.directory) } : {}),
    runtime,
    files: gathered.files,
    tools,
    servers,
    skills,
    findModel: modelFinder(runtime, chosenModel),
    acceptedFiles: createAcceptedFiles(),
    main: plan.agent,
    toolContext: createToolContexts(runtime, plan, environment),
    asking:
      approver === undefined
        ? undefined
        : openAsking(approver, plan, { projectRoot, mode: interactive?.mode }),
  };
}

function beginning({ memory }: AgentPlan, { notice }: RuntimeContext): Pick<SessionParts, "begin"> {
  return memory === undefined ? {} : { begin: () => prepareMemory(memory, notice) };
}

/** What is written down is also reported to the team. */
function sinksOf(
  plan: AgentPlan,
  services: AgentServices,
  { transcript, children: { team } }: { readonly transcript: OpenTranscript; readonly children: Children },
): readonly EventSink[] {
  return [
    ...followersOf(plan, services),
    { types: transcriptEvents, take: transcript.record },
    ...(team === undefined ? [] : [{ types: mailEvents, take: team.recorded }]),
  ];
}

const mailEvents: ReadonlySet<RunEvent["type"]> = new Set(["user-added", "run-ended"]);

function recoveryOf(
  heard: Awaited<ReturnType<typeof openTranscript>>["heard"],
  parts: Omit<Parameters<typeof runRecovery>[0], "heard" | "signal"> & { readonly children: Children },
) {
  if (heard === undefined) return {};
  return { recover: (signal: AbortSignal) => runRecovery({ ...parts, heard, signal }) };
}

/** The person must learn that what the organisation says does not count. */
function unsafeManaged({ discovered }: RuntimeContext): readonly string[] {
  const found = discovered.diagnostics.filter(({ code }) => code === unsafeManagedCode);
  return found.map(({ message, advice }) => `${message} ${advice ?? ""}`.trim());
}

function sourceOf({ from, sessionId }: ChosenSession): "startup" | "resume" | "fork" {
  if (from === undefined) return "startup";
  return from === sessionId ? "resume" : "fork";
}

function openOutput(runtime: RuntimeContext, { output }: SessionSetup) {
  if (output === undefined) return undefined;
  const remindsOnce = runtime.live?.remindsOnceOfOutput === true;
  return createTypedOutput(output, { ...outputRetries(runtime), remindsOnce });
}

function outputOf(output: TypedOutput, { live }: Pick<RuntimeContext, "live">): Capability {
  return live?.remindsOnceOfOutput === true ? remindingOutputCapability(output) : outputCapability(output);
}

function outputRetries({ variables }: RuntimeContext): { readonly maxRetries: number | undefined } {
  return { maxRetries: variables.maxStructuredOutputRetries };
}

/** The main agent is not watched for silence: its caller sees that, and its children are watched themselves. */
function mainWatch(
  { limits, treeLimits }: AgentPlan,
  {
    runtime,
    stopwatch,
    treeTime,
  }: { readonly runtime: RuntimeContext; readonly stopwatch: Stopwatch; readonly treeTime: Stopwatch },
): RunWatch {
  const own = limits?.timeMs === undefined ? {} : { timeMs: limits.timeMs.value };
  const tree = treeLimits?.timeMs;
  return {
    clock: runtime.clock,
    stopwatch,
    ...own,
    ...(tree === undefined ? {} : { tree: { stopwatch: treeTime, timeMs: tree.value } }),
  };
}
