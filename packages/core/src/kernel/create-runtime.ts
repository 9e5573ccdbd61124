// @io
import { randomUUID } from "node:crypto";
import { abortCode } from "@retinue/base/foundation/abortable.ts";
import { checkArgument, checks, invalid } from "@retinue/base/foundation/check-arguments.ts";
import { quote } from "@retinue/base/foundation/json-record.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { AgentDefinition } from "@retinue/config/agents/agent-definition.ts";
import type { AgentInput } from "@retinue/config/agents/define-agent.ts";
import type { DiscoveredAgents } from "@retinue/config/discovery/discover-agents.ts";
import type { SkillCatalog } from "@retinue/config/skills/skill-catalog.ts";
import type { UserMessage } from "../conversation/message.ts";
import type { Inspection } from "../inspection/inspection.ts";
import { isAgentId } from "../journal/session-files.ts";
import { hasEnded } from "../protocol/agent-state.ts";
import type { Interrupted } from "../tasks/find-interrupted.ts";
import type { ToolHost } from "../tools/tool.ts";
import { type RuntimeApprovals, runtimeApprovals } from "./approvals/open-inbox.ts";
import type { LoopTool } from "./loop-tools/tools-for-loops.ts";
import { createIntegration } from "./merge/create-integration.ts";
import type { MergeHandle, MergeOptions } from "./merge/merge-options.ts";
import { startMerge } from "./merge/start-merge.ts";
import { checkAgentType, checkOptions, checkPrompt } from "./options/check-options.ts";
import { checkedProject } from "./options/checked-project.ts";
import { normalizeRuntimeOptions } from "./options/normalize-runtime-options.ts";
import type { RunOptions, RuntimeOptions, RuntimeStore, SessionOptions } from "./options/runtime-options.ts";
import {
  childSessionKeys,
  type SpawnOptions,
  sessionOptionsOf,
  spawnRequestOf,
} from "./options/spawn-options.ts";
import { createProject, type Project } from "./project/create-project.ts";
import type { ReplaySessionOptions, SessionReplay } from "./replay/replay-session.ts";
import { type AgentHandle, type RunHandle, startAgent, startRun, stoppedEnding } from "./run-handle.ts";
import { refuseWorkerOptions, runInStore } from "./run-in-store.ts";
import type { FolderContext } from "./runtime-context.ts";
import { createRuntimeSource } from "./runtime-source.ts";
import type { Session } from "./session.ts";
import {
  createProgramContext,
  createSessionPool,
  type ProgramContext,
  type SessionPool,
} from "./session-pool.ts";
import type { SessionPorts } from "./session-ports.ts";
import { portableOptions } from "./teams/portable-options.ts";
import { createTelemetrySource } from "./telemetry/telemetry-source.ts";
import {
  startWorkflow,
  type WorkflowHandle,
  type WorkflowInput,
  type WorkflowOptions,
} from "./workflows/start-workflow.ts";

