import { defined } from "@retinue/base/foundation/defined.ts";
import type { AgentDefinition } from "@retinue/config/agents/agent-definition.ts";
import { unsafeManagedCode } from "@retinue/config/settings/load-settings.ts";
import type { RunEvent } from "../conversation/run-event.ts";
import { createRequestRecorder } from "../journal/create-request-recorder.ts";
import { outputFolder, sessionFiles } from "../journal/session-files.ts";
import type { AgentPlan } from "../planning/agent-plan.ts";
import { findEndedTask } from "../tasks/find-ended-task.ts";
import { controlFiles } from "../tasks/op-files.ts";
import { createAgentTaskSource } from "../tasks/open-agent-output.ts";
import { readReportedAgents } from "../tasks/reported-agents.ts";
import { createTaskManager, readChildLimits } from "../tasks/task-manager.ts";
import { createTreeBudget } from "../tasks/tree-budget.ts";
import { watchControl, watchMain } from "../tasks/watch-control.ts";
import { createStopwatch, type RunWatch, type Stopwatch } from "../tasks/watch-run.ts";
import { deliveredMail } from "../teams/mailbox.ts";
import { createAcceptedFiles } from "./agent/accepted-files.ts";
import type { AgentServices } from "./agent/agent-services.ts";
import { openAsking } from "./agent/approval-routing.ts";
import { assembleTools, createToolContexts, openSandboxes, prepareMemory } from "./agent/assemble-tools.ts";
import { equipAgent } from "./agent/equip-agent.ts";
import { createForkSkill } from "./agent/fork-skill.ts";
import { followersOf } from "./agent/open-child.ts";
import { childrenCapability, openChildren } from "./agent/open-children.ts";
import { openSkills } from "./agent/session-skills.ts";
import { createUnattendedBudget } from "./agent/wait-for-quota.ts";
import { openInbox } from "./approvals/open-inbox.ts";
import { chooseFallbacks, chooseModel, modelFinder, refuseUnserved } from "./choose-model.ts";
import { gatherSystemPrompt } from "./gather-system-prompt.ts";
import { runningTasks } from "./hooks/running-tasks.ts";
import { createLiveText, liveFiles } from "./live/live-text.ts";
import { chooseSession, openTranscript } from "./open-transcript.ts";
import type { SessionSetup } from "./options/runtime-options.ts";
import {
  createChildOutputs,
  createTypedOutput,
  outputCapability,
  remindingOutputCapability,
} from "./options/typed-output.ts";
import { recoverAgents } from "./recover-agents.ts";
import type { FolderContext, RuntimeContext } from "./runtime-context.ts";
import { refuseMissingPromptTool, type SessionServers } from "./servers/session-servers.ts";
import { createSession, type Session } from "./session.ts";
import { openSessionCommands } from "./session-commands.ts";
import {
  decidePlan,
  findFolders,
  findWalled,
  limitFacts,
  mayLoadIn,
  requireSandbox,
  rulesOf,
} from "./session-rules.ts";
import { findSavedWorkflows } from "./workflows/find-saved-workflows.ts";
import { createWorkflowRuns, stoppingRuns } from "./workflows/workflow-runs.ts";
import { workflowSkills } from "./workflows/workflow-skills.ts";

export interface OpenSessionParts {
  readonly definition: AgentDefinition | undefined;
  /** Reads the agents again. */
  readonly loadRegistry: () => Promise<Pick<FolderContext, "discovered">>;
  readonly servers: Promise<SessionServers>;
  readonly signal: AbortSignal;
}

const mailEvents: ReadonlySet<RunEvent["type"]> = new Set(["user-added", "run-ended"]);

