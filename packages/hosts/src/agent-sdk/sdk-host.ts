import { randomUUID } from "node:crypto";
import type { JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { UserMessage } from "@retinue/core/conversation/message.ts";
import type { RunEvent } from "@retinue/core/conversation/run-event.ts";
import { hasEnded } from "@retinue/core/kernel/session.ts";
import { backgroundWaitOf } from "@retinue/core/kernel/teams/create-parent-mail.ts";
import { localEnding } from "./answer-locally.ts";
import { createTaskMessages, noteChildPrompt } from "./create-task-messages.ts";
import { type ObservedHooks, reportInstructions } from "./observed-hooks.ts";
import type { OpenSdkSession } from "./open-sdk-session.ts";
import { blocksOf, type QueuedPrompt } from "./prompt-queue.ts";
import { createSessionTotals, type SessionTotals } from "./result-message.ts";
import { finishTurn, initOf, releaseResults, runTurn, type TurnContext } from "./run-turn.ts";
import type { SdkConnection } from "./sdk-connection.ts";
import type { SdkMessage } from "./sdk-messages.ts";
import { createSubagentCount, type SubagentCount } from "./subagent-stats.ts";

export interface SdkHostOptions {
  readonly connection: () => Pick<
    SdkConnection,
    | "channel"
    | "queue"
    | "policy"
    | "choices"
    | "request"
    | "initialize"
    | "context"
    | "lineIds"
    | "answers"
    | "childPrompts"
    | "commands"
    | "deferred"
    | "isDenialFinal"
    | "isHosted"
    | "isStopHeld"
    | "results"
    | "host"
    | "longCommands"
    | "serverPrompts"
    | "queued"
    | "startedAt"
    | "title"
    | "turnIds"
  >;
  /** Opens the session, or the one that takes its place; a fresh one begins a new conversation. */
  readonly open: (fresh: boolean) => Promise<OpenSdkSession>;
  readonly observed: () => ObservedHooks;
  /** Called with the event that the running turn has come to, before the next one is asked for. */
  readonly reached: (event: RunEvent | undefined) => Promise<void>;
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
  emit(message: SdkMessage): void;
  setState(state: SessionState): void;
  readonly totals: SessionTotals;
  apiDurationMs(): number;
}

export interface Turn {
  readonly controller: AbortController;
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

/** What is remembered between turns. */
export interface HostState {
  readonly totals: SessionTotals;
  readonly subagents: SubagentCount;
  /** Results that a mere reader gets together with the next, because children still work on the same request. */
  readonly held: (() => SdkMessage)[];
  /** What waits for the end of the running turn. */
  readonly changes: (() => Promise<void>)[];
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
  const ring = (): void => options.connection().queue.ring();
  return {
    totals: state.totals,
    emit,
    setState: (next) => setState(context, next),
    ready: () => ready(context),
    apiDurationMs: () => Math.round(state.apiMs),
    current: () => state.current,
    inputEnded() {
      state.hasEndedInput = true;
      ring();
    },
    reopen() {
      const reopened = Promise.withResolvers<OpenSdkSession>();
      state.changes.push(() => reopen(context).then(reopened.resolve, reopened.reject));
      ring();
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
  const opened = await options.open(fresh);
  state.current = opened;
  state.totals.know(opened.session.model);
  void watchTasks(context, opened);
  await reportInstructions(opened.session.plan.system, options.observed(), new AbortController().signal);
  return opened;
}

async function reopen(context: TurnContext): Promise<OpenSdkSession> {
  const { state } = context;
  await state.current?.[Symbol.asyncDispose]();
  state.opened = openNow(context);
  return state.opened;
}

async function watchTasks({ options, state, emit }: TurnContext, opened: OpenSdkSession): Promise<void> {
  const { request, initialize, queue } = options.connection();
  const messagesOf = createTaskMessages({
    sessionId: opened.session.plan.sessionId,
    uuid: randomUUID,
    text: request.childText || initialize.forwardSubagentText,
    summaries: initialize.agentProgressSummaries,
    promptOf: (callId) => options.connection().childPrompts.get(callId),
    outputFile: opened.outputFile,
    list: () => opened.session.tasks.list(),
    commands: () => options.connection().commands.running(),
  });
  for await (const update of opened.watchTasks()) {
    state.totals.add(update.event);
    state.subagents.hearChild(update);
    options.connection().longCommands.hear(update.event);
    noteChildPrompt(update.event, options.connection().childPrompts);
    for (const message of messagesOf(update)) emit(message);
    if (["run-ended", "run-idled"].includes(update.event.type)) queue.ring();
  }
}

async function interrupt(state: HostState, stopsTasks: boolean): Promise<boolean> {
  const tasks = state.current?.session.tasks;
  const running = stopsTasks
    ? (tasks?.list().filter((task) => task.background && !hasEnded(task)) ?? [])
    : [];
  const isRunning = state.turn !== undefined;
  state.turn?.controller.abort(new RetinueError("aborted", "The host interrupted the turn."));
  await Promise.all(running.map(({ id }) => tasks?.stop(id, "user")));
  return isRunning;
}

async function run(context: TurnContext, signal: AbortSignal): Promise<number> {
  const { state, options } = context;
  const { queue, commands, context: command } = options.connection();
  const limitMs = backgroundWaitOf(command.host.environment);
  using patience = createPatience(limitMs);
  using commandPatience = createPatience(Math.min(limitMs, commandWaitMs));
  const stopped = new Promise<void>((resolve) =>
    signal.addEventListener("abort", () => resolve(), { once: true }),
  );
  try {
    while (!signal.aborted) {
      const bell = queue.wait();
      for (let change = state.changes.shift(); change !== undefined; change = state.changes.shift())
        await change();
      const session = state.opened === undefined && !queue.hasPrompt() ? undefined : await ready(context);
      const hasChildren = session?.hasBackgroundWork() === true;
      const isBusy = hasChildren || commands.isBusy();
      const prompt = session === undefined ? undefined : nextPrompt(session, queue.next(), commands);
      if (session !== undefined && prompt !== undefined) {
        setState(context, "running");
        commandPatience.stop();
        await (isClear(prompt)
          ? clear(context, session, prompt)
          : runTurn(session, prompt, { context, signal }));
        continue;
      }
      const waiting = hasChildren ? patience : commandPatience;
      if (state.hasEndedInput && (!isBusy || waiting.isOver())) break;
      if (hasChildren) commandPatience.stop();
      if (state.hasEndedInput) waiting.start(() => queue.ring());
      if (session !== undefined && state.reported !== undefined && !isBusy) setState(context, "idle");
      await Promise.race([bell, stopped]);
    }
    releaseResults(context);
  } finally {
    await state.current?.[Symbol.asyncDispose]();
  }
  if (state.reported !== undefined) setState(context, "idle");
  return state.lastIsError ? 1 : 0;
}

/** How long commands in the background are waited for when nothing else is left: a server would run for ever. */
const commandWaitMs = 5_000;

function createPatience(limitMs: number) {
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
    start(ring: () => void): void {
      timer ??= setTimeout(() => {
        over = true;
        ring();
      }, limitMs);
    },
    [Symbol.dispose]: stop,
  };
}

/** The next prompt: of the host, or what children in the background have to report. */
function nextPrompt(
  session: OpenSdkSession,
  queued: QueuedPrompt | undefined,
  commands: SdkConnection["commands"],
): QueuedPrompt | undefined {
  if (queued !== undefined) return queued;
  const content = session.takeReports() ?? commands.takeReports();
  return content === undefined
    ? undefined
    : { content, line: reportLine(content), verbatim: true, asks: true };
}

/** `/clear`: the next prompt begins a new conversation. */
async function clear(context: TurnContext, session: OpenSdkSession, prompt: QueuedPrompt): Promise<void> {
  const { state, emit } = context;
  const before = session.session.plan.sessionId;
  await session[Symbol.asyncDispose]();
  state.opened = openNow(context, true);
  const next = await state.opened;
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

function isClear({ content, verbatim }: QueuedPrompt): boolean {
  if (verbatim) return false;
  const [first, ...more] = blocksOf(content);
  return more.length === 0 && first?.type === "text" && first.text.trim() === "/clear";
}

function reportLine(content: UserMessage["content"]): JsonRecord {
  return {
    type: "user",
    message: { role: "user", content: blocksOf(content) },
    isSynthetic: true,
    origin: { kind: "task-notification" },
  };
}
