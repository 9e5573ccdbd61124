// @io
import { randomUUID } from "node:crypto";
import { abortable } from "@retinue/base/foundation/abortable.ts";
import { isRecord } from "@retinue/base/foundation/json-record.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import {
  countedEvents,
  createTreeFold,
  type EventSource,
  mainAgentId,
  type TreeTotals,
} from "../conversation/agent-event.ts";
import { textOf, type UserMessage } from "../conversation/message.ts";
import type { RunEvent } from "../conversation/run-event.ts";
import { createAskedCalls } from "../journal/asked-calls.ts";
import { sessionFiles } from "../journal/session-files.ts";
import type { SpawnRequest } from "../planning/agent-request.ts";
import type { AgentEvent, LiveStatus, PromptOutcome, WireEvent } from "../protocol/agent-event.ts";
import { type AgentState, hasEnded } from "../protocol/agent-state.ts";
import { emptyQueue, foldMerge } from "../protocol/merge-step.ts";
import type { AgentId, Op, OpOutcome, PromptInput, QueuedPrompt } from "../protocol/op.ts";
import type { Question } from "../protocol/question.ts";
import { commandEndNotice } from "../tasks/end-notice.ts";
import type { SpawnOutcome } from "../tasks/spawn-outcome.ts";
import type { TaskView } from "../tools/task-source.ts";
import type { Tool } from "../tools/tool.ts";
import type { HostedRuntime, SessionHost } from "./create-runtime.ts";
import { createEventLog } from "./event-log.ts";
import { createLivePolicy, type LivePolicy, type LivePolicyOptions } from "./live/live-policy.ts";
import type { SessionOptions } from "./options/runtime-options.ts";
import { createQuestionRegistry, type QuestionRegistry } from "./question-registry.ts";
import type { Session } from "./session.ts";
import type { SessionPorts } from "./session-ports.ts";
import { TurnDriver, type TurnDriverOptions, wireError } from "./turn-driver.ts";

/** One agent of a tree: the main agent or a child. */
export interface Agent {
  readonly id: AgentId;
  /** Rejects where the op is refused; a rejection that is not awaited is not reported as unhandled. */
  submit(op: Op): Promise<OpOutcome>;
  /** Its own events, from this number on; absent: from now on. */
  events(from?: number): AsyncIterableIterator<AgentEvent>;
  /** Undefined for the main agent before its first turn. */
  state(): AgentState | undefined;
  /** Settles when it has ended: a child with its work, the main agent with the tree. */
  readonly done: Promise<AgentState | undefined>;
}

/** A main agent with all its children, as every host drives it. */
export interface AgentTree extends AsyncDisposable {
  readonly sessionId: string;
  /** What was decided and found when it was opened, and what can be looked up of it since. */
  readonly facts: TreeFacts;
  readonly main: Agent;
  /** Whether named children are members of a team. */
  readonly leadsTeam: boolean;
  get(id: AgentId): Agent | undefined;
  /** The children, in the order in which they were started. */
  list(): readonly AgentState[];
  /** Starts a child by its program, as a call of the model would, and waits for its end unless it goes to the background. */
  spawn(request: Omit<SpawnRequest, "origin">, signal: AbortSignal): Promise<SpawnOutcome>;
  submit(agent: AgentId, op: Op): Promise<OpOutcome>;
  /** All events of the tree, from this number on; absent: from now on. */
  events(from?: number): AsyncIterableIterator<AgentEvent>;
  /** Calls back with each event as it happens, or with those of some types; the returned function ends it. */
  onEvent(listener: (event: AgentEvent) => void, types?: ReadonlySet<AgentEvent["type"]>): () => void;
  status(): LiveStatus;
  prompts(): readonly QueuedPrompt[];
  questions(): readonly Question[];
  totals(): TreeTotals;
  /** Whether children or teammates work in the background, or have ended and not reported it yet. */
  hasBackgroundWork(): boolean;
  /** What children and teammates have reported, where no main agent reads it. */
  takeReports(): readonly UserMessage[];
  /** Calls back when teammates may have written; the returned function ends it. */
  onTeamMail(listener: () => void): () => void;
  /** No turn begins until it is disposed. */
  hold(): Disposable;
  /** Resolves when no turn runs. */
  idle(): Promise<void>;
  /** The next prompt is read together with this text. */
  addAside(text: string): void;
  close(): Promise<void>;
}

