import { randomUUID } from "node:crypto";
import type { JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { isRetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { noTotals, type RunEnding, type RunEvent } from "@retinue/core/conversation/run-event.ts";
import { blocksOf } from "@retinue/core/kernel/prompt-queue.ts";
import type { PreparedTurn, Turn as WireTurn } from "@retinue/core/kernel/turn-driver.ts";
import { thrownError } from "@retinue/core/kernel/turn-driver.ts";
import type { PromptOutcome } from "@retinue/core/protocol/agent-event.ts";
import { debugLine } from "../shared/debug-line.ts";
import { keySourceOf } from "../shared/open-print-session.ts";
import {
  answerLocally,
  commandOf,
  isUnknownCommand,
  type LocalFacts,
  localEnding,
  localMessage,
  promptText,
} from "./answer-locally.ts";
import { noteChildPrompt } from "./create-task-messages.ts";
import { describeCommands, initMessage } from "./init-message.ts";
import { isBlocking } from "./observed-hooks.ts";
import type { OpenSdkSession } from "./open-sdk-session.ts";
import { announcePrompt, type QueuedPrompt } from "./queued-prompt.ts";
import { failureMessage, isErrorEnding, isHeldBack, localReason, resultMessage } from "./result-message.ts";
import type { HostState, SdkHostOptions, Turn, TurnFigures } from "./sdk-host.ts";
import {
  informational,
  interruptedMessage,
  notification,
  type SdkMessage,
  sdkMessages,
} from "./sdk-messages.ts";

/** What a turn works with: the host's options, what it remembers, and how it sends. */
export interface TurnContext {
  readonly options: SdkHostOptions;
  readonly state: HostState;
  readonly emit: (message: SdkMessage) => void;
}

interface InTurn {
  readonly session: OpenSdkSession;
  readonly context: TurnContext;
}

/** Begins a turn: with what the model is asked, or with its end where the session itself answers. */
export async function prepareTurn(
  { prompt: given, origin, signal }: WireTurn,
  { session, context }: InTurn,
): Promise<PreparedTurn> {
  const { options, state, emit } = context;
  const { id, content, note } = given;
  const written =
    origin === "report"
      ? { content, line: reportLine(content), verbatim: true, asks: true }
      : // Every prompt of this host carries itself.
        { ...(note as QueuedPrompt), content };
  context.options.connection().host.setState("running");
  const uuid = written.uuid ?? randomUUID();
  const verbatim = written.verbatim || isUnknownCommand(written, session);
  const prompt = { ...written, uuid, verbatim };
  // `init` and the replayed prompt, with the first event of the turn.
  let hasStarted = false;
  const begin: () => void = () => {
    if (hasStarted) return;
    hasStarted = true;
    if (context.state.described !== session)
      for (const message of describeChanges(session, context)) context.emit(message);
    context.state.described = session;
    context.emit(initOf(session, context));
    if (!context.options.connection().request.replay) return;
    context.emit({
      ...prompt.line,
      type: "user",
      parent_tool_use_id: null,
      session_id: session.session.plan.sessionId,
      uuid: prompt.uuid ?? randomUUID(),
      isReplay: true,
    });
  };
  const turn: Turn = { id, prompt, begin, signal, inTools: false, startedAt: Date.now(), userMessages: 0 };
  state.turn = turn;
  if (isClear(written)) {
    // No turn begins before the session has been replaced.
    turn.clearing = session.tree.hold();
    return { ending: localEnding() };
  }
  options.connection().turnIds = written.uuid === undefined ? [] : [written.uuid];
  if (written.uuid !== undefined) announcePrompt(options.connection(), written.uuid, "started");
  const local = answerLocally(written, session, localFacts(session, context));
  if (local !== undefined) {
    begin();
    if (local.text !== undefined) emit(localMessage(local, session.session.plan.sessionId));
    turn.localCommand = local.command;
    return { ending: localEnding(local.text) };
  }
  options.begins(prompt);
  options.refuse(session.session);
  const expanded = await withServerPrompt(prompt, { context, signal });
  turn.prompt = expanded;
  const held = await expansionRefusal(session, expanded, { context, signal });
  return held === undefined ? expanded : { ending: held };
}

/** Reports how a turn ended. */
export function endTurn(outcome: PromptOutcome, { session, context }: InTurn): void {
  const { state } = context;
  const { turn } = state;
  state.turn = undefined;
  if (turn === undefined || outcome.outcome === "withdrawn") return;
  const { isInterrupted } = outcome;
  if (outcome.outcome === "failed" && state.stopped?.aborted === true) {
    state.failure = thrownError(outcome.error);
    return;
  }
  turn.begin();
  const end = { ...turn, context, isInterrupted };
  if (outcome.outcome === "ended") finishTurn(session, outcome.ending, end);
  else finishTurn(session, endingOf(thrownError(outcome.error)), { ...end, inTools: false });
}

function isClear({ content, verbatim }: QueuedPrompt): boolean {
  if (verbatim) return false;
  const [first, ...more] = blocksOf(content);
  return more.length === 0 && first?.type === "text" && first.text.trim() === "/clear";
}

function reportLine(content: QueuedPrompt["content"]): JsonRecord {
  return {
    type: "user",
    message: { role: "user", content: blocksOf(content) },
    isSynthetic: true,
    origin: { kind: "task-notification" },
  };
}

/** What a prompt of an MCP server says takes the place of its name. */
async function withServerPrompt<Prompt extends QueuedPrompt>(
  prompt: Prompt,
  { context, signal }: { readonly context: TurnContext; readonly signal: AbortSignal },
): Promise<Prompt> {
  const [name = "", words = ""] = commandOf(withoutMark(prompt)) ?? [];
  const content = context.options.connection().serverPrompts.expand(name, words, signal);
  return content === undefined ? prompt : { ...prompt, content: await content, verbatim: true };
}

/** A prompt of a server is no command of the session, so it was marked as plain words. */
function withoutMark({ content, line }: QueuedPrompt): Pick<QueuedPrompt, "content" | "verbatim"> {
  return { content, verbatim: line["client_composed"] === true };
}

/** Callbacks receive a command before it is put in the place of its name, and may hold it back. */
async function expansionRefusal(
  { session }: OpenSdkSession,
  { content, verbatim }: QueuedPrompt,
  { context, signal }: { readonly context: TurnContext; readonly signal: AbortSignal },
): Promise<RunEnding | undefined> {
  const [name, words] = commandOf({ content, verbatim }) ?? [];
  const text = promptText({ content }).trim();
  const command = session.skills.find((skill) => skill.name === name && skill.userInvocable);
  if (name === undefined || command === undefined) return undefined;
  const fields = {
    expansion_type: "slash_command",
    command_name: name,
    command_args: words,
    command_source: settingsNames.get(command.source.scope) ?? command.source.scope,
    prompt: text,
  };
  const outputs = await context.options
    .observed()
    .fire("UserPromptExpansion", { fields, signal, subject: name });
  const block = outputs.find(isBlocking);
  if (block === undefined) return undefined;
  const reason = typeof block["reason"] === "string" ? block["reason"] : "a hook refused it";
  return { ...endingOf(`The command /${name} was refused: ${reason}`), reason: "prompt_blocked" };
}

/** Programs know the places of settings under these names. */
const settingsNames: ReadonlyMap<string, string> = new Map([
  ["project", "projectSettings"],
  ["user", "userSettings"],
  ["local", "localSettings"],
  ["managed", "policySettings"],
]);

function localFacts(session: OpenSdkSession, { state, options }: TurnContext): LocalFacts {
  const { choices, startedAt } = options.connection();
  return {
    totals: state.totals,
    model: choices.model ?? session.session.plan.model.value,
    apiMs: state.apiMs,
    wallMs: Date.now() - startedAt,
  };
}

/** What a program may want to know again of a session that was opened: its title and its commands. */
function describeChanges({ session }: OpenSdkSession, { options }: TurnContext): readonly SdkMessage[] {
  const { title, serverPrompts } = options.connection();
  const commands = [...describeCommands(session.skills), ...serverPrompts.commands()];
  const system = (subtype: string, fields: JsonRecord): SdkMessage => ({
    type: "system",
    subtype,
    ...fields,
    uuid: randomUUID(),
    session_id: session.plan.sessionId,
  });
  return [
    ...(serverPrompts.commands().length > 0 ? [system("commands_changed", { commands })] : []),
    ...(title === undefined ? [] : [system("session_title_changed", { title })]),
  ];
}

export function initOf(session: OpenSdkSession, { options }: TurnContext): SdkMessage {
  const { policy, choices, context, turnIds, serverPrompts } = options.connection();
  return initMessage(session.session, {
    promptIds: turnIds,
    commands: serverPrompts.commands(),
    mode: policy.mode() ?? session.initialMode,
    model: choices.model ?? session.session.plan.model.value,
    apiKeySource: keySourceOf(session.session, context.host.environment),
    uuid: randomUUID(),
  });
}

/** Shows what happens in a turn; the next event is asked for after that. */
export async function followEvent(event: RunEvent, { session, context }: InTurn): Promise<void> {
  const { options, state, emit } = context;
  const { turn } = state;
  const connection = options.connection();
  const { debug } = connection.context;
  const line = debug === undefined ? undefined : debugLine(event);
  if (line !== undefined) debug?.(line);
  if (event.type === "run-ended" || turn === undefined) return;
  const { signal, begin } = turn;
  if (!isManual(event)) begin();
  await options.reached(event);
  state.totals.add(event);
  state.subagents.onEvent(event);
  connection.longCommands.onEvent(event);
  if (event.type === "call-started") turn.inTools = true;
  if (event.type === "turn-started") turn.inTools = false;
  noteTiming(event, turn);
  noteChildPrompt(event, connection.childPrompts);
  if (event.type === "assistant-answered") state.totals.know({ ...session.session.model, id: event.model });
  await options.observed().display(event, signal);
  const isResult = event.type === "user-added" || event.type === "call-finished";
  if (isResult && connection.deferred !== undefined) return;
  for (const message of messagesOf(event, session, options)) {
    if (message["subtype"] === "compact_boundary") begin();
    if (message.type === "user") turn.userMessages += 1;
    emit(withPromptIds(message, connection.turnIds));
  }
  reportHeldStop(event, session, context);
  await options.observed().onEvent(event, signal);
}

/** A compaction that was asked for begins before the turn is described, and ends behind that. */
function isManual(event: RunEvent): boolean {
  if (event.type === "compaction-started" || event.type === "context-compacted")
    return event.trigger === "manual";
  return event.type === "compaction-progressed";
}

function reportHeldStop(event: RunEvent, { session }: OpenSdkSession, { options, emit }: TurnContext): void {
  const connection = options.connection();
  if (!connection.isStopHeld || event.type !== "user-added" || event.origin === "tool-results") return;
  connection.isStopHeld = false;
  emit(notification("stop-hook-error", "A Stop hook made the agent continue.", session.plan.sessionId));
}

function messagesOf(
  event: RunEvent,
  { session }: OpenSdkSession,
  options: SdkHostOptions,
): readonly SdkMessage[] {
  const { lineIds, request, answers, results } = options.connection();
  const shown = answers.take(event);
  if (event.type === "assistant-answered") return shown;
  const others = sdkMessages(event, {
    sessionId: session.plan.sessionId,
    uuid: randomUUID,
    lineIds: (known) => lineIds.get(known) ?? [],
    partial: request.partial,
    results,
  });
  return [...shown, ...others];
}

/** Answers name the prompts of the host that they answer. */
function withPromptIds(message: SdkMessage, ids: readonly string[]): SdkMessage {
  const last = ids.at(-1);
  if (message.type !== "assistant" || last === undefined) return message;
  return { ...message, user_message_uuid: last, user_message_uuids: ids };
}

/** Keeps what the result of a turn says about it. */
export function noteTiming(event: RunEvent, running: TurnFigures): void {
  const sinceStart = Math.round(Date.now() - running.startedAt);
  if (event.type === "turn-started") running.requestedMs ??= sinceStart;
  if (event.type === "model-streamed" && event.event.type === "message-started")
    running.answeredMs ??= sinceStart;
  if (event.type !== "assistant-answered") return;
  running.lastStop = event.stopReason;
  if (event.requestId !== undefined) running.lastRequestId = event.requestId;
  if (event.stopReason === "refusal") running.refusals = (running.refusals ?? 0) + 1;
}

export function timingOf({ requestedMs, answeredMs }: Partial<TurnFigures>): JsonRecord {
  if (requestedMs === undefined || answeredMs === undefined) return {};
  return {
    ttft_ms: answeredMs,
    ttft_stream_ms: answeredMs - requestedMs,
    time_to_request_ms: requestedMs,
    first_content_frame_ms: answeredMs,
  };
}

/** Everything that is known of a turn at its end. */
interface TurnEnd extends Partial<Omit<TurnFigures, "inTools">> {
  readonly context: TurnContext;
  readonly prompt: QueuedPrompt;
  readonly isInterrupted: boolean;
  readonly inTools: boolean;
  readonly localCommand?: string | undefined;
}

/** Everything that is sent at the end of a turn; the result is last. */
export function finishTurn(session: OpenSdkSession, given: RunEnding, end: TurnEnd): void {
  const { context, prompt, lastStop } = end;
  const { state, emit, options } = context;
  const connection = options.connection();
  const { deferred, isDenialFinal, turnIds } = connection;
  connection.deferred = undefined;
  connection.isDenialFinal = false;
  connection.isStopHeld = false;
  const isInterrupted = end.isInterrupted || isDenialFinal;
  const inTools = end.inTools || isDenialFinal;
  const { sessionId } = session.session.plan;
  const isCompaction = commandOf(prompt)?.[0] === "compact" && given.status === "completed";
  state.interruptedAgents = given.interruptedAgents ?? state.interruptedAgents;
  const { interruptedAgents } = state;
  const ending: RunEnding = {
    ...given,
    interruptedAgents,
    ...(isCompaction ? { reason: localReason, text: "" } : {}),
  };
  const localCommand = isCompaction ? "compact" : end.localCommand;
  state.apiMs += ending.totals.modelMs;
  const cut = connection.answers.takeCut();
  if (isInterrupted) for (const message of [...cut, interruptedMessage(sessionId, inTools)]) emit(message);
  if (ending.reason === "prompt_blocked") emit(informational(ending.error ?? "", sessionId));
  if (ending.reason === "refusal") emit(refusalMessage(session, end));
  const failure = failureMessage(ending, { sessionId, uuid: randomUUID(), id: randomUUID() });
  if (failure !== undefined) emit(withPromptIds(failure, turnIds));
  void options.observed().ended(ending);
  const index = state.results;
  const queued = connection.host.queuedIds().length;
  const makeResult = (): SdkMessage =>
    resultMessage(ending, {
      sessionId,
      uuid: randomUUID(),
      totals: state.totals,
      subagents: state.subagents.stats(),
      refusals: end.refusals ?? 0,
      promptIds: turnIds,
      turns: turnsOf(ending, isCompaction ? {} : end, isInterrupted),
      localCommand,
      origin: prompt.line["origin"],
      queued,
      deferred,
      index,
      maxBudget: connection.request.session.maxBudgetUsd,
      lastStop,
      timing: isCompaction ? {} : timingOf(end),
      interrupted: isInterrupted,
      inTools,
    });
  state.lastIsError = isErrorEnding(ending, isInterrupted);
  state.results += 1;
  if (!connection.isHosted && session.hasRunningChildren()) state.held.push(makeResult);
  else {
    releaseResults(context);
    emit(makeResult());
  }
  for (const id of turnIds) announcePrompt(connection, id, "completed");
  connection.turnIds = [];
}

/** Sends the results that were held back. */
export function releaseResults({ state, emit }: Pick<TurnContext, "state" | "emit">): void {
  for (const makeResult of state.held.splice(0)) emit(makeResult());
}

/** The model refused to answer, and no other model is asked. */
function refusalMessage(
  { session }: OpenSdkSession,
  { context, lastRequestId, prompt }: TurnEnd,
): SdkMessage {
  const { choices } = context.options.connection();
  return {
    type: "system",
    subtype: "model_refusal_no_fallback",
    original_model: choices.model ?? session.plan.model.value,
    request_id: lastRequestId ?? null,
    api_refusal_category: null,
    api_refusal_explanation: null,
    refused_user_message_uuid: prompt.uuid ?? null,
    content: "",
    uuid: randomUUID(),
    session_id: session.plan.sessionId,
  };
}

/** Each message of the conversation after the prompt begins a turn of its own; without a model there is none. */
export function turnsOf(
  { reason }: RunEnding,
  { userMessages = 0, requestedMs }: Partial<TurnFigures>,
  isInterrupted: boolean,
): number {
  const isAnswered = requestedMs !== undefined || reason !== localReason;
  if (!isAnswered || isHeldBack(reason)) return 0;
  return 1 + userMessages + (isInterrupted ? 1 : 0);
}

export function endingOf(error: unknown): RunEnding {
  const advice = isRetinueError(error) && error.advice !== undefined ? ` ${error.advice}` : "";
  const message = error instanceof Error ? error.message : String(error);
  return {
    status: "failed",
    reason: isRetinueError(error) ? error.code : "error",
    text: "",
    error: `${message}${advice}`,
    denials: [],
    totals: noTotals,
  };
}
