import { createStopwatch, type Stopwatch } from "../foundation/stopwatch.ts";
import { sessionFiles } from "../journal/session-files.ts";
import type { RunWatch } from "../loop/watch-run.ts";
import type { Model } from "../model/model.ts";
import type { RunPlan } from "../planning/run-plan.ts";
import { withServerInstructions } from "../planning/server-instructions.ts";
import { unsafeManagedCode } from "../settings/find-foreign-writers.ts";
import { readEnvironment } from "../settings/read-environment.ts";
import { agentOutputFile } from "../tasks/agent-output-file.ts";
import { createTreeBudget } from "../tasks/budget/tree-budget.ts";
import { type ChildLimits, readChildLimits } from "../tasks/child-limits.ts";
import { controlFiles } from "../tasks/control-files.ts";
import { createAgentTaskSource } from "../tasks/create-agent-task-source.ts";
import { findEndedTask } from "../tasks/recovery/find-ended-task.ts";
import { createRunGuard } from "../tasks/run-guard.ts";
import { createTaskManager } from "../tasks/task-manager.ts";
import { watchControl } from "../tasks/watch-control.ts";
import { createAgentSkills } from "./agent-skills.ts";
import { assembleTools } from "./assemble-tools.ts";
import { carryOverContext } from "./carry-over-context.ts";
import { chooseModel, modelFinder } from "./choose-model.ts";
import { createCompactionPort } from "./create-compaction-port.ts";
import { refuseMissingPromptTool } from "./create-prompt-tool.ts";
import { createToolContexts } from "./create-tool-contexts.ts";
import { decidePlan } from "./decide-plan.ts";
import { findMainAgent } from "./find-main-agent.ts";
import { findWorkingDirectories } from "./find-working-directories.ts";
import { createForkSkill } from "./fork-skill.ts";
import { gatherMemory } from "./gather-memory.ts";
import { gatherSystemPrompt } from "./gather-system-prompt.ts";
import { limitFacts } from "./limit-facts.ts";
import { createLiveModel } from "./live-controls.ts";
import { mayLoadIn } from "./may-load-in.ts";
import { openAsking } from "./open-asking.ts";
import { openChildren } from "./open-children.ts";
import { openSandboxes } from "./open-sandboxes.ts";
import { chooseSession, openTranscript, transcriptFacts } from "./open-transcript.ts";
import { prepareChild } from "./prepare-child.ts";
import { prepareMemory } from "./prepare-memory.ts";
import { runRecovery } from "./run-recovery.ts";
import type { RuntimeContext } from "./runtime-context.ts";
import type { SessionOptions } from "./runtime-options.ts";
import { createSession, type Session } from "./session.ts";
import { openSessionCommands } from "./session-commands.ts";
import { openSessionHooks } from "./session-hooks.ts";
import { denyRules, findOutputRules } from "./session-rules.ts";
import { resourceToolsOf, type SessionServers } from "./session-servers.ts";
import { openSkills } from "./session-skills.ts";
import { createTypedOutput } from "./typed-output.ts";
import { askHeld, canUseToolHeld, contextHeld, holding } from "./while-asking.ts";