export type TreeFacts = Pick<
  Session,
  | "plan"
  | "model"
  | "discovered"
  | "skills"
  | "mcpServers"
  | "messages"
  | "partialText"
  | "toolsOf"
  | "loopTools"
  | "isTeamBusy"
  | "workflows"
>;

export interface TreeOptions
  extends Pick<TurnDriverOptions, "prepare" | "tap" | "reports" | "messages">,
    Partial<Pick<LivePolicyOptions, "mayBypass" | "directory" | "paths">> {
  readonly runtime: HostedRuntime;
  readonly session: SessionOptions;
  readonly signal?: AbortSignal | undefined;
  /** Which questions this host answers; the others are refused. */
  readonly asks?: {
    /** `program`: about each call, before what people have granted; `person`: with a memory of what was granted. */
    readonly permissions?: "program" | "person" | undefined;
    readonly forms?: boolean | undefined;
    readonly plans?: "program" | "person" | undefined;
    readonly elicitations?: boolean | undefined;
    /** Permissions are asked one after the other. */
    readonly oneAtATime?: boolean | undefined;
  };
  /**
   * When prompts that arrive during a turn are read: `model-calls`, before each; `tool-calls`, only after results of tools.
   * Absent: after the turn, and a run waits at its end for agents in the background.
   */
  readonly reads?: "model-calls" | "tool-calls" | undefined;
  /**
   * What `configure` changes of the rights. `tree`: mode and rules of all agents that were planned with the mode of the main
   * agent; `main`: the mode of the main agent, and of children that it starts from then on. Absent: nothing.
   */
  readonly changesRights?: "tree" | "main" | undefined;
  /** The effort until it is configured; absent: that of the plan. */
  readonly effort?: string | number | undefined;
  /** What was changed before, for a host that opens one tree after the other. */
  readonly policy?: LivePolicy | undefined;
  readonly choices?: Choices | undefined;
  /** The ends of commands in the background are reported to the agent. */
  readonly reportsCommands?: boolean | undefined;
  /** What else this host provides. */
  readonly live?: SessionPorts | undefined;
  /**
   * Called with each event, also while the session is opened. `submit` goes to the main agent; until the session is open it
   * takes answers, changes of mode, model and rules, and `close`, which ends the opening.
   */
  readonly onEvent?: ((event: AgentEvent, submit: Agent["submit"]) => void) | undefined;
}

/** The model and effort that a host has chosen; undefined means those of the plan. */
export interface Choices {
  model: string | undefined;
  effort: string | number | undefined;
}

