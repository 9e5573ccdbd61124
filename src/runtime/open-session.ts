import { createStopwatch, type Stopwatch } from "../foundation/stopwatch.ts";
import { type SessionFiles, sessionFiles } from "../journal/session-files.ts";
import type { RunWatch } from "../loop/watch-run.ts";
import type { RunPlan } from "../planning/run-plan.ts";
import { unsafeManagedCode } from "../settings/find-foreign-writers.ts";
import { readEnvironment } from "../settings/read-environment.ts";
import { agentOutputFile } from "../tasks/agent-output-file.ts";
import { createTreeBudget } from "../tasks/budget/tree-budget.ts";
import { type ChildLimits, readChildLimits } from "../tasks/child-limits.ts";
import { controlFiles } from "../tasks/control-files.ts";
import { createAgentTaskSource } from "../tasks/create-agent-task-source.ts";
import { findEndedTask } from "../tasks/recovery/find-ended-task.ts";
import { createTaskManager, type TaskManager } from "../tasks/task-manager.ts";
import { watchControl } from "../tasks/watch-control.ts";
import { type AssembledTools, assembleTools } from "./agent/assemble-tools.ts";
import { createToolContexts } from "./agent/create-tool-contexts.ts";
import { type AgentServices, equipAgent } from "./agent/equip-agent.ts";
import { openAsking } from "./agent/open-asking.ts";
import { openSandboxes } from "./agent/open-sandboxes.ts";
import { prepareMemory } from "./agent/prepare-memory.ts";
import { type Children, childrenCapability, openChildren } from "./children/open-children.ts";
import { chooseModel, modelFinder } from "./choose-model.ts";
import { decidePlan } from "./decide-plan.ts";
import { findMainAgent } from "./find-main-agent.ts";
import { findWorkingDirectories } from "./find-working-directories.ts";
import { gatherSystemPrompt } from "./gather-system-prompt.ts";
import { limitFacts } from "./limit-facts.ts";
import { mayLoadIn } from "./may-load-in.ts";
import { type ChosenSession, chooseSession, openTranscript, transcriptFacts } from "./open-transcript.ts";
import { runRecovery } from "./run-recovery.ts";
import type { RuntimeContext } from "./runtime-context.ts";
import type { SessionSetup } from "./runtime-setup.ts";
import { refuseMissingPromptTool } from "./servers/create-prompt-tool.ts";
import type { SessionServers } from "./servers/session-servers.ts";
import { createSession, type Session } from "./session.ts";
import { openSessionCommands, type SessionCommands } from "./session-commands.ts";
import { denyRules, findOutputRules } from "./session-rules.ts";
import { createForkSkill } from "./skills/fork-skill.ts";
import { openSkills } from "./skills/session-skills.ts";
import { createChildOutputs, createTypedOutput, outputCapability } from "./typed-output.ts";

export interface OpenSessionParts {
  /** Reads the agents again. */
  readonly look: () => Promise<Pick<RuntimeContext, "discovered">>;
  readonly servers: Promise<SessionServers>;
  readonly signal: AbortSignal;
}