/** Everything a program needs: agents, sessions, runs. Disposing it ends what is still running. */
export interface Runtime extends AsyncDisposable {
  /** One prompt to one agent, from start to end. */
  run<Output = unknown>(prompt: UserMessage["content"], options?: RunOptions<Output>): RunHandle<Output>;
  /** Starts a named agent with a task; its rights are those of a session of this runtime. */
  spawn<Output = unknown>(
    agentType: string,
    prompt: string,
    options?: SpawnOptions<Output>,
  ): AgentHandle<Output>;
  /**
   * Runs a workflow: a saved one by its name, the text of a script, a file, or a function that decides while agents work.
   * Finished steps of an earlier run (`resumeRun`) are not run again.
   */
  workflow<Result = unknown, Args = unknown>(
    what: WorkflowInput<Args, Result>,
    args?: Args,
    options?: WorkflowOptions,
  ): WorkflowHandle<Result>;
  /** Agent, TaskOutput and TaskStop for a loop of the program's own; children live as long as this runtime. */
  loopTools(): Promise<readonly LoopTool[]>;
  /** @deprecated The same as `loopTools`. */
  tools(): Promise<readonly LoopTool[]>;
  /** A conversation over several prompts. Dispose it when it is over. */
  open<Output = unknown>(options?: SessionOptions<Output>): Promise<Session<Output>>;
  /** Every agent there is now; `list`, `get` and `check` answer questions about them. Files are read anew each time. */
  readonly agents: (() => Promise<DiscoveredAgents>) & Project["agents"];
  /** Every skill there is now, with what is wrong with any; `list` and `check`. Files are read anew each time. */
  readonly skills: (() => Promise<SkillCatalog>) & Project["skills"];
  /** The rules of this folder: which there are, and what would happen to a call. */
  readonly permissions: Project["permissions"];
  /** The MCP servers of this folder: which there are, and what people say about them. */
  readonly mcp: Project["mcp"];
  /** The child agents of this folder's sessions, whichever process runs them. */
  readonly tasks: Omit<Project["tasks"], "interrupted">;
  /** Whether what this folder brings may run programs and widen rights. */
  readonly trust: Project["trust"];
  /** What the configuration of this project may do, as a person accepted it: the file `retinue.lock`. */
  readonly lock: Project["lock"];
  /** Agent files of other products: converted and compared, never with more rights than before unless that is asked for. */
  readonly formats: Project["formats"];
  /** The stored sessions of this folder: found by name, looked into, cleaned up. */
  readonly sessions: Project["sessions"];
  /** The teams of this user, led by any process. */
  readonly teams: Project["teams"];
  /** The plugins of this folder: which there are, and whether they count. */
  readonly plugins: Project["plugins"];
  /** The saved workflows of this folder, and the runs of its sessions, whichever process runs them. */
  readonly workflows: Project["workflows"];
  /** Looks at everything that agents need here, and changes nothing. */
  readonly doctor: Project["doctor"];
  /** What died with its process before it ended: child agents and main conversations of this folder. */
  interrupted(): Promise<Interrupted>;
  /** What a session or child of this folder did, from its files alone; by id, beginning of one, title or name, or the newest. */
  inspect(id?: string): Promise<Inspection>;
  /**
   * Drives the loop through a recorded session again, without a model, and shows what is different now: prompts, tools,
   * decisions, cost. By id, beginning of one, title or name, or the newest.
   */
  replay(id?: string, options?: ReplaySessionOptions): Promise<SessionReplay>;
  /**
   * Brings the changes of a session's children back that are in worktrees of their own: in order, checked, onto an integration
   * branch. By id, beginning of one or title; the newest that has any when nothing is named.
   */
  merge(session?: string, options?: MergeOptions): MergeHandle;
  /** The questions that wait in sessions of this folder, and what was granted. */
  readonly approvals: RuntimeApprovals;
  /** Adds an agent, or replaces the program's own of the same name; the next run sees it. */
  register(agent: AgentDefinition | AgentInput): void;
  /** Takes back an agent that this program has added. */
  unregister(name: string): void;
  /** Ends what is still running and gives back what is held; `await using` does the same. */
  close(): Promise<void>;
}

/** The one place where the parts are put together. What running needs is loaded with the first session. */
export function createRuntime(options: RuntimeOptions = {}): Runtime {
  const { openHosted: _openHosted, ...runtime } = createHostedRuntime(options);
  return runtime;
}

/** What the host of one session provides while the session runs. */
export interface SessionHost {
  readonly live: SessionPorts;
  readonly tools: ToolHost;
  readonly notice: (text: string) => void;
}

/** A runtime whose sessions have hosts, which change mode, model or rules while they run. */
export interface HostedRuntime extends Runtime {
  openHosted(options: SessionOptions, host: SessionHost): Promise<Session>;
}