/** Opens a session and gives it a host; all that a host does with it afterwards are ops and events. */
export async function openTree(options: TreeOptions): Promise<AgentTree> {
  const { runtime, asks = {}, live = {} } = options;
  let session: Session | undefined;
  let tree: AgentTree | undefined;
  const { onEvent } = options;
  const events = createTreeEvents(
    onEvent && ((event) => onEvent(event, (op) => tree?.main.submit(op) ?? submitEarly(op))),
  );
  const { emit } = events;
  const notice = (text: string): void => emit({ type: "notice", level: "warning", text });
  const chosen: Choices = options.choices ?? { model: undefined, effort: options.effort };
  let title = live.transcript?.title;
  const setTitle = (text: string): void => {
    title = text;
    emit({ type: "status-changed", status: { title } });
  };
  const initialMode = () => session?.plan.policy.mode ?? "default";
  const policy =
    options.policy ??
    createLivePolicy({
      directory: options.directory ?? (() => session?.plan.directory ?? ""),
      mayBypass: options.mayBypass ?? (() => false),
      initialMode,
      modeChanged: (mode) => emit({ type: "status-changed", status: { mode } }),
      paths:
        options.paths ??
        (async () => {
          if (session === undefined) throw new RetinueError("session-closed", "The session is not open.");
          return session.discovered.paths;
        }),
    });
  const askedCalls = createAskedCalls(
    () => session && sessionFiles(session.discovered.paths.transcripts, session.plan.sessionId),
  );
  const questions = createQuestionRegistry({
    asked(question) {
      if (question.callId !== undefined) askedCalls.asked(question.callId);
      emit({ type: "question-asked", question }, askerOf(question));
    },
    closed(question) {
      if (question.callId !== undefined) askedCalls.closed(question.callId);
      emit({ type: "question-closed", question: question.id }, askerOf(question));
    },
    update: policy.update,
    notice,
    updateFailed: (text) => emit({ type: "notice", level: "error", text }),
  });
  const commands = createCommandReports(() => session, {
    wake: () => driver.continue(),
    addAside: (text) => driver.addAside(text),
  });
  const driver = new TurnDriver({
    ...options,
    reads: options.reads,
    session: () => session,
    emit,
    commandReports: commands.take,
  });
  const mode = () => policy.mode() ?? initialMode();
  const planTools =
    asks.plans === undefined
      ? []
      : (await import("./create-plan-tools.ts")).createPlanTools({
          ask: questions.ask,
          mode,
          setMode: policy.setMode,
          update: policy.update,
          initialMode,
          asks: asks.plans,
        });
  const host = sessionHost(options, { events, questions, policy, driver, commands, chosen, setTitle });
  const opening = runtime.openHosted(
    {
      ...options.session,
      ...(planTools.length === 0 ? {} : { tools: withTools(options.session.tools, planTools) }),
      ...(asks.permissions === "program" ? { canUseTool: questions.canUseTool } : {}),
      ...(asks.permissions === "person"
        ? { approver: { ...questions.approver, isConcurrent: asks.oneAtATime !== true } }
        : {}),
    },
    host,
  );
  const stopOpening = new AbortController();
  const submitEarly: Agent["submit"] = (op) => {
    const outcome = performEarly({ questions, policy, chosen, events, stopOpening }, op);
    outcome.catch(() => undefined);
    return outcome;
  };
  try {
    const { signal } = stopOpening;
    session = await abortable(opening, options.signal ? AbortSignal.any([options.signal, signal]) : signal);
  } catch (error) {
    // A session that is ready after all is not left open.
    void opening.then(
      (late) => late.close(),
      () => undefined,
    );
    throw error;
  }
  const status = (): LiveStatus => ({
    model: chosen.model,
    effort: chosen.effort,
    title,
    isBusy: driver.isBusy,
    mode: mode(),
  });
  tree = createTree({ session, events, driver, questions, policy, commands, chosen, setTitle, status });
  return tree;
}

/** How the host takes part in its session: what it is notified of, what it answers, and what it has chosen. */
function sessionHost(
  options: TreeOptions,
  {
    events: { emit },
    questions,
    policy,
    driver,
    commands,
    chosen,
    setTitle,
  }: Omit<TreeParts, "session" | "status">,
): SessionHost {
  const { reads, asks = {}, live = {}, changesRights } = options;
  return {
    notice: (text) => emit({ type: "notice", level: "warning", text }),
    tools: {
      ...(asks.forms === true ? { ask: questions.askForm } : {}),
      todosChanged: (todos) => emit({ type: "todos-changed", todos }),
    },
    live: {
      ...live,
      ...(changesRights === "tree" ? { policy: policy.apply } : {}),
      model: () => chosen.model,
      effort: () => chosen.effort,
      ...(asks.elicitations === true ? { elicit: questions.elicit } : {}),
      reading:
        reads === undefined
          ? undefined
          : {
              takeMessages: () => driver.takeMessages(),
              mode: () => (changesRights === "main" ? policy.mode() : undefined),
              takesReports: reads === "tool-calls" ? () => driver.takesReports() : undefined,
            },
      commandChanged(command, stop) {
        live.commandChanged?.(command, stop);
        emit({ type: "command-changed", command });
        if (options.reportsCommands === true) commands.changed(command);
        if (command.state !== "running") driver.continue();
      },
      transcript: {
        ...live.transcript,
        titled(text) {
          live.transcript?.titled?.(text);
          setTitle(text);
        },
      },
    },
  };
}

