import { randomUUID } from "node:crypto";
import { isRetinueError, RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { mainAgentId } from "@retinue/core/conversation/agent-event.ts";
import type { RunEvent } from "@retinue/core/conversation/run-event.ts";
import type { TreeOptions } from "@retinue/core/kernel/agent-tree.ts";
import type { TaskEvent } from "@retinue/core/kernel/session.ts";
import { backgroundWaitOf } from "@retinue/core/kernel/teams/create-parent-mail.ts";
import { isRunEvent } from "@retinue/core/protocol/agent-event.ts";
import { hasEnded } from "@retinue/core/protocol/agent-state.ts";
import type { Answer, Question } from "@retinue/core/protocol/question.ts";
import { answerQuestions } from "../shared/answer-questions.ts";
import { answerByHost } from "./answer-by-host.ts";
import { localEnding } from "./answer-locally.ts";
import { createTaskMessages, noteChildPrompt } from "./create-task-messages.ts";
import { type ObservedHooks, reportInstructions } from "./observed-hooks.ts";
import type { OpenSdkSession } from "./open-sdk-session.ts";
import { announcePrompt, type QueuedPrompt } from "./queued-prompt.ts";
import { createSessionTotals, type SessionTotals } from "./result-message.ts";
import {
  endTurn,
  finishTurn,
  followEvent,
  initOf,
  prepareTurn,
  releaseResults,
  type TurnContext,
} from "./run-turn.ts";
import type { SdkConnection } from "./sdk-connection.ts";
import { informational, type SdkMessage } from "./sdk-messages.ts";
import { createSubagentCount, type SubagentCount } from "./subagent-stats.ts";

/** How this host takes part in a tree. */
export type Hosting = Pick<TreeOptions, "prepare" | "tap" | "onEvent">;

export interface SdkHostOptions {
  readonly connection: () => SdkConnection;
  /** Opens the session, or the one that takes its place; a fresh one begins a new conversation. */
  readonly open: (fresh: boolean, hosting: Hosting) => Promise<OpenSdkSession>;
  readonly observed: () => ObservedHooks;
  /** Called with each event of a turn before the next one is asked for. */
  readonly reached: (event: RunEvent) => Promise<void>;
  /** Called with the prompt that is worked on next. */
  readonly begins: (prompt: QueuedPrompt) => void;
  /** Refuses prompts where no real model answers. */
  readonly refuse: (session: OpenSdkSession["session"]) => void;
}

type SessionState = "running" | "requires_action" | "idle";

/** Works on the prompts of a host one after the other, and reports everything that happens. */
export interface SdkHost {
  /** Resolves with the exit code when the input has ended and everything is done. */
  run(signal: AbortSignal): Promise<number>;
  /** Opens the session before the first prompt, so that it can be described. */
  ready(): Promise<OpenSdkSession>;
  current(): OpenSdkSession | undefined;
  /** Closes the session after the running turn and opens another in its place. */
  reopen(): Promise<OpenSdkSession>;
  /** Stops the running turn; false where none runs. */
  interrupt(stopsTasks: boolean): Promise<boolean>;
  inputEnded(): void;
  add(prompt: QueuedPrompt): void;
  /** Takes back the prompt with this id, or all, as far as no turn has started with them; the ids that the host gave them. */
  cancel(id?: string): readonly string[];
  queuedIds(): readonly string[];
  /** Something has happened that may let the host end or begin something. */
  wake(): void;
  emit(message: SdkMessage): void;
  setState(state: SessionState): void;
  readonly totals: SessionTotals;
  apiDurationMs(): number;
}

/** What the result of a turn says about it. */
export interface TurnFigures {
  readonly startedAt: number;
  inTools: boolean;
  /** Messages that the conversation got besides the prompt. */
  userMessages: number;
  /** Milliseconds from the start to the first request and to the first sign of an answer. */
  requestedMs?: number;
  answeredMs?: number;
  /** Why the model stopped last. */
  lastStop?: string;
  /** The request whose answer that was. */
  lastRequestId?: string;
  /** How often the model refused to answer. */
  refusals?: number;
}

/** The turn that runs. */
export interface Turn extends TurnFigures {
  /** The id of its prompt on the wire. */
  readonly id: string;
  prompt: QueuedPrompt;
  readonly signal: AbortSignal;
  /** Describes the session, with the first event of the turn. */
  readonly begin: () => void;
  /** The command of the session that answered in place of the model. */
  localCommand?: string | undefined;
  /** Set by `/clear`: keeps other turns back until another session is open, which reports the end. */
  clearing?: Disposable;
}

/** What is remembered between turns. */
export interface HostState {
  readonly totals: SessionTotals;
  readonly subagents: SubagentCount;
  /** Results that a mere reader gets together with the next, because children still work on the same request. */
  readonly held: (() => SdkMessage)[];
  /** What waits for the end of the running turn. */
  readonly changes: (() => Promise<void>)[];
  /** Prompts that came while no session was open. */
  early: QueuedPrompt[];
  /** The session is being replaced by another. */
  isReopening: boolean;
  /** The session takes prompts. */
  isReady: boolean;
  wakeup: PromiseWithResolvers<void>;
  /** Ends the host. */
  stopped: AbortSignal | undefined;
  /** Why the running turn broke off when the host was stopped. */
  failure: unknown;
  opened: Promise<OpenSdkSession> | undefined;
  current: OpenSdkSession | undefined;
  turn: Turn | undefined;
  hasEndedInput: boolean;
  lastIsError: boolean;
  /** The state that the host was notified of. */
  reported: SessionState | undefined;
  apiMs: number;
  /** How many results were sent. */
  results: number;
  /** How many children were found cut off. */
  interruptedAgents: number | undefined;
  /** The session whose title and commands the host knows. */
  described: OpenSdkSession | undefined;
}

export function createSdkHost(options: SdkHostOptions): SdkHost {
  const state: HostState = {
    totals: createSessionTotals(),
    subagents: createSubagentCount(),
    held: [],
    changes: [],
    early: [],
    isReopening: false,
    isReady: false,
    wakeup: Promise.withResolvers(),
    stopped: undefined,
    failure: undefined,
    opened: undefined,
    current: undefined,
    turn: undefined,
    hasEndedInput: false,
    lastIsError: false,
    reported: undefined,
    apiMs: 0,
    results: 0,
    interruptedAgents: undefined,
    described: undefined,
  };
  const emit = (message: SdkMessage): void => options.connection().channel.send(message);
  const context: TurnContext = { options, state, emit };
  const notify = (): void => wake(state);
  return {
    totals: state.totals,
    emit,
    setState: (next) => setState(context, next),
    ready: () => ready(context),
    apiDurationMs: () => Math.round(state.apiMs),
    current: () => state.current,
    wake: notify,
    add(prompt) {
      state.early.push(prompt);
      submitPrompts(state);
      notify();
    },
    cancel: (id) => cancelPrompts(state, id),
    queuedIds: () => [
      ...(state.current?.tree.prompts() ?? []).flatMap(({ note }) => promptOf(note)?.uuid ?? []),
      ...state.early.flatMap(({ uuid }) => uuid ?? []),
    ],
    inputEnded() {
      state.hasEndedInput = true;
      notify();
    },
    reopen() {
      const reopened = Promise.withResolvers<OpenSdkSession>();
      state.changes.push(() => reopen(context).then(reopened.resolve, reopened.reject));
      notify();
      return reopened.promise;
    },
    interrupt: (stopsTasks) => interrupt(state, stopsTasks),
    run: (signal) => run(context, signal),
  };
}

function setState({ state, emit, options }: TurnContext, next: SessionState): void {
  if (state.reported === next) return;
  state.reported = next;
  // A host that says so takes these out of what it hands to the program, unless the program wants them.
  const { environment } = options.connection().context.host;
  const isForProgram = environment["CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS"] === "1";
  if (!isForProgram && environment["CLAUDE_CODE_SDK_READS_SESSION_STATE"] !== "1") return;
  emit({
    type: "system",
    subtype: "session_state_changed",
    state: next,
    uuid: randomUUID(),
    session_id: state.current?.session.plan.sessionId ?? "",
    ...(isForProgram ? {} : { sdk_host_only: true }),
  });
}

function ready(context: TurnContext): Promise<OpenSdkSession> {
  context.state.opened ??= openNow(context);
  return context.state.opened;
}

async function openNow(context: TurnContext, fresh = false): Promise<OpenSdkSession> {
  const { state, options } = context;
  const opened = await options.open(fresh, hostingOf(context));
  state.current = opened;
  state.totals.know(opened.session.model);
  opened.tree.onTeamMail(() => wake(state));
  await reportInstructions(opened.session.plan.system, options.observed(), new AbortController().signal);
  return opened;
}

function wake(state: HostState): void {
  state.wakeup.resolve();
  state.wakeup = Promise.withResolvers();
}

function promptOf(note: unknown): QueuedPrompt | undefined {
  // Every prompt of this host carries itself.
  return note as QueuedPrompt | undefined;
}

/** Gives the session what came before it was open. */
function submitPrompts(state: HostState): void {
  const { current, isReopening } = state;
  if (current === undefined || isReopening || !state.isReady) return;
  for (const prompt of state.early.splice(0)) {
    const { content, verbatim, asks, uuid: id } = prompt;
    void current.tree.main.submit({ type: "prompt", content, id, verbatim, asks, note: prompt });
  }
}

function cancelPrompts(state: HostState, id: string | undefined): readonly string[] {
  const { current, early } = state;
  const waiting = (current?.tree.prompts() ?? []).filter((prompt) => id === undefined || prompt.id === id);
  void current?.tree.main.submit({ type: "withdraw", id });
  const taken = early.filter(({ uuid }) => id === undefined || uuid === id);
  state.early = early.filter((prompt) => !taken.includes(prompt));
  return [...waiting.flatMap(({ note }) => promptOf(note) ?? []), ...taken].flatMap(({ uuid }) => uuid ?? []);
}

/** Closes the session and opens another in its place, which gets the prompts that wait. */
async function reopen(context: TurnContext, fresh = false): Promise<OpenSdkSession> {
  const { state } = context;
  state.isReopening = true;
  try {
    const waiting = (state.current?.tree.prompts() ?? []).flatMap(({ note }) => promptOf(note) ?? []);
    state.early.unshift(...waiting);
    await state.current?.[Symbol.asyncDispose]();
    state.opened = openNow(context, fresh);
    return await state.opened;
  } finally {
    state.isReopening = false;
  }
}

/** Everything that happens in one tree, as it is reported to the host. */
function hostingOf(context: TurnContext): Hosting {
  const { options, state } = context;
  const answer = answerQuestions((question, signal) => answerQuestion(question, signal, context));
  let ofChildren: ReturnType<typeof createTaskMessages> | undefined;
  return {
    prepare: (turn) => prepareTurn(turn, { session: openedOf(state), context }),
    tap: (event) => followEvent(event, { session: openedOf(state), context }),
    onEvent(event, submit) {
      if (event.type === "notice") return reportNotice(event, context);
      answer(event, submit);
      const session = state.current;
      if (session === undefined) return undefined;
      switch (event.type) {
        case "prompt-read":
          return readPrompt(event.prompt, context);
        case "prompt-ended":
          if (event.id !== state.turn?.id) return undefined;
          return state.turn.clearing === undefined
            ? endTurn(event, { session, context })
            : clearNext(state.turn, context);
        case "workflow-changed":
          options.connection().workflows.changed(event.taskId, event.change);
          return event.change.type === "ended" ? wake(state) : undefined;
        case "status-changed":
        case "agent-released":
          return wake(state);
        default:
          if (event.agentId === mainAgentId || !isRunEvent(event)) return undefined;
      }
      ofChildren ??= taskMessagesOf(session, options);
      const child = session.tree.get(event.agentId)?.state();
      if (child !== undefined) showChild({ ...event, event, state: child }, ofChildren, context);
      return undefined;
    },
  };
}

function openedOf({ current }: HostState): OpenSdkSession {
  if (current === undefined) throw new RetinueError("session-closed", "The session is not open.");
  return current;
}

function reportNotice(
  { level, text }: { readonly level: string; readonly text: string },
  { options, state, emit }: TurnContext,
): void {
  if (level === "error") emit(informational(text, state.current?.session.plan.sessionId ?? ""));
  else options.connection().context.host.stderr.write(`retinue: ${text}\n`);
}

async function answerQuestion(
  question: Question,
  signal: AbortSignal,
  { options, state }: TurnContext,
): Promise<Answer> {
  const connection = options.connection();
  const directory = state.current?.tree.facts.plan.directory ?? connection.context.host.cwd;
  const answer = await answerByHost(question, { connection, directory, signal });
  if (answer.type === "deny" && answer.stop === true) connection.isDenialFinal = true;
  return answer;
}

/** A prompt that is read in the middle of a turn, whose result answers it too. */
function readPrompt({ note }: { readonly note?: unknown }, { options, emit, state }: TurnContext): void {
  const connection = options.connection();
  const { uuid, line = {} } = promptOf(note) ?? {};
  connection.promptId = uuid;
  if (uuid !== undefined) {
    connection.turnIds = [...connection.turnIds, uuid];
    announcePrompt(connection, uuid, "started");
  }
  if (!connection.request.replay) return;
  const session_id = state.current?.session.plan.sessionId ?? "";
  emit({ ...line, type: "user", session_id, uuid: uuid ?? randomUUID(), isReplay: true });
}

function taskMessagesOf({ session, tree, outputFile }: OpenSdkSession, options: SdkHostOptions) {
  const { request, initialize } = options.connection();
  return createTaskMessages({
    sessionId: session.plan.sessionId,
    uuid: randomUUID,
    text: request.childText || initialize.forwardSubagentText,
    summaries: initialize.agentProgressSummaries,
    promptOf: (callId) => options.connection().childPrompts.get(callId),
    outputFile,
    list: tree.list,
    commands: () => [...options.connection().commands.running(), ...options.connection().workflows.running()],
  });
}

function showChild(
  update: TaskEvent,
  messagesOf: ReturnType<typeof createTaskMessages>,
  { options, state, emit }: TurnContext,
): void {
  const { event, agentId, parentId, agentType } = update;
  state.totals.add(event, { agentId, parentId, agentType });
  state.subagents.onChildEvent(update);
  options.connection().longCommands.onEvent(event);
  // Of the agents of a workflow a host sees the list of their run.
  if (update.state.workflow !== undefined) return;
  noteChildPrompt(event, options.connection().childPrompts);
  for (const message of messagesOf(update)) emit(message);
  if (event.type === "run-ended" || event.type === "run-idled") wake(state);
}

async function interrupt(state: HostState, stopsTasks: boolean): Promise<boolean> {
  const tree = state.current?.tree;
  const running = stopsTasks ? (tree?.list().filter((task) => task.background && !hasEnded(task)) ?? []) : [];
  const isRunning = state.turn !== undefined;
  void tree?.main.submit({ type: "interrupt", reason: "The host interrupted the turn." });
  await Promise.all(running.map(({ id }) => tree?.main.submit({ type: "stop", agent: id })));
  return isRunning;
}

async function run(context: TurnContext, signal: AbortSignal): Promise<number> {
  const { state, options } = context;
  const { commands, context: command } = options.connection();
  const limitMs = backgroundWaitOf(command.host.environment);
  using idleTimer = createIdleTimer(limitMs);
  using commandTimer = createIdleTimer(Math.min(limitMs, commandWaitMs));
  state.stopped = signal;
  const stopped = new Promise<void>((resolve) =>
    signal.addEventListener("abort", () => resolve(), { once: true }),
  );
  try {
    while (!signal.aborted) {
      const wakeup = state.wakeup.promise;
      if (state.changes.length > 0) await makeChanges(state, stopped);
      const session =
        state.opened === undefined && state.early.length === 0 ? undefined : await ready(context);
      state.isReady = session !== undefined;
      submitPrompts(state);
      const isWorking =
        session !== undefined && (session.tree.status().isBusy || session.tree.prompts().length > 0);
      if (isWorking) commandTimer.stop();
      else {
        const hasChildren = session?.tree.hasBackgroundWork() === true;
        const isBusy = hasChildren || commands.isBusy();
        const waiting = hasChildren ? idleTimer : commandTimer;
        // A workflow takes as long as it takes.
        const mayEnd = session?.session.workflows?.runs.isBusy() !== true;
        if (state.hasEndedInput && (!isBusy || (mayEnd && waiting.isOver()))) break;
        if (hasChildren) commandTimer.stop();
        if (state.hasEndedInput) waiting.start(() => wake(state));
        if (session !== undefined && state.reported !== undefined && !isBusy) setState(context, "idle");
      }
      await Promise.race([wakeup, stopped]);
    }
    if (signal.aborted) await endRunning(state, signal);
    releaseResults(context);
  } finally {
    await state.current?.[Symbol.asyncDispose]();
  }
  if (state.reported !== undefined) setState(context, "idle");
  return state.lastIsError ? 1 : 0;
}

/** Between two turns. */
async function makeChanges(state: HostState, stopped: Promise<void>): Promise<void> {
  const { current } = state;
  using _hold = current?.tree.hold();
  await Promise.race([current?.tree.idle(), stopped]);
  for (let change = state.changes.shift(); change !== undefined; change = state.changes.shift())
    await change();
}

/** The turn that ran when the host was stopped has a result too. */
async function endRunning(state: HostState, { reason }: AbortSignal): Promise<void> {
  const code = isRetinueError(reason) ? reason.code : undefined;
  const text = reason instanceof Error ? reason.message : String(reason);
  // What was stopped with it makes no report.
  state.current?.tree.hold();
  void state.current?.tree.main.submit({ type: "interrupt", code, reason: text });
  await state.current?.tree.idle();
  if (state.failure !== undefined) throw state.failure;
}

/** How long commands in the background are waited for when nothing else is left: a server would run for ever. */
const commandWaitMs = 5_000;

function createIdleTimer(limitMs: number) {
  let timer: NodeJS.Timeout | undefined;
  let over = false;
  const stop = (): void => {
    clearTimeout(timer);
    timer = undefined;
    over = false;
  };
  return {
    isOver: () => over,
    stop,
    start(notify: () => void): void {
      timer ??= setTimeout(() => {
        over = true;
        notify();
      }, limitMs);
    },
    [Symbol.dispose]: stop,
  };
}

function clearNext({ prompt, clearing }: Turn, context: TurnContext): void {
  const { state } = context;
  state.turn = undefined;
  state.changes.push(() => clear(context, prompt).finally(() => clearing?.[Symbol.dispose]()));
  wake(state);
}

/** `/clear`: the next prompt begins a new conversation. */
async function clear(context: TurnContext, prompt: QueuedPrompt): Promise<void> {
  const { state, emit } = context;
  const before = openedOf(state).session.plan.sessionId;
  const next = await reopen(context, true);
  const about = { new_conversation_id: next.session.plan.sessionId, trigger: "clear", session_id: before };
  const ids = prompt.uuid === undefined ? {} : { user_message_uuid: prompt.uuid };
  emit({ type: "conversation_reset", ...about, ...ids, uuid: randomUUID() });
  const reset = { type: "system", subtype: "background_tasks_changed", tasks: [] };
  emit({ ...reset, session_id: next.session.plan.sessionId, uuid: randomUUID() });
  state.described = next;
  emit(initOf(next, context));
  finishTurn(next, localEnding(), {
    context,
    prompt,
    isInterrupted: false,
    inTools: false,
    localCommand: "clear",
  });
}