/** The same for a program that changes mode, model or rules of its session while it runs. */
export function createHostedRuntime(options: RuntimeOptions, live?: SessionPorts): HostedRuntime {
  checkOptions("createRuntime", options);
  const { store } = options;
  if (store !== undefined) refuseWorkerOptions(options);
  const stop = new AbortController();
  const tidying = createBackgroundCleanup(stop.signal, Date.now);
  const normalized = normalizeRuntimeOptions(options);
  const source = createRuntimeSource({
    ...normalized.setup,
    portable: () => portableOptions(options),
    ...(live === undefined ? {} : { live }),
  });
  const telemetry = createTelemetrySource(normalized.setup);
  const program = createProgramContext(source, normalized);
  const pool = createSessionPool({
    measure: telemetry.measure,
    program,
    defaults: normalized.session,
    hasModel: normalized.model !== undefined,
    stop,
    onOpen(facts) {
      if (facts.keepsTranscripts) tidying.begin(facts);
    },
  });

  async function close(): Promise<void> {
    await pool.close();
    await tidying.end();
    await telemetry.end();
    await source[Symbol.asyncDispose]();
    await store?.close();
  }

  const shared = {
    ...createQueries(program),
    async replay(id?: string, given: ReplaySessionOptions = {}): Promise<SessionReplay> {
      pool.refuseWhenClosed();
      checkOptions("replay", given);
      if (id !== undefined && typeof id !== "string")
        throw invalid(`The first argument of replay() must be the id of a session, but is ${quote(id)}.`);
      const { replaySession } = await import("./replay/replay-session.ts");
      return pool.track(replaySession(id, given, { pool, gather: program.gather }));
    },
    register(agent: AgentDefinition | AgentInput) {
      checkArgument(
        "The first argument of register()",
        checks.shape({ name: checks.filled }, ["name"]),
        agent,
      );
      source.register(agent);
    },
    unregister(name: string) {
      checkArgument("The first argument of unregister()", checks.filled, name);
      source.unregister(name);
    },
  };
  const warn = normalized.setup.notice ?? (() => undefined);
  const ending = {
    close,
    [Symbol.asyncDispose]: close,
    openHosted: (given: SessionOptions, { live: own, tools, notice }: SessionHost) =>
      pool.open(given, (facts) => ({
        ...facts,
        live: { ...facts.live, ...own },
        host: { ...facts.host, ...tools },
        notice,
      })),
  };
  if (store !== undefined) return { ...shared, ...createStoreRuns({ ...options, store }, pool), ...ending };
  return {
    ...shared,
    open: (given = {}) => pool.open(given),
    spawn: (agentType, prompt, given = {}) => spawnIn({ pool, program, warn }, { agentType, prompt, given }),
    workflow(what, args, given = {}) {
      pool.refuseWhenClosed();
      checkArgument("The first argument of workflow()", isWorkflowInput, what);
      checkOptions("workflow", given);
      const transcripts = async () => (await program.gather()).discovered.paths.transcripts;
      return startWorkflow(what, { args, options: given, pool, transcripts });
    },
    loopTools: async () => (await pool.host()).loopTools(),
    tools: async () => (await pool.host()).loopTools(),
    run: (prompt, given = {}) => runIn({ pool, warn }, prompt, given),
    merge: (written, given) => mergeIn(pool, written, given),
    ...ending,
  };
}

const isWorkflowInput = checks.either(
  "must be the name or text of a workflow, { scriptPath }, or a function",
  checks.filled,
  checks.call,
  checks.shape({ scriptPath: checks.filled }, ["scriptPath"]),
);

/** What workers carry out; what needs the agents in this process is refused. */
function createStoreRuns(
  options: RuntimeOptions & { readonly store: RuntimeStore },
  pool: SessionPool,
): Pick<Runtime, "open" | "spawn" | "loopTools" | "tools" | "run" | "merge" | "workflow"> {
  const refuse = (
    name: string,
    advice = "Use run(), with `resume` for further prompts, or startPlan() of retinue/cluster for a child.",
  ): RetinueError =>
    new RetinueError(
      "not-portable",
      `${name}() needs its agents in this process, and agents of a store run in other processes.`,
      { advice },
    );
  return {
    open: () => Promise.reject(refuse("open")),
    spawn() {
      throw refuse("spawn");
    },
    workflow() {
      throw refuse("workflow", "startWorkflow() of retinue/cluster gives a workflow to the workers.");
    },
    merge() {
      throw refuse("merge");
    },
    loopTools: () => Promise.reject(refuse("loopTools")),
    tools: () => Promise.reject(refuse("tools")),
    run(prompt, given = {}) {
      pool.refuseWhenClosed();
      const handle = runInStore({ options, closed: pool.signal }, prompt, given);
      pool.track(handle.result).catch(() => undefined);
      return handle;
    },
  };
}