/** Facts, plan, and an agent that is opened from the plan, with a transcript and children around it. */
export async function openSession<Output>(
  runtime: RuntimeContext,
  options: SessionSetup<Output>,
  { loadRegistry, signal, ...given }: OpenSessionParts,
): Promise<Session<Output>> {
  const { live, notice } = runtime;
  const { background = "wait", childrenOnly = false, takeOver = false } = options;
  const maxRetries = runtime.variables.maxStructuredOutputRetries;
  const remindsOnce = live?.remindsOnceOfOutput === true;
  const output = options.output && createTypedOutput(options.output, { maxRetries, remindsOnce });
  const session = await planMain(runtime, options, given);
  const { plan, model, tasks, control, system, servers, commands, tools, limits } = session;
  const { memory } = plan;
  const treeTime = createStopwatch(runtime.clock);
  const stopwatch = createStopwatch(runtime.clock, treeTime);
  const { chosen } = session;
  const record = await openTranscript(plan, runtime, { chosen, options, branch: system.branch, signal });
  const { commit, earlier } = record;
  // A copy is another session, to which nothing of this was reported.
  const resumed = chosen.from === chosen.sessionId ? earlier : undefined;
  const received = resumed && { ...readReportedAgents(resumed.records), answered: resumed.answered };
  for (const note of session.preloaded.notes) notice?.(note);
  // What hooks of the start set for later commands, of children too.
  const environment = new Map<string, string>();
  const services = openServices(runtime, session, { options, environment });
  let opened: Session<Output> | undefined;
  const children = openChildren({
    services,
    loadRegistry,
    tasks,
    parent: { plan, model, stopwatch },
    messages: () => opened?.messages() ?? [],
    context: system.child,
    commands,
    outputs: createChildOutputs({ maxRetries }),
    limitFacts: limits,
    clocks: {
      clock: runtime.clock,
      tree: treeTime,
      treeTimeMs: plan.treeLimits?.timeMs?.value,
      backgroundStopMs: limits.background?.stopMs,
    },
    readsNotices: !childrenOnly,
    leadsTeam: !childrenOnly || options.leadsTeam === true,
    takeOver,
    mail: { delivered: resumed === undefined ? new Set() : deliveredMail(resumed.records), commit },
    background,
    workflows: session.workflows,
  });
  const agent = await equipAgent(plan, services, {
    stopwatch,
    commit,
    definition: given.definition,
    model,
    output,
    main: {
      source: sourceOf(chosen),
      environment,
      fork: createForkSkill({ plan, children: () => children }),
      tasks: () => tasks.list().filter(({ parentId }) => parentId === plan.agent.id),
      runningTasks: () =>
        runningTasks({
          agents: tasks.list(),
          workflows: session.workflows?.runs.list() ?? [],
          commands: tools.commands(),
        }),
      first: [
        ...(control === undefined ? [] : [{ messages: control.takeMessages }]),
        ...(live?.reading === undefined ? [] : [{ messages: live.reading.takeMessages }]),
        childrenCapability(children, plan),
      ],
      last:
        output === undefined ? [] : [(remindsOnce ? remindingOutputCapability : outputCapability)(output)],
    },
  });
  const { team } = children;
  team?.attach(agent);
  opened = createSession<Output>({
    plan,
    agent,
    children,
    services,
    control,
    watch: mainWatch(plan, { runtime, stopwatch, treeTime }),
    stopsBackground: background === "stop",
    slashCommands: options.slashCommands !== false,
    mentions: options.mentions === true,
    begin: memory && (() => prepareMemory(memory, notice)),
    recover:
      received &&
      ((stop) => recoverAgents({ runtime, plan, received, children, commands, takeOver, signal: stop })),
    record: {
      ...record,
      // What is written down is also reported to the team.
      sinks: [
        ...followersOf(plan, services),
        ...record.sinks,
        ...(team === undefined ? [] : [{ types: mailEvents, take: team.recorded }]),
      ],
    },
    output,
    async dispose(endAgent) {
      try {
        await endAgent();
        await tools.dispose();
      } finally {
        services.inbox?.[Symbol.dispose]();
        await services.unattended?.close();
        services.liveText.close();
        await record.close();
        await servers[Symbol.asyncDispose]();
      }
    },
  });
  record.setIdle?.(true);
  return opened;
}