/** Built-in tools are named in a list; without one there are all. */
function withTools(given: SessionOptions["tools"], own: readonly Tool[]): readonly (string | Tool)[] {
  const named: readonly (string | Tool)[] = Array.isArray(given) ? given : ["default"];
  return [...named, ...own];
}

function askerOf({ path }: Question): EventSource {
  return { agentId: path.at(-1)?.id ?? mainAgentId };
}

function isCounted(event: WireEvent): event is RunEvent {
  return (countedEvents as ReadonlySet<string>).has(event.type);
}

/** The one order of everything that happens in a tree, with its sums. */
function createTreeEvents(first: ((event: AgentEvent) => void) | undefined) {
  const log = createEventLog<AgentEvent>();
  const fold = createTreeFold();
  let seq = 0;
  if (first !== undefined) log.listen(first);
  return {
    log,
    totals: fold.totals,
    emit(event: WireEvent, source: EventSource = { agentId: mainAgentId }): void {
      seq += 1;
      const placed = { ...event, ...source, seq, at: Date.now() } as AgentEvent;
      // Pieces of answers are most of what happens, and change no sum.
      if (isCounted(event)) fold.add({ ...event, ...source });
      log.push(placed);
    },
  };
}

/** Ends of shell commands in the background: those of the person accompany the next prompt, others are reported to the agent. */
function createCommandReports(
  session: () => Session | undefined,
  { wake, addAside }: { readonly wake: () => void; readonly addAside: (text: string) => void },
) {
  const running = new Set<string>();
  const personal = new Set<string>();
  const reports: UserMessage[] = [];
  return {
    /** Ids of those that the person started. */
    personal,
    take: () => reports.splice(0),
    changed(view: TaskView): void {
      // Those of a child end with it, and it reads what becomes of them.
      if (session()?.agentHost.tasks.get(view.owner) !== undefined) return;
      if (view.state === "running") return void running.add(view.id);
      if (!running.delete(view.id) || view.state === "stopped") return;
      const notice = commandEndNotice(view);
      if (personal.delete(view.id)) addAside(textOf(notice));
      else {
        reports.push(notice);
        wake();
      }
    },
  };
}

interface TreeParts {
  readonly session: Session;
  readonly events: ReturnType<typeof createTreeEvents>;
  readonly driver: TurnDriver;
  readonly questions: QuestionRegistry;
  readonly policy: LivePolicy;
  readonly commands: ReturnType<typeof createCommandReports>;
  readonly chosen: Choices;
  readonly setTitle: (title: string) => void;
  readonly status: () => LiveStatus;
}