/** Finds everything out, decides the plan, and puts a session together that obeys it. */
export async function openSession<Output>(
  world: RuntimeContext,
  options: SessionOptions<Output>,
  {
    look,
    servers: connecting,
    signal,
  }: {
    readonly look: () => Promise<RuntimeContext>;
    readonly servers: Promise<SessionServers>;
    readonly signal: AbortSignal;
  },
): Promise<Session<Output>> {
  const { paths } = world.discovered;
  const output = openOutput(world, options);
  const definition = findMainAgent(world.discovered, options.agent);
  const { model, decided, chosen: chosenModel, notes } = await chooseModel(world, options, definition);
  const chosen = await chooseSession(options, paths.transcripts, world.ids);
  const files = sessionFiles(paths.transcripts, chosen.sessionId);
  const limits = childLimits(world);
  const limited = limitFacts(world, options);
  const manager = createTaskManager({ ...limits, now: world.now });
  const tasks = world.keepsTranscripts ? watchControl(manager, controlFiles(files)) : manager;
  const skills = await openSkills(world, {
    sessionId: chosen.sessionId,
    contextWindow: model.facts.contextWindow,
    deny: denyRules(world, options),
    mayLoad: mayLoadIn(world, options),
  });
  const preloaded = skills.preload(definition);
  const system = await gatherSystemPrompt({ world, options, definition, modelId: model.facts.id, skills });
  const servers = await connecting;
  if (options.planOnly !== true) refuseMissingPromptTool(options.permissionPromptTool, servers.tools);
  const commands = await openSessionCommands(world, files, options);
  const built = assembleTools(world, {
    servers,
    commands,
    promptTool: options.permissionPromptTool,
    hasSkills: skills.areOffered,
    sandboxes: openSandboxes(world, options),
    taskSources: [
      createAgentTaskSource(tasks, {
        outputFile: (id) => agentOutputFile(files, id),
        recall: (id) => findEndedTask(paths.transcripts, { sessionId: chosen.sessionId, id }),
      }),
    ],
  });
  const decidedPlan = decidePlan(world, options, chosen.sessionId, {
    ...(definition === undefined ? {} : { definition }),
    model: decided,
    canSearch: model.facts.supportsServerTools,
    available: built.available,
    servers: servers.servers,
    system: system.parts,
    ...(system.memory.place === undefined ? {} : { memory: system.memory.place }),
    skills: preloaded.names,
    workingDirectories: await findWorkingDirectories(world),
    outputRules: await findOutputRules(files),
    notes: [
      ...notes,
      ...unsafeManaged(world),
      ...system.notes,
      ...system.memory.diagnostics.map(({ message }) => message),
      ...preloaded.notes,
      ...servers.notes,
    ],
  });
  const plan = withServerInstructions(decidedPlan, servers.instructions);
  const tree = createTreeBudget(plan.treeLimits, { ...(limited.settings ?? {}) });
  const treeTime = createStopwatch(world.clock);
  const guard = createRunGuard({
    limits: plan.limits,
    tree,
    stopwatch: createStopwatch(world.clock, treeTime),
  });
  const whileAsking = holding(guard.stopwatch);
  const { durability, notice } = world;
  const keeping = { durability, notice, takeOver: options.takeOver === true, signal };
  const transcript = await openTranscript({
    ...chosen,
    isKept: world.keepsTranscripts && options.childrenOnly !== true,
    transcripts: paths.transcripts,
    ids: world.ids,
    now: () => world.today().getTime(),
    facts: () => transcriptFacts(world, plan, system.branch),
    plan,
    choices: options,
    keeping,
    observer: world.live?.transcript,
  });
  const { heard } = transcript;
  const granted = new Set(plan.tools.map(({ name }) => name));
  const directory = (): string => built.directory(plan.agent.id) ?? plan.directory;
  const source = chosen.from === undefined ? "startup" : sourceOf(chosen.from, chosen.sessionId);
  // What hooks of the start set for later commands, of children too.
  const environment = new Map<string, string>();
  const hooks = await openSessionHooks({
    world,
    plan,
    environment,
    model,
    pay: guard.pay,
    definition,
    source,
    directory,
    mayGrow: skills.bringHooks,
    callServer: servers.call,
  });
  for (const note of preloaded.notes) world.notice?.(note);
  const toolContext = createToolContexts(world, environment);
  const asking =
    world.approver === undefined ? undefined : openAsking(world.approver, plan, paths.projectRoot);
  let opened: Session<Output> | undefined;
  const children = openChildren({
    world,
    look,
    tasks,
    takeOver: keeping.takeOver,
    parent: { plan, model, chosenModel },
    messages: () => opened?.messages() ?? [],
    tools: built.tools,
    available: built.available,
    prompt: system.child,
    memory: (child) => gatherMemory(world, options, child),
    skills,
    servers,
    prepare: (child, context) =>
      prepareChild(child, context, {
        world,
        tools: built.tools,
        serverTools: built.serverTools,
        sessionServers: servers,
        skills,
        findModel: modelFinder(world, chosenModel),
        directory: built.directory,
        todos: built.todos,
        toolContext,
        guard: (line) =>
          createRunGuard({
            limits: child.limits,
            tree,
            stopwatch: line.stopwatch ?? createStopwatch(world.clock, treeTime),
          }),
        main: guard.stopwatch,
        ...(asking === undefined ? {} : { askPerson: asking }),
      }),
    release: built.release,
    commands,
    readsNotices: options.childrenOnly !== true,
    limitFacts: limited,
    tree,
    clocks: {
      clock: world.clock,
      tree: treeTime,
      ...(plan.treeLimits?.timeMs === undefined ? {} : { treeTimeMs: plan.treeLimits.timeMs.value }),
      ...(limited.background === undefined ? {} : { backgroundStopMs: limited.background.stopMs }),
    },
  });
  const ownSkills = createAgentSkills({
    skills,
    world,
    plan,
    isSubagent: false,
    bash: built.tools.find(({ name }) => name === "Bash"),
    hooks,
    fork: createForkSkill({ plan, children: () => children }),
    findModel: async (name) => guard.pay(await modelFinder(world, chosenModel)(name)),
  });
  const isBuilt = (tool: string): boolean => built.tools.some(({ name }) => name === tool);
  const hasOwnSkills = granted.has("Skill") && !isBuilt("Skill");
  const mainModel = (): Model => {
    const { live } = world;
    if (live === undefined) return guard.pay(model);
    return createLiveModel(guard.pay(model), live, async (name) =>
      guard.pay((await chooseModel(world, { ...options, model: name }, definition)).model),
    );
  };
  opened = createSession<Output>({
    plan,
    children,
    tasks,
    ...(hooks === undefined ? {} : { hooks }),
    discovered: world.discovered,
    mcpServers: servers.states,
    model: mainModel(),
    live: world.live,
    livePolicy: world.live?.policy,
    limits: guard.limits,
    watch: mainWatch(plan, { world, stopwatch: guard.stopwatch, treeTime }),
    tools: [
      ...(granted.has("Agent") ? [children.tool] : []),
      ...(granted.has("SendMessage") && !isBuilt("SendMessage") ? [children.messageTool] : []),
      ...(hasOwnSkills ? [ownSkills.tool] : []),
      ...built.tools.filter(({ name }) => granted.has(name)),
      ...resourceToolsOf(plan, servers),
    ],
    serverTools: built.serverTools(plan, model.facts),
    history: transcript.history,
    toolContext: contextHeld(toolContext(plan, directory), whileAsking),
    ...(world.canUseTool === undefined ? {} : { canUseTool: canUseToolHeld(world.canUseTool, whileAsking) }),
    ...(asking === undefined ? {} : { askPerson: askHeld(asking(plan), whileAsking) }),
    skills: ownSkills,
    slashCommands: options.slashCommands !== false,
    directory,
    begin: () => prepareMemory(plan, world.notice),
    ...(heard === undefined
      ? {}
      : { recover: (signal) => runRecovery({ world, plan, heard, children, commands, ...keeping, signal }) }),
    now: world.now,
    concurrency: readEnvironment(world.environment).options.maxToolUseConcurrency,
    compaction: createCompactionPort({
      world,
      model: model.facts,
      hooks,
      restate: () =>
        carryOverContext({
          tasks: tasks.list(),
          todos: built.todos(plan.agent.id),
          skills: ownSkills.called(),
          offered: ownSkills.offered(),
        }),
    }),
    record: transcript.record,
    commit: transcript.commit,
    ...(output === undefined ? {} : { output }),
    async dispose() {
      try {
        await tasks[Symbol.asyncDispose]();
        await hooks?.end();
        await built.dispose();
      } finally {
        await transcript.close();
        await servers[Symbol.asyncDispose]();
      }
    },
  });
  return opened;
}

/** Whoever runs something must hear that what the organisation says does not count. */
function unsafeManaged({ discovered }: RuntimeContext): readonly string[] {
  const found = discovered.diagnostics.filter(({ code }) => code === unsafeManagedCode);
  return found.map(({ message, advice }) => `${message} ${advice ?? ""}`.trim());
}

function childLimits({ environment, discovered }: RuntimeContext): ChildLimits {
  const { maxConcurrentSubagents } = readEnvironment(environment).options;
  return readChildLimits(discovered.settings.settings.plain.limits, maxConcurrentSubagents);
}

function sourceOf(from: string, sessionId: string): "resume" | "fork" {
  return from === sessionId ? "resume" : "fork";
}

function openOutput({ environment }: RuntimeContext, { output }: SessionOptions) {
  if (output === undefined) return undefined;
  const { maxStructuredOutputRetries } = readEnvironment(environment).options;
  return createTypedOutput(output, { maxRetries: maxStructuredOutputRetries });
}

/** The main agent is not watched for silence: whoever started it sees that, and its children speak for themselves. */
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