/** What can be asked without starting anything. */
function createQueries({
  gather,
}: ProgramContext): Omit<Project, "tasks"> &
  Pick<Runtime, "tasks" | "agents" | "skills" | "interrupted" | "inspect" | "approvals"> {
  const project = checkedProject(
    createProject({
      async facts() {
        const [{ factsOfRuntime }, context] = await Promise.all([
          import("./project/project-facts.ts"),
          gather(),
        ]);
        return factsOfRuntime(context);
      },
      async paths(cwd) {
        const { discovered, environment, platform } = await gather();
        if (cwd === undefined) return discovered.paths;
        const { createPaths } = await import("@retinue/config/settings/paths.ts");
        return createPaths({ cwd, home: discovered.paths.home, environment, platform });
      },
      async place() {
        const { discovered, environment: env, platform } = await gather();
        return { cwd: discovered.paths.cwd, home: discovered.paths.home, env, platform };
      },
    }),
  );
  // What was cut off is more than tasks: the runtime says it, with the sessions.
  const { interrupted: _interrupted, ...tasks } = project.tasks;
  return {
    ...project,
    tasks,
    approvals: runtimeApprovals(async () => (await gather()).discovered.paths.transcripts),
    agents: Object.assign(async () => (await gather()).discovered, project.agents),
    skills: Object.assign(async () => (await gather()).skills(), project.skills),
    async interrupted() {
      const [{ findInterrupted }, facts] = await Promise.all([
        import("../tasks/find-interrupted.ts"),
        gather(),
      ]);
      return findInterrupted(facts.discovered.paths.transcripts);
    },
    async inspect(id) {
      if (id !== undefined && typeof id !== "string")
        throw invalid(`The first argument of inspect() must be the id of a session, but is ${quote(id)}.`);
      const [{ loadInspection }, { withTeam }, facts] = await Promise.all([
        import("../inspection/find-named-inspected.ts"),
        import("./teams/mail-of-team.ts"),
        gather(),
      ]);
      const { paths } = facts.discovered;
      const search = { transcripts: paths.transcripts, written: id, now: facts.epochMs };
      return withTeam(await loadInspection(search), paths);
    },
  };
}

/** What a program that sees no plan would not learn of, such as a budget that cannot be kept. */
type Warn = (note: string) => void;

function runIn<Output>(
  { pool, warn }: { readonly pool: SessionPool; readonly warn: Warn },
  prompt: UserMessage["content"],
  given: RunOptions<Output>,
): RunHandle<Output> {
  pool.refuseWhenClosed();
  checkPrompt("run", prompt);
  checkOptions("run", given);
  const { signal, integrate, ...options } = given;
  const integration = createIntegration(integrate);
  const leaves = (options.background ?? pool.background) === "leave";
  const isNew = options.resume === undefined && options.continue !== true;
  let sessionId = options.sessionId ?? (isNew ? randomUUID() : "");
  const opened = isNew ? { ...options, sessionId } : options;
  const handle = startRun<Output>({
    sessionId: () => sessionId,
    integrated: integration.outcome,
    signal: signal === undefined ? pool.signal : AbortSignal.any([signal, pool.signal]),
    wantsOutput: options.output !== undefined,
    async *events(runSignal, watchChildren) {
      const session = await pool.openUnlessStopped<Output>(opened, runSignal);
      if (session === undefined) {
        yield { type: "run-ended", ending: stoppedEnding(abortCode(runSignal)) };
        return;
      }
      sessionId = session.plan.sessionId;
      session.plan.notes.forEach(warn);
      try {
        using _children = watchChildren(session.tasks);
        yield* integration.around(session.stream(prompt, runSignal), session.merge, runSignal);
      } finally {
        const running =
          leaves && !runSignal.aborted ? session.tasks.list().filter((task) => !hasEnded(task)) : [];
        // The session belongs to the runtime, which closes it when it is closed itself.
        if (running.length === 0) await session.close();
        else void Promise.all(running.map(({ id }) => session.tasks.ended(id))).then(() => session.close());
      }
    },
  });
  pool.track(handle.result).catch(() => undefined);
  return handle;
}

