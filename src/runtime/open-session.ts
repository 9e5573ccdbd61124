import { Fault } from "../foundation/fault.ts";
import { version } from "../foundation/version.ts";
import { sessionFiles } from "../journal/session-files.ts";
import type { Approver } from "../permissions/approver.ts";
import { createAskQueue } from "../permissions/ask-queue.ts";
import { decide } from "../permissions/decide.ts";
import { createSessionApprovals } from "../permissions/session-approvals.ts";
import { planSession, type SessionFacts } from "../planning/plan-session.ts";
import type { RunPlan } from "../planning/run-plan.ts";
import { readEnvironment } from "../settings/environment.ts";
import { writeLocalRules } from "../settings/write-local-rules.ts";
import { agentOutputFile } from "../tasks/agent-output-file.ts";
import { createAgentTaskSource } from "../tasks/agent-task-source.ts";
import { type ChildLimits, readChildLimits } from "../tasks/child-limits.ts";
import { controlFiles } from "../tasks/control-request.ts";
import { createTaskManager } from "../tasks/task-manager.ts";
import { watchControl } from "../tasks/watch-control.ts";
import { createSessionFiles } from "../tools/file-ledger.ts";
import { createSandbox } from "../tools/run-in-sandbox.ts";
import { readSandboxSettings, sandboxRights } from "../tools/sandbox-settings.ts";
import type { ToolContext } from "../tools/tool.ts";
import { createMayRead } from "./admit.ts";
import { type AskPerson, createAskPerson } from "./ask-person.ts";
import { assembleTools } from "./assemble-tools.ts";
import { chooseModel } from "./choose-model.ts";
import { findMainAgent } from "./find-main-agent.ts";
import { findWorkingDirectories } from "./find-working-directories.ts";
import { gatherSystemPrompt } from "./gather-system-prompt.ts";
import { openChildren } from "./open-children.ts";
import { chooseSession, openTranscript } from "./open-transcript.ts";
import { prepareChild } from "./prepare-child.ts";
import type { SessionOptions } from "./runtime-options.ts";
import { createSession, type Session } from "./session.ts";
import { openSessionHooks } from "./session-hooks.ts";
import { refuseBrokenRestrictions, sessionRules } from "./session-rules.ts";
import type { SessionWorld } from "./session-world.ts";
import { createTypedOutput } from "./typed-output.ts";

/** Finds everything out, decides the plan, and puts a session together that obeys it. */
export async function openSession<Output>(
  world: SessionWorld,
  options: SessionOptions<Output>,
  look: () => Promise<SessionWorld>,
): Promise<Session<Output>> {
  const { paths, settings } = world.discovered;
  refuseBrokenRestrictions(settings);
  const output = openOutput(world, options);
  const definition = findMainAgent(world.discovered, options.agent);
  const { model, decided, chosen: chosenModel, notes } = await chooseModel(world, options, definition);
  const chosen = await chooseSession(options, paths.transcripts, world.ids);
  const files = sessionFiles(paths.transcripts, chosen.sessionId);
  const limits = childLimits(world);
  const manager = createTaskManager({ ...limits, now: world.now });
  const tasks = world.keepsTranscripts ? watchControl(manager, controlFiles(files)) : manager;
  const built = assembleTools(world, model, {
    sandbox: openSandbox(world, options),
    taskSources: [createAgentTaskSource(tasks, (id) => agentOutputFile(files, id))],
  });
  const system = await gatherSystemPrompt({ world, options, definition, modelId: model.facts.id });
  const plan = decidePlan(world, options, chosen.sessionId, {
    ...(definition === undefined ? {} : { definition }),
    model: decided,
    available: built.available,
    system: system.parts,
    workingDirectories: await findWorkingDirectories(world),
    notes,
  });
  const transcript = await openTranscript({
    ...chosen,
    isKept: world.keepsTranscripts && options.childrenOnly !== true,
    transcripts: paths.transcripts,
    ids: world.ids,
    now: () => world.today().getTime(),
    facts: () => transcriptFacts(world, plan, system.branch),
  });
  const granted = new Set(plan.tools.map(({ name }) => name));
  const directory = (): string => built.directory(plan.agent.id) ?? plan.directory;
  const source = chosen.from === undefined ? "startup" : sourceOf(chosen.from, chosen.sessionId);
  const hooks = await openSessionHooks({ world, plan, model, definition, source, directory });
  const toolContext = createToolContexts(world);
  const asking =
    world.approver === undefined ? undefined : openAsking(world.approver, plan, paths.projectRoot);
  let opened: Session<Output> | undefined;
  const children = openChildren({
    world,
    look,
    tasks,
    parent: { plan, model, chosenModel },
    messages: () => opened?.messages() ?? [],
    tools: built.tools,
    available: built.available,
    prompt: system.child,
    prepare: (child, context) =>
      prepareChild(child, context, {
        world,
        tools: built.tools,
        directory: built.directory,
        toolContext,
        ...(asking === undefined ? {} : { askPerson: asking }),
      }),
    release: built.release,
    limits,
  });
  opened = createSession<Output>({
    plan,
    children,
    tasks,
    ...(hooks === undefined ? {} : { hooks }),
    discovered: world.discovered,
    model,
    tools: [
      ...(granted.has("Agent") ? [children.tool] : []),
      ...built.tools.filter(({ name }) => granted.has(name)),
    ],
    ...(built.webSearch === undefined || !maySearch(plan) ? {} : { serverTools: [built.webSearch] }),
    history: transcript.history,
    toolContext: toolContext(plan, directory),
    ...(world.canUseTool === undefined ? {} : { canUseTool: world.canUseTool }),
    ...(asking === undefined ? {} : { askPerson: asking(plan) }),
    directory,
    now: world.now,
    atOnce: readEnvironment(world.environment).options.maxToolUseConcurrency,
    record: transcript.record,
    ...(output === undefined ? {} : { output }),
    async dispose() {
      try {
        await tasks[Symbol.asyncDispose]();
        await hooks?.end();
        await built.dispose();
      } finally {
        transcript.close();
      }
    },
  });
  return opened;
}