function createTree(parts: TreeParts): AgentTree {
  const { session, events, driver, questions } = parts;
  const { tasks } = session.agentHost;
  const { log } = events;
  const background = followChildren(parts);
  const shells = new Set<AbortController>();
  const ended = Promise.withResolvers<undefined>();
  let closing: Promise<void> | undefined;

  const close = (): Promise<void> => {
    closing ??= (async () => {
      const reason = new RetinueError("session-closed", "The session was closed.");
      driver.close(reason);
      for (const shell of shells) shell.abort(reason);
      driver.withdraw();
      await session.close();
      background.end();
      // The end of a turn that was stopped is still reported.
      void driver.idle().then(() => {
        events.emit({ type: "closed" });
        log.end();
        ended.resolve(undefined);
      });
    })();
    return closing;
  };
  const submit = (agent: AgentId, op: Op): Promise<OpOutcome> => {
    const outcome = perform({ ...parts, shells, close }, agent, op);
    outcome.catch(() => undefined);
    return outcome;
  };
  const agentOf = (id: AgentId): Agent => ({
    id,
    submit: (op) => submit(id, op),
    events: (from) => ofAgent(log.read(from), id),
    state: () => tasks.get(id),
    get done() {
      return id === mainAgentId ? ended.promise : tasks.ended(id);
    },
  });
  return {
    sessionId: session.plan.sessionId,
    facts: session,
    main: agentOf(mainAgentId),
    leadsTeam: session.agentHost.spawnInTeam !== undefined,
    get: (id) => (id === mainAgentId || tasks.get(id) !== undefined ? agentOf(id) : undefined),
    list: tasks.list,
    spawn(request, signal) {
      const { spawnInTeam, spawner } = session.agentHost;
      return (spawnInTeam ?? spawner.spawn)({ ...request, origin: "model" }, { signal });
    },
    submit,
    events: log.read,
    onEvent: log.listen,
    status: parts.status,
    prompts: () => driver.prompts(),
    questions: questions.open,
    totals: events.totals,
    hasBackgroundWork: background.isBusy,
    takeReports: session.takeNotices,
    onTeamMail: session.onTeamMail,
    hold: () => driver.hold(),
    idle: () => driver.idle(),
    addAside: (text) => driver.addAside(text),
    close,
    [Symbol.asyncDispose]: close,
  };
}

async function* ofAgent(all: AsyncIterableIterator<AgentEvent>, id: AgentId): AsyncGenerator<AgentEvent> {
  for await (const event of all) if (event.agentId === id) yield event;
}

/**
 * Puts what children do into the events of the tree, and wakes the main agent when one has something to report. A child counts as
 * work until its report has been handed over, which is a moment after its end; a member of a team, while it is not idle.
 */
function followChildren({ session, events: { emit }, driver }: TreeParts) {
  const { tasks } = session.agentHost;
  const reporting = new Set<string>();
  const known = new Map<string, Pick<AgentState, "startedAt" | "background" | "status">>();
  const forgetEvents = tasks.onEvent(({ event, state, agentId, parentId, agentType }) => {
    const source = { agentId, ...(parentId && { parentId }), ...(agentType && { agentType }) };
    const { startedAt, background, status } = state;
    const before = known.get(agentId);
    const isStart = before?.startedAt !== startedAt;
    // Started, resumed, moved to the background or ended; most events change none of it.
    const isChanged = isStart || before.background !== background || before.status !== status;
    if (isStart) emit({ type: "agent-changed", state }, source);
    emit(event, source);
    if (isChanged && !isStart) emit({ type: "agent-changed", state }, source);
    if (isChanged) known.set(agentId, { startedAt, background, status });
    if (event.type === "run-idled") driver.continue();
    if (event.type !== "run-ended" || !state.background) return;
    const run = `${agentId} ${state.startedAt}`;
    reporting.add(run);
    // What it has to report arrives when it has released everything.
    void tasks.ended(agentId).finally(() => {
      reporting.delete(run);
      driver.continue();
      emit({ type: "agent-released" }, source);
    });
  });
  const forgetMail = session.onTeamMail(() => driver.continue());
  const forgetRuns = session.workflows?.runs.onEvent(({ runId, taskId, change, state }) => {
    const shown = change.type === "started" ? { ...change, state } : change;
    emit({ type: "workflow-changed", runId, taskId, change: shown });
    // Its notice was written before its end is shown.
    if (change.type === "ended") driver.continue();
  });
  return {
    isBusy: () =>
      reporting.size > 0 ||
      session.isTeamBusy() ||
      session.workflows?.runs.isBusy() === true ||
      tasks.list().some((task) => task.background && task.team === undefined && !hasEnded(task)),
    end() {
      forgetEvents();
      forgetMail();
      forgetRuns?.();
    },
  };
}

interface Performing extends TreeParts {
  readonly shells: Set<AbortController>;
  readonly close: () => Promise<void>;
}

const done: OpOutcome = { text: "" };