function mergeIn(
  pool: SessionPool,
  written: string | undefined,
  given: MergeOptions | undefined,
): MergeHandle {
  pool.refuseWhenClosed();
  if (written !== undefined) checkArgument("The first argument of merge()", checks.filled, written);
  // Only a conflict needs a model.
  const session = pool.open({ childrenOnly: true, offlineDemo: true });
  const parts = session.then(({ mergeParts }) => mergeParts);
  const handle = startMerge("merge", { parts, session: { written }, end: pool.signal }, given);
  const close = async (): Promise<void> => (await session).close();
  pool.track(handle.result.then(close, close)).catch(() => undefined);
  return handle;
}

interface Spawned<Output> {
  readonly agentType: string;
  readonly prompt: string;
  readonly given: SpawnOptions<Output>;
}

interface SpawnPlace {
  readonly pool: SessionPool;
  readonly program: ProgramContext;
  readonly warn: Warn;
}

function spawnIn<Output>(
  place: SpawnPlace,
  { agentType, prompt, given }: Spawned<Output>,
): AgentHandle<Output> {
  const { pool, warn } = place;
  pool.refuseWhenClosed();
  checkAgentType("spawn", agentType);
  checkPrompt("spawn", prompt);
  checkOptions("spawn", given);
  const own = sessionOptionsOf(given, pool);
  let sessionId = own === undefined ? pool.hostId : randomUUID();
  const open = async (): Promise<Session> => {
    sessionId = (await findSessionOf(given.resume, place)) ?? sessionId;
    if (own === undefined && sessionId === pool.hostId) return pool.host();
    const opened = await pool.open({ ...own, childrenOnly: true, sessionId });
    opened.plan.notes.forEach(warn);
    return opened;
  };
  const session = pool.track(open());
  session.catch(() => undefined);
  const handle = startAgent<Output>(spawnRequestOf(agentType, prompt, given, childSessionKeys), {
    host: session.then(({ agentHost }) => agentHost),
    sessionId: () => sessionId,
    signal: given.signal,
    output: given.output,
  });
  /** Ends the session of a child that had one of its own. */
  const closeOwn = async (): Promise<void> => {
    await handle.result.catch(() => undefined);
    const opened = await session;
    if (opened.id !== pool.hostId) await opened.close();
  };
  if (own !== undefined || given.resume !== undefined) pool.track(closeOwn()).catch(() => undefined);
  return handle;
}

/** The session of a child that an earlier process of this folder has run, where transcripts are kept. */
async function findSessionOf(
  agentId: string | undefined,
  { pool, program }: SpawnPlace,
): Promise<string | undefined> {
  if (agentId === undefined || (await pool.hosts(agentId))) return undefined;
  const [{ findTasks }, facts] = await Promise.all([import("../tasks/find-tasks.ts"), program.gather()]);
  if (!facts.keepsTranscripts || !isAgentId(agentId)) return undefined;
  const found = await findTasks(facts.discovered.paths.transcripts, { idPrefix: agentId });
  return found.find(({ id }) => id === agentId)?.sessionId;
}

/** Removes what old sessions left, beside the work: it is started once, and only closing the runtime waits for it. */
interface BackgroundCleanup {
  begin(source: Pick<FolderContext, "discovered" | "environment" | "trusted">): void;
  end(): Promise<void>;
}

/** How long transcripts are kept where settings do not say. */
const defaultDays = 30;

export function createBackgroundCleanup(signal: AbortSignal, now: () => number): BackgroundCleanup {
  let work: Promise<void> | undefined;
  async function tidy({
    discovered: { paths, settings },
    environment,
    trusted,
  }: Parameters<BackgroundCleanup["begin"]>[0]): Promise<void> {
    const { cleanUp } = await import("../tasks/cleanup.ts");
    const olderThanDays = settings.settings.plain.cleanupPeriodDays ?? defaultDays;
    const cleanup = { ...paths, olderThanDays, now: now(), dryRun: false, environment, trusted, signal };
    await cleanUp(cleanup);
    const { cleanUpTeams } = await import("./teams/clean-up-teams.ts");
    await cleanUpTeams(cleanup);
  }
  return {
    begin(source) {
      // What cannot be removed today is tried again at the next start.
      work ??= tidy(source).catch(() => undefined);
    },
    end: async () => work,
  };
}