/** Facts, plan, and an agent that is opened from the plan, with a transcript and children around it. */
export async function openSession<Output>(
  world: RuntimeContext,
  options: SessionSetup<Output>,
  { look, servers: connecting, signal }: OpenSessionParts,
): Promise<Session<Output>> {
  const output = openOutput(world, options);
  const gathered = await gatherSession(world, options, connecting);
  const { chosen, servers, tools, tasks } = gathered;
  const plan = await planMain(world, options, gathered);
  const shared = plan.treeLimits;
  const limited = limitFacts(world, options);
  const treeTime = createStopwatch(world.clock);
  const stopwatch = createStopwatch(world.clock, treeTime);
  const { durability, notice } = world;
  const keeping = { durability, notice, takeOver: options.takeOver === true, signal };
  const transcript = await openTranscript({
    ...chosen,
    isKept: world.keepsTranscripts && options.childrenOnly !== true,
    transcripts: world.discovered.paths.transcripts,
    ids: world.ids,
    now: world.epochMs,
    facts: () => transcriptFacts(world, plan, gathered.system.branch),
    plan,
    choices: options,
    keeping,
  });
  for (const note of gathered.preloaded.notes) world.notice?.(note);
  // What hooks of the start set for later commands, of children too.
  const environment = new Map<string, string>();
  const services: AgentServices = {
    ...openServices(world, plan, { gathered, environment }),
    tree: createTreeBudget(shared, { ...(limited.settings ?? {}) }),
  };
  const childOutputs = createChildOutputs(outputRetries(world));
  let opened: Session<Output> | undefined;
  const children = openChildren({
    services,
    look,
    tasks,
    takeOver: keeping.takeOver,
    parent: { plan, model: gathered.model, chosenModel: gathered.chosenModel, stopwatch },
    messages: () => opened?.messages() ?? [],
    context: gathered.system.child,
    outputs: childOutputs,
    commands: gathered.commands,
    readsNotices: options.childrenOnly !== true,
    limitFacts: limited,
    clocks: {
      clock: world.clock,
      tree: treeTime,
      ...(shared?.timeMs === undefined ? {} : { treeTimeMs: shared.timeMs.value }),
      ...(limited.background === undefined ? {} : { backgroundStopMs: limited.background.stopMs }),
    },
  });
  const agent = await equipAgent(plan, services, {
    definition: gathered.definition,
    model: gathered.model,
    stopwatch,
    commit: transcript.commit,
    main: {
      source: sourceOf(chosen),
      environment,
      fork: createForkSkill({ plan, children: () => children }),
      tasks: tasks.list,
      first: [childrenCapability(children, { plan, tools: tools.tools, tasks })],
      last: output === undefined ? [] : [outputCapability(output)],
    },
  });
  opened = createSession<Output>({
    plan,
    agent,
    children,
    tasks,
    childOutputs,
    discovered: world.discovered,
    mcpServers: servers.states,
    watch: mainWatch(plan, { world, stopwatch, treeTime }),
    history: transcript.history,
    slashCommands: options.slashCommands !== false,
    begin: () => prepareMemory(plan, world.notice),
    ...recoveryOf(transcript.heard, { world, plan, children, commands: gathered.commands, ...keeping }),
    record: transcript.record,
    commit: transcript.commit,
    output,
    async dispose(endAgent) {
      try {
        await endAgent();
        await tools.dispose();
      } finally {
        await transcript.close();
        await servers[Symbol.asyncDispose]();
      }
    },
  });
  return opened;
}

type Gathered = Awaited<ReturnType<typeof gatherSession>>;

/** Everything that is found out before the plan: model, session, skills, prompt, servers, commands, tools. */
async function gatherSession(
  world: RuntimeContext,
  options: SessionSetup,
  connecting: Promise<SessionServers>,
) {
  const { paths } = world.discovered;
  const definition = findMainAgent(world.discovered, options.agent);
  const { model, decided, chosen: chosenModel, notes } = await chooseModel(world, options, definition);
  const chosen = await chooseSession(options, paths.transcripts, world.ids);
  const files = sessionFiles(paths.transcripts, chosen.sessionId);
  const manager = createTaskManager({ ...childLimits(world), now: world.now });
  const tasks = world.keepsTranscripts ? watchControl(manager, controlFiles(files)) : manager;
  const skills = await openSkills(world, {
    sessionId: chosen.sessionId,
    contextWindow: model.facts.contextWindow,
    deny: denyRules(world, options),
    mayLoad: mayLoadIn(world, options),
  });
  const preloaded = skills.preload(definition);
  const system = await gatherSystemPrompt({
    world,
    options,
    definition,
    modelId: model.facts.id,
    skills,
    preloaded,
  });
  const servers = await connecting;
  if (options.planOnly !== true) refuseMissingPromptTool(options.permissionPromptTool, servers.tools);
  const commands = await openSessionCommands(world, files, options);
  const tools = toolsOf(world, options, {
    servers,
    commands,
    hasSkills: skills.areOffered,
    tasks,
    files,
    sessionId: chosen.sessionId,
  });
  return {
    definition,
    model,
    decidedModel: decided,
    modelNotes: notes,
    chosenModel,
    chosen,
    files,
    tasks,
    skills,
    preloaded,
    system,
    servers,
    commands,
    tools,
  };
}