async function perform(parts: Performing, agent: AgentId, op: Op): Promise<OpOutcome> {
  const { session, driver, questions, events, shells } = parts;
  if (agent !== mainAgentId) return performForChild(parts, agent, op);
  switch (op.type) {
    case "prompt": {
      const { type: _type, ...prompt } = op;
      return { text: driver.add(prompt).id };
    }
    case "withdraw":
      driver.withdraw(op.id);
      return done;
    case "interrupt": {
      const reason = new RetinueError(op.code ?? "aborted", op.reason ?? "The person interrupted the turn.");
      driver.interrupt(reason);
      for (const shell of shells) shell.abort(reason);
      return done;
    }
    case "compact":
      driver.add({ content: `/compact ${op.instructions ?? ""}`.trim() });
      return done;
    case "answer":
      questions.answer(op.question, op.answer);
      return done;
    case "configure":
      return configure(parts, op);
    case "message":
    case "stop":
      return performForChild(parts, op.agent, op);
    case "background":
      if (op.commandsOnly !== true) return moveToBackground(session, events.emit, op.agent);
      return { text: "", moved: session.moveCommands() };
    case "shell":
      return runShell(parts, op.command);
    case "merge":
      return mergeChildren(parts, op);
    case "rename":
      session.rename(op.title);
      parts.setTitle(op.title);
      return done;
    case "close":
      await parts.close();
      return done;
  }
}

/** What a host can do while the session is opened: answer what is asked then, choose, and give up. */
async function performEarly(
  parts: Pick<TreeParts, "questions" | "policy" | "chosen" | "events"> & {
    readonly stopOpening: AbortController;
  },
  op: Op,
): Promise<OpOutcome> {
  switch (op.type) {
    case "answer":
      parts.questions.answer(op.question, op.answer);
      return done;
    case "configure":
      return configure(parts, op);
    case "close":
      parts.stopOpening.abort(new RetinueError("session-closed", "The session was closed."));
      return done;
    default:
      throw new RetinueError(
        "session-opening",
        `The session is still being opened and does not accept ${op.type} yet.`,
      );
  }
}

async function configure(
  { policy, chosen, events: { emit } }: Pick<TreeParts, "policy" | "chosen" | "events">,
  { mode, model, effort, rules = [] }: Extract<Op, { type: "configure" }>,
): Promise<OpOutcome> {
  if (mode !== undefined) policy.setMode(mode);
  if (model !== undefined) chosen.model = model ?? undefined;
  if (effort !== undefined) chosen.effort = effort ?? undefined;
  if (model !== undefined || effort !== undefined)
    emit({ type: "status-changed", status: { model: chosen.model, effort: chosen.effort } });
  for (const rule of rules) await policy.update(rule);
  return done;
}

/** A child takes what a person can do with it; everything else is for the main agent. */
async function performForChild(
  { session, events: { emit } }: TreeParts,
  id: AgentId,
  op: Op,
): Promise<OpOutcome> {
  const { tasks } = session.agentHost;
  const state = tasks.get(id);
  if (op.type === "stop" || op.type === "close" || op.type === "interrupt") {
    await tasks.stop(id, op.type === "stop" ? (op.by ?? "user") : "user");
    return done;
  }
  if (op.type === "background") return moveToBackground(session, emit, id);
  if (op.type !== "message" && op.type !== "prompt")
    throw new RetinueError("not-for-children", `Only the main agent accepts the op ${op.type}.`);
  const text = op.type === "message" ? op.text : textOf({ role: "user", content: op.content });
  if (await session.messageTeammate(id, text)) return { text: "Sent; the teammate reads it next." };
  if (tasks.send(id, { role: "user", content: [{ type: "text", text }] }))
    return { text: "Sent; it reads the message before its next step." };
  if (op.type === "message" && op.resume === false)
    throw new RetinueError("agent-ended", `The agent ${id} has ended.`);
  const handle = session.spawn(state?.agentType ?? "general-purpose", text, {
    resume: id,
    background: true,
    description: state?.description,
  });
  await handle.id;
  return { text: "It continues in the background with your message." };
}

