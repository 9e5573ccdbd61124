import { defined } from "@retinue/base/foundation/defined.ts";
import { placeText } from "@retinue/base/foundation/diagnostic.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { AgentDefinition } from "@retinue/config/agents/agent-definition.ts";
import { noSuchAgent } from "@retinue/config/agents/agent-registry.ts";
import type { DiscoveredAgents } from "@retinue/config/discovery/discover-agents.ts";
import { losesHook } from "@retinue/config/hooks/read-hooks.ts";
import { unsafeManagedCode } from "@retinue/config/settings/load-settings.ts";
import type { RunEvent } from "../conversation/run-event.ts";
import { createRequestRecorder } from "../journal/create-request-recorder.ts";
import { findChoices } from "../journal/session-choices.ts";
import { outputFolder, sessionFiles } from "../journal/session-files.ts";
import { findEndedTask } from "../tasks/find-tasks.ts";
import { createAgentTaskSource } from "../tasks/open-agent-output.ts";
import { readReportedAgents } from "../tasks/reported-agents.ts";
import { createTaskManager, readChildLimits } from "../tasks/task-manager.ts";
import { createTreeBudget } from "../tasks/tree-budget.ts";
import { controlFiles, watchControl, watchMain } from "../tasks/watch-control.ts";
import { createStopwatch, watchOf } from "../tasks/watch-run.ts";
import { deliveredMail } from "../teams/mailbox.ts";
import type { AgentServices } from "./agent/agent-services.ts";
import { openAsking } from "./agent/approval-routing.ts";
import {
  assembleTools,
  createEnvironments,
  createToolContexts,
  openSandboxes,
  prepareMemory,
} from "./agent/assemble-tools.ts";
import { createAcceptedFiles } from "./agent/create-authorize.ts";
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
import { createChildOutputs, createTypedOutput } from "./options/typed-output.ts";
import { recoverAgents } from "./recover-agents.ts";
import type { FolderContext, RuntimeContext } from "./runtime-context.ts";
import { connectSessionServers } from "./servers/connect-session-servers.ts";
import { createPromptTool, refuseMissingPromptTool, type SessionServers } from "./servers/session-servers.ts";
import { createSession, type Session } from "./session.ts";
import { openSessionCommands } from "./session-commands.ts";
import {
  decidePlan,
  findFolders,
  findWalled,
  limitFacts,
  mayLoadIn,
  refuseBrokenRestrictions,
  requireSandbox,
  rulesOf,
} from "./session-rules.ts";
import { findSavedWorkflows, workflowSkills } from "./workflows/find-saved-workflows.ts";
import { createWorkflowRuns, stoppingRuns } from "./workflows/workflow-runs.ts";

interface OpenSessionParts {
  readonly definition: AgentDefinition | undefined;
  /** Reads the agents again. */
  readonly loadRegistry: () => Promise<Pick<FolderContext, "discovered">>;
  readonly servers: Promise<SessionServers>;
  readonly signal: AbortSignal;
}

/** Opens a session while its MCP servers are connected; where it cannot be opened, they end again. */
export async function openSession<Output>(
  runtime: RuntimeContext,
  given: SessionSetup<Output>,
  { loadRegistry, signal }: Pick<OpenSessionParts, "loadRegistry" | "signal">,
): Promise<Session<Output>> {
  refuseBrokenRestrictions(runtime.discovered.settings);
  const options = await withEarlierChoices(runtime, given);
  const stop = new AbortController();
  const definition = findMainAgent(runtime.discovered, options.agent);
  const planOnly = options.planOnly === true;
  if (!planOnly) {
    reportFolder(runtime);
  }
  const servers = connectSessionServers(runtime, {
    definition,
    planOnly,
    sessionId: options.sessionId ?? options.resume ?? "",
    signal: AbortSignal.any([signal, stop.signal]),
  });
  const ended = servers.catch(() => undefined);
  const { permissionPromptTool: asked } = options;
  const around = asked === undefined ? runtime : { ...runtime, canUseTool: createPromptTool(asked, servers) };
  try {
    return await openMain(around, options, { definition, loadRegistry, servers, signal });
  } catch (error) {
    stop.abort(error);
    await (await ended)?.[Symbol.asyncDispose]();
    throw error;
  }
}

const mailEvents: ReadonlySet<RunEvent["type"]> = new Set(["user-added", "run-ended"]);