function toolsOf(
  world: RuntimeContext,
  options: SessionSetup,
  {
    servers,
    commands,
    hasSkills,
    tasks,
    files,
    sessionId,
  }: {
    readonly servers: SessionServers;
    readonly commands: SessionCommands;
    readonly hasSkills: boolean;
    readonly tasks: TaskManager;
    readonly files: SessionFiles;
    readonly sessionId: string;
  },
): AssembledTools {
  const { transcripts } = world.discovered.paths;
  return assembleTools(world, {
    servers,
    commands,
    promptTool: options.permissionPromptTool,
    hasSkills,
    sandboxes: openSandboxes(world, options),
    taskSources: [
      createAgentTaskSource(tasks, {
        outputFile: (id) => agentOutputFile(files, id),
        recall: (id) => findEndedTask(transcripts, { sessionId, id }),
      }),
    ],
  });
}

async function planMain(world: RuntimeContext, options: SessionSetup, gathered: Gathered): Promise<RunPlan> {
  const { definition, system, servers, preloaded, model, files } = gathered;
  return decidePlan(world, options, gathered.chosen.sessionId, {
    ...(definition === undefined ? {} : { definition }),
    model: gathered.decidedModel,
    canSearch: model.facts.supportsServerTools,
    available: gathered.tools.available,
    servers: servers.servers,
    serverInstructions: servers.instructions,
    system: system.parts,
    ...(system.memory.place === undefined ? {} : { memory: system.memory.place }),
    skills: preloaded.names,
    workingDirectories: await findWorkingDirectories(world),
    outputRules: await findOutputRules(files),
    notes: [
      ...gathered.modelNotes,
      ...unsafeManaged(world),
      ...system.notes,
      ...system.memory.diagnostics.map(({ message }) => message),
      ...preloaded.notes,
      ...servers.notes,
    ],
  });
}

function openServices(
  world: RuntimeContext,
  plan: RunPlan,
  { gathered, environment }: { readonly gathered: Gathered; readonly environment: Map<string, string> },
): Omit<AgentServices, "tree"> {
  const { tools, servers, skills, chosenModel } = gathered;
  const { approver } = world;
  return {
    world,
    tools,
    servers,
    skills,
    findModel: modelFinder(world, chosenModel),
    toolContext: createToolContexts(world, environment),
    ...(approver === undefined
      ? {}
      : { asking: openAsking(approver, plan, world.discovered.paths.projectRoot) }),
  };
}

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

function childLimits({ environment, discovered, childLimits: own }: RuntimeContext): ChildLimits {
  const { maxConcurrentSubagents } = readEnvironment(environment).options;
  return { ...readChildLimits(discovered.settings.settings.plain.limits, maxConcurrentSubagents), ...own };
}

function sourceOf({ from, sessionId }: ChosenSession): "startup" | "resume" | "fork" {
  if (from === undefined) return "startup";
  return from === sessionId ? "resume" : "fork";
}

function openOutput(world: RuntimeContext, { output }: SessionSetup) {
  return output === undefined ? undefined : createTypedOutput(output, outputRetries(world));
}

function outputRetries({ environment }: RuntimeContext): { readonly maxRetries: number | undefined } {
  return { maxRetries: readEnvironment(environment).options.maxStructuredOutputRetries };
}

/** The main agent is not watched for silence: its caller sees that, and its children are watched themselves. */
function mainWatch(
  { limits, treeLimits }: RunPlan,
  {
    world,
    stopwatch,
    treeTime,
  }: { readonly world: RuntimeContext; readonly stopwatch: Stopwatch; readonly treeTime: Stopwatch },
): RunWatch {
  const own = limits?.timeMs === undefined ? {} : { timeMs: limits.timeMs.value };
  const tree = treeLimits?.timeMs;
  return {
    clock: world.clock,
    stopwatch,
    ...own,
    ...(tree === undefined ? {} : { tree: { stopwatch: treeTime, timeMs: tree.value } }),
  };
}