function moveToBackground(
  { agentHost: { tasks }, moveCommands }: Session,
  emit: (event: WireEvent, source: EventSource) => void,
  agent: AgentId | undefined,
): OpOutcome {
  const commands = agent === undefined ? moveCommands() : [];
  const agents = tasks
    .list()
    .filter(({ id, background, team, ...state }) => {
      const isMeant = agent === undefined || agent === id;
      return isMeant && !background && team === undefined && !hasEnded(state);
    })
    .filter(({ id }) => tasks.detach(id))
    .map(({ id, description }) => {
      const state = tasks.get(id);
      if (state !== undefined)
        emit({ type: "agent-changed", state }, { agentId: id, parentId: state.parentId });
      return description;
    });
  const moved = [...agents, ...commands];
  return { text: moved.join(", "), moved };
}

/** The queue after each step is an event; an interruption of the person ends it between two steps. */
async function mergeChildren(
  { session, events, shells }: Performing,
  { type: _type, ...ask }: Extract<Op, { type: "merge" }>,
): Promise<OpOutcome> {
  const stop = new AbortController();
  shells.add(stop);
  try {
    const handle = session.merge({ ...ask, signal: stop.signal });
    // Rejects with what the events throw.
    handle.result.catch(() => undefined);
    let queue = emptyQueue;
    for await (const { at: _at, ...step } of handle.events) {
      queue = foldMerge(queue, step);
      events.emit({ type: "merge-stepped", step, queue });
    }
    const result = await handle.result;
    if (ask.dryRun === true) events.emit({ type: "merge-stepped", queue: result });
    return { text: result.status ?? "" };
  } finally {
    shells.delete(stop);
  }
}

/** Precedes a command that a person ran at the prompt. */
export const shellAside = "I ran this command at the prompt:";

/** Runs a command of the person through the rules and questions of the session. */
async function runShell(parts: Performing, command: string): Promise<OpOutcome> {
  const { session, driver, commands, shells, events } = parts;
  const { emit } = events;
  const [bash] = session.loopTools(["Bash"]);
  if (bash === undefined) {
    emit({ type: "notice", level: "warning", text: "There is no shell in this session." });
    return done;
  }
  const stop = new AbortController();
  shells.add(stop);
  const id = `shell-${randomUUID()}`;
  const start = performance.now();
  emit({ type: "shell-started", id, command });
  const { text, isError, data } = await bash.call(
    { command },
    {
      signal: stop.signal,
      callId: id,
      onProgress: (progress) => emit({ type: "shell-progressed", id, text: progress }),
    },
  );
  shells.delete(stop);
  driver.addAside(`${shellAside}\n$ ${command}\n${text}`);
  const task = isRecord(data) ? data["backgroundTaskId"] : undefined;
  const taskId = typeof task === "string" ? task : undefined;
  if (taskId !== undefined) commands.personal.add(taskId);
  const durationMs = performance.now() - start;
  emit({ type: "shell-finished", id, command, text, isError, durationMs, taskId });
  return { text };
}

/** Submits a prompt and waits for its end; what it does meanwhile are events of the tree. The signal interrupts its turn. */
export async function runPrompt(
  tree: Pick<AgentTree, "submit" | "onEvent">,
  { id = randomUUID(), ...prompt }: PromptInput,
  signal?: AbortSignal,
): Promise<PromptOutcome> {
  const { promise, resolve } = Promise.withResolvers<PromptOutcome>();
  const forget = tree.onEvent((event) => {
    if (event.type === "prompt-ended" && event.id === id) resolve(event);
  }, promptEnds);
  const interrupt = (): void => {
    const { code, message: reason } = wireError(signal?.reason);
    void tree.submit(mainAgentId, { type: "interrupt", code, reason });
  };
  try {
    await tree.submit(mainAgentId, { type: "prompt", id, ...prompt });
    signal?.addEventListener("abort", interrupt, { once: true });
    if (signal?.aborted === true) interrupt();
    return await promise;
  } finally {
    forget();
    signal?.removeEventListener("abort", interrupt);
  }
}

const promptEnds: ReadonlySet<AgentEvent["type"]> = new Set(["prompt-ended"]);