/** Facts, plan, and an agent that is opened from the plan, with a transcript and children around it. */
async function openMain<Output>(
  runtime: RuntimeContext,
  options: SessionSetup<Output>,
  { loadRegistry, signal, ...given }: OpenSessionParts,
): Promise<Session<Output>> {
  const { live, notice } = runtime;
  const { background = "wait", childrenOnly = false, takeOver = false } = options;
  const maxRetries = runtime.variables.maxStructuredOutputRetries;
  const output =
    options.output &&
    (await createTypedOutput(options.output, { maxRetries, remindsOnce: live?.remindsOnceOfOutput }));
  const session = await planMain(runtime, options, given);
  const { plan, model, tasks, control, system, servers, commands, tools, limits } = session;
  const { memory } = plan;
  const { clock } = runtime;
  const clocks = {
    clock,
    tree: createStopwatch(clock),
    treeTimeMs: plan.treeLimits?.timeMs?.value,
    backgroundStopMs: limits.background?.stopMs,
  };
  const stopwatch = createStopwatch(clock, clocks.tree);
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
    clocks,
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
    },
    first: [
      ...(control === undefined ? [] : [{ messages: control.takeMessages }]),
      ...(live?.reading === undefined ? [] : [{ messages: live.reading.takeMessages }]),
      childrenCapability(children, plan),
    ],
  });
  const { team } = children;
  team?.attach(agent);
  opened = createSession<Output>({
    plan,
    agent,
    children,
    services,
    control,
    watch: watchOf(plan, clocks, stopwatch),
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
  const manager = createTaskManager({
    ...readChildLimits(discovered.settings.settings.plain.limits, runtime.variables.maxConcurrentSubagents),
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
    sessionId,
    contextWindow,
    deny: rules.deny,
    mayLoad,
    added: (taken) => workflowSkills(saved ?? new Map(), taken),
  });
  const preloaded = skills.preload(definition);
  const system = await gatherSystemPrompt({
    runtime,
    options,
    definition,
    modelId,
    skills,
    preloaded,
    rules,
    mayLoad,
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
  const environmentOf = createEnvironments(runtime, environment);
  return {
    inbox,
    liveText: createLiveText(keepsTranscripts ? liveFiles(files) : undefined),
    recordRequest: keepsTranscripts ? createRequestRecorder(files.directory) : undefined,
    runtime,
    files,
    tools,
    servers,
    skills,
    findModel: modelFinder(runtime, plan.chosenModel),
    fallbackModels,
    acceptedFiles: createAcceptedFiles(),
    unasked: [],
    shownRunners: new Set(),
    loadedTools: new Map(),
    main: plan.agent,
    toolContext: createToolContexts(runtime, plan, environmentOf),
    environmentOf,
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

/** The agent that is the main thread, where the call or settings name one. */
function findMainAgent(
  { registry, settings }: DiscoveredAgents,
  named: string | undefined,
): AgentDefinition | undefined {
  const name = named ?? settings.settings.plain.agent;
  if (name === undefined || name === "") return undefined;
  const found = registry.find(name);
  if (found.type === "found") return found.agent.definition;
  if (found.type === "denied") {
    throw new RetinueError(
      "agent-denied",
      `The agent ${JSON.stringify(name)} is denied by the rule ${found.rule}.`,
    );
  }
  throw noSuchAgent(name, found);
}

/** Shows what of the folder does not count. Nothing of that is silent, because a hook may be there to refuse something. */
function reportFolder({ changed, discovered, live, notice = () => undefined }: RuntimeContext): void {
  const { settings } = discovered.settings;
  // Some hosts show by themselves what waits until the folder is trusted; here there is no person to ask.
  if (live?.showsTrust !== true) {
    if (changed !== undefined)
      notice(
        `This folder is not trusted any more, because ${changed}. \`retinue trust\` shows what changed and asks; \`retinue agents lock\` accepts it for the whole team.`,
      );
    const held = settings.heldBack.filter(
      ({ key, reason }) => reason === "folder-not-trusted" && key.startsWith("hooks."),
    );
    if (held.length > 0) {
      const files = [...new Set(held.map(({ source }) => source.file ?? source.scope))].join(", ");
      const hooks = held.length === 1 ? "1 hook does" : `${held.length} hooks do`;
      notice(
        `${hooks} not run, because this folder is not trusted (${files}). \`retinue trust\`, or /trust in the terminal, shows what is held back; --trust allows it for one run.`,
      );
    }
  }
  // One that cannot be read, or that nothing can match.
  for (const diagnostic of discovered.settings.diagnostics.filter(losesHook)) {
    const place = diagnostic.file === undefined ? "" : `${placeText(diagnostic)}: `;
    notice([`${place}${diagnostic.message}`, diagnostic.advice ?? ""].join(" ").trim());
  }
}

/** The options with the agent and model of the session that is resumed, where they name none themselves. */
async function withEarlierChoices<Output>(
  { discovered, ids }: RuntimeContext,
  options: SessionSetup<Output>,
): Promise<SessionSetup<Output>> {
  if (options.resume === undefined && options.continue !== true) return options;
  const { transcripts } = discovered.paths;
  const { from } = await chooseSession(options, transcripts, ids);
  if (from === undefined) return options;
  const { agent, model } = await findChoices(sessionFiles(transcripts, from).transcript);
  const found = discovered.registry.find(agent ?? "").type;
  // Without its agent the session would continue with other rights than it had.
  if (options.agent === undefined && agent !== undefined && agent !== "" && found !== "found") {
    const what = found === "denied" ? "is denied by a rule now" : "no longer exists";
    throw new RetinueError(
      "unknown-agent",
      `The session ran as the agent ${JSON.stringify(agent)}, which ${what}.`,
      { advice: 'Choose another with --agent, or none with --agent "".' },
    );
  }
  // By its id the session is found again immediately, and is the same one even if another was written to meanwhile.
  return {
    agent,
    model,
    ...options,
    resume: from,
  };
}