function childLimits({ environment, discovered }: SessionWorld): ChildLimits {
  const { maxConcurrentSubagents } = readEnvironment(environment).options;
  return readChildLimits(discovered.settings.settings.plain.limits, maxConcurrentSubagents);
}

function sourceOf(from: string, sessionId: string): "resume" | "fork" {
  return from === sessionId ? "resume" : "fork";
}

/** Where settings ask for it, commands run where the operating system keeps them inside the work. */
function openSandbox({ discovered, sandbox, disallowedTools }: SessionWorld, options: SessionOptions) {
  const { paths, settings } = discovered;
  const flags = { disallowedTools: [...disallowedTools, ...(options.disallowedTools ?? [])] };
  return createSandbox({
    runtime: sandbox,
    settings: readSandboxSettings(settings.settings.plain.sandbox),
    home: paths.home,
    deny: sessionRules(settings, flags, paths.cwd).deny,
  });
}

/** One queue and one memory of answers for the main agent and all its children. */
function openAsking(approver: Approver, main: RunPlan, projectRoot: string): (plan: RunPlan) => AskPerson {
  const queue = createAskQueue(approver);
  const approvals = createSessionApprovals();
  return (plan) =>
    createAskPerson({
      queue,
      approvals,
      path: plan.agent.id === main.agent.id ? [main.agent] : [main.agent, plan.agent],
      policy: plan.policy,
      directory: plan.directory,
      async saveRules(rules) {
        const outcome = await writeLocalRules(projectRoot, { list: "allow", rules });
        return outcome.type === "saved" ? undefined : outcome.why;
      },
      ...(approver.notice === undefined ? {} : { notice: approver.notice }),
    });
}

function openOutput({ environment }: SessionWorld, { output }: SessionOptions) {
  if (output === undefined) return undefined;
  const { maxStructuredOutputRetries } = readEnvironment(environment).options;
  return createTypedOutput(output, { maxRetries: maxStructuredOutputRetries });
}

type FactsFound = Pick<
  SessionFacts,
  "definition" | "model" | "available" | "system" | "workingDirectories" | "notes"
>;

function decidePlan(
  world: SessionWorld,
  options: SessionOptions,
  sessionId: string,
  found: FactsFound,
): RunPlan {
  const { paths, settings } = world.discovered;
  const { permissions, sources } = settings.settings;
  const disallowedTools = [...world.disallowedTools, ...(options.disallowedTools ?? [])];
  const mode = permissions.defaultMode;
  const sandbox = sandboxRights(settings.settings.plain.sandbox);
  const planned = planSession(
    { ...options, sessionId, agentId: "main" },
    {
      ...found,
      rules: sessionRules(settings, { ...options, disallowedTools }, paths.cwd),
      ...(mode === undefined
        ? {}
        : { settingsMode: { mode, from: sources.get("permissions.defaultMode")?.file ?? "settings" } }),
      bypassForbidden: permissions.switches.disableBypassPermissionsMode === "disable",
      directory: paths.cwd,
      home: paths.home,
      platform: world.platform,
      ...(sandbox === undefined ? {} : { sandbox }),
      trusted: world.trusted,
    },
  );
  if (planned.type === "planned") return planned.plan;
  const { because, advice, code = "plan-refused" } = planned;
  throw new Fault(code, because, advice === undefined ? {} : { advice });
}

/** The provider runs the search itself, so there is no call to decide about: it is offered only where it is allowed. */
function maySearch({ tools, policy }: RunPlan): boolean {
  const isGranted = tools.some(({ name }) => name === "WebSearch");
  const call = { tool: "WebSearch", effect: "network", paths: [], input: {} };
  return isGranted && decide(call, policy).type === "allow";
}

function transcriptFacts(world: SessionWorld, plan: RunPlan, branch: string | undefined) {
  return {
    sessionId: plan.sessionId,
    cwd: plan.directory,
    version,
    entrypoint: world.entrypoint,
    permissionMode: plan.policy.mode,
    ...(branch === undefined ? {} : { gitBranch: branch }),
  };
}

/** Contexts of one session: each agent knows what it has read itself, and all know who changed what. */
function createToolContexts(world: SessionWorld) {
  const { paths } = world.discovered;
  const sessionLedger = createSessionFiles();
  // `~` must mean to the tools what it means to the rules.
  const environment = { ...world.environment, HOME: paths.home };
  return (plan: RunPlan, directory: () => string) => {
    const files = sessionLedger.forAgent();
    const mayRead = createMayRead(plan);
    return (call: Pick<ToolContext, "callId" | "signal" | "progress">): ToolContext => ({
      ...call,
      directory: directory(),
      workingDirectories: plan.policy.workingDirectories,
      agent: plan.agent,
      files,
      host: world.host,
      environment,
      outputDirectory: sessionFiles(paths.transcripts, plan.sessionId).toolResults,
      ...(mayRead === undefined ? {} : { mayRead }),
    });
  };
}