type PlannedSession = Awaited<ReturnType<typeof planMain>>;

/** Everything that is found out before the plan (model, session, skills, prompt, servers, commands, tools), and the plan. */
async function planMain(
  runtime: RuntimeContext,
  options: SessionSetup,
  { definition, servers: connecting }: Pick<OpenSessionParts, "definition" | "servers">,
) {
  const { discovered, keepsTranscripts } = runtime;
  const { transcripts } = discovered.paths;
  const { planOnly = false, permissionPromptTool: promptTool } = options;
  // Trying the wall out takes as long as starting a process: it runs beside what is read until the plan needs its answer.
  const looking = findWalled(runtime);
  looking.catch(() => undefined);
  const { model, decided, chosen: chosenModel, ...found } = await chooseModel(runtime, options, definition);
  const fallbacks = await chooseFallbacks(runtime, options, chosenModel);
  const notes = [...found.notes, ...fallbacks.notes];
  const chosen = await chooseSession(options, transcripts, runtime.ids);
  const { sessionId } = chosen;
  const files = sessionFiles(transcripts, sessionId);
  const settings = discovered.settings.settings.plain;
  const manager = createTaskManager({
    ...readChildLimits(settings.limits, runtime.variables.maxConcurrentSubagents),
    ...defined(runtime.childLimits ?? {}),
    now: runtime.now,
  });
  // Where something is written down, other processes reach the children and the main agent.
  const reached = keepsTranscripts ? controlFiles(files) : undefined;
  const runs = createWorkflowRuns((at) => at - runtime.epochMs() + runtime.now());
  const stoppable = stoppingRuns(manager, runs);
  const tasks = reached === undefined ? stoppable : watchControl(stoppable, reached);
  const rules = rulesOf(runtime, options);
  const mayLoad = mayLoadIn(runtime, rules);
  const { id: modelId, contextWindow } = model.facts;
  const saved = await findSavedWorkflows(runtime, rules.deny);
  const workflows = saved === undefined ? undefined : { saved, runs };
  const skills = await openSkills(runtime, {
    ...{ sessionId, contextWindow, deny: rules.deny, mayLoad },
    added: (taken) => workflowSkills(saved ?? new Map(), taken),
  });
  const preloaded = skills.preload(definition);
  const system = await gatherSystemPrompt({
    ...{ runtime, options, definition, modelId, skills, preloaded, rules, mayLoad },
  });
  const servers = await connecting;
  if (!planOnly && promptTool !== undefined) refuseMissingPromptTool(promptTool, servers.tools);
  const commands = await openSessionCommands(runtime, files, options);
  const tools = assembleTools(runtime, {
    servers,
    commands,
    promptTool,
    hasSkills: skills.areOffered,
    hasWorkflows: workflows !== undefined,
    deferral: { mode: runtime.variables.toolSearch, contextWindow },
    sandboxes: openSandboxes(runtime, rules.deny),
    taskSources: [
      createAgentTaskSource(tasks, {
        outputFile: (id) => (keepsTranscripts ? files.agent(id).output : undefined),
        recall: (id) => findEndedTask(transcripts, { sessionId, id }),
      }),
      ...(workflows === undefined ? [] : [workflows.runs.source]),
    ],
  });
  const limits = limitFacts(runtime, options);
  if (!planOnly) await requireSandbox(runtime);
  const { place: memory, diagnostics } = system.memory;
  // The person must learn that what the organisation says does not count.
  const unsafe = discovered.diagnostics.filter(({ code }) => code === unsafeManagedCode);
  const plan = decidePlan(runtime, options, {
    sessionId,
    chosenModel,
    definition,
    model: decided,
    canSearch: () => model.facts.supportsServerTools,
    available: tools.available,
    servers: servers.servers,
    serverInstructions: servers.instructions,
    system: system.parts,
    memory,
    skills: preloaded.names,
    limits,
    rules,
    notes: [
      ...notes,
      ...unsafe.map(({ message, advice }) => `${message} ${advice ?? ""}`.trim()),
      ...system.notes,
      ...diagnostics.map(({ message }) => message),
      ...preloaded.notes,
      ...servers.notes,
    ],
    ...(await findFolders(runtime, files, outputFolder(runtime, sessionId))),
    ...(await looking),
  });
  // A plan may be carried out elsewhere, by a process that has a key.
  if (!planOnly && options.offlineDemo !== true) refuseUnserved(runtime, options.model, chosenModel);
  return {
    fallbackModels: fallbacks.names,
    // Whatever was decided elsewhere, here this model answers.
    plan: { ...(runtime.wrapPlan?.(plan) ?? plan), chosenModel },
    ...{
      model,
      chosen,
      files,
      tasks,
      workflows,
      skills,
      preloaded,
      system,
      servers,
      commands,
      tools,
      limits,
    },
    control: reached === undefined ? undefined : watchMain(reached),
  };
}

/** What all agents of the session share. */
function openServices(
  runtime: RuntimeContext,
  { plan, files, tools, servers, skills, limits, fallbackModels }: PlannedSession,
  { options, environment }: { readonly options: SessionSetup; readonly environment: Map<string, string> },
): AgentServices {
  const { approver, keepsTranscripts } = runtime;
  const { projectRoot } = runtime.discovered.paths;
  const inbox = options.planOnly === true ? undefined : openInbox(runtime, plan);
  return {
    inbox,
    liveText: createLiveText(keepsTranscripts ? liveFiles(files) : undefined),
    recordRequest: keepsTranscripts ? createRequestRecorder(files.directory) : undefined,
    ...{ runtime, files, tools, servers, skills },
    findModel: modelFinder(runtime, plan.chosenModel),
    fallbackModels,
    acceptedFiles: createAcceptedFiles(),
    shownRunners: new Set(),
    loadedTools: new Map(),
    main: plan.agent,
    toolContext: createToolContexts(runtime, plan, environment),
    asking: approver && openAsking(approver, plan, { projectRoot, mode: runtime.live?.reading?.mode }),
    tree: runtime.live?.tree ?? createTreeBudget(plan.treeLimits, { ...limits.settings }),
    ...(runtime.quotas === undefined || options.planOnly === true
      ? {}
      : {
          unattended: createUnattendedBudget({
            session: plan.sessionId,
            maxUsd: runtime.discovered.settings.settings.plain.quota?.maxUsdUnattended,
            quotas: runtime.quotas,
            clock: runtime.clock,
            isOfAgent: (runtime.environment["CLAUDECODE"] ?? "") !== "",
            unknownPrice: limits.settings?.unknownPrice,
          }),
        }),
  };
}

function sourceOf({
  from,
  sessionId,
}: Awaited<ReturnType<typeof chooseSession>>): "startup" | "resume" | "fork" {
  if (from === undefined) return "startup";
  return from === sessionId ? "resume" : "fork";
}

/** The main agent is not watched for silence: its caller sees that, and its children are watched themselves. */
function mainWatch(
  { limits, treeLimits }: AgentPlan,
  {
    runtime: { clock },
    stopwatch,
    treeTime,
  }: { readonly runtime: RuntimeContext; readonly stopwatch: Stopwatch; readonly treeTime: Stopwatch },
): RunWatch {
  return {
    clock,
    stopwatch,
    ...(limits?.timeMs === undefined ? {} : { timeMs: limits.timeMs.value }),
    ...(treeLimits?.timeMs === undefined
      ? {}
      : { tree: { stopwatch: treeTime, timeMs: treeLimits.timeMs.value } }),
  };
}
