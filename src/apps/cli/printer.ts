import { randomUUID } from "node:crypto";
import type { RunEnding, RunEvent } from "../../conversation/run-event.ts";
import { contextTokens } from "../../conversation/usage.ts";
import { plural } from "../../foundation/diagnostic.ts";
import { isRetinueError } from "../../foundation/retinue-error.ts";
import type { RunPlan, Session, TaskEvent, TaskState } from "../../runtime/session.ts";
import { sessionRecord } from "../../runtime/session-record.ts";
import { createAnswerStream } from "../agent-sdk/answer-stream.ts";
import { apiFailureOf } from "../agent-sdk/api-failure.ts";
import { onlyCalls } from "../agent-sdk/create-task-messages.ts";
import type { CliHost, CliOutput } from "./cli-host.ts";
import { describeCall } from "./describe-call.ts";
import { createModelTally } from "./model-tally.ts";
import { keySourceOf } from "./open-print-session.ts";
import { initMessage, type MessageContext, messagesOf, type OutputMessage } from "./output-messages.ts";
import type { PrintRequest } from "./print-options.ts";
import { failureMessage, resultMessage } from "./result-message.ts";
import { endingAdvice, refusalForPeople } from "./views/ending-advice.ts";
import { createPaint } from "./views/paint.ts";
import { harmlessLines, stripControlCharacters } from "./views/strip-control-characters.ts";

/** What is printed of a session, in one of the output formats. */
export interface Printer {
  begin(): void;
  show(event: RunEvent): void;
  /** What a child agent does; absent where nothing of that is shown. */
  showChild?(news: TaskEvent): void;
  end(ending: RunEnding): void;
  /** Something went wrong outside of the run; where JSON is printed, that is a result too. */
  fail(error: unknown): void;
}

/** The same before there is a session. What is wrong with the command line itself is only said on stderr. */
export function printFailure(host: CliHost, { output, session }: PrintRequest, error: unknown): void {
  if (output === "text" || (isRetinueError(error) && error.code === "misuse")) return;
  const context = { sessionId: session.sessionId ?? session.resume ?? "", uuid: randomUUID };
  host.stdout.write(`${JSON.stringify(failureMessage(error, context))}\n`);
}

/** `reported` is what the person has been shown before; the notes of the plan do not say it again. */
export function createPrinter(
  host: CliHost,
  request: PrintRequest,
  session: Session,
  reported: ReadonlySet<string> = new Set(),
): Printer {
  if (request.output === "text")
    return createTextPrinter(host, session, { reported, budget: request.session.maxBudgetUsd });
  const context: MessageContext = { sessionId: session.plan.sessionId, uuid: randomUUID };
  const isList = request.output === "json" && request.verbose;
  const listed: OutputMessage[] = [];
  const write = (value: unknown): void => host.stdout.write(`${JSON.stringify(value)}\n`);
  const line = (message: OutputMessage): void => (isList ? void listed.push(message) : write(message));
  const last = (message: OutputMessage): void => {
    line(message);
    if (isList) write(listed.splice(0));
  };
  const tally = createModelTally();
  const turns = createTurnCount();
  const end = (ending: RunEnding): void =>
    last(resultMessage(ending, session.model, context, tally.take(), turns.take()));
  const fail = (error: unknown): void => last(failureMessage(error, context));
  if (request.output === "json" && !isList)
    return {
      begin: () => undefined,
      show: turns.add,
      showChild: ({ event }) => tally.add(event),
      end,
      fail,
    };
  const answers = createAnswerStream({
    sessionId: () => context.sessionId,
    uuid: context.uuid,
    lineIds: () => [],
    partial: request.partial,
  });
  const children = createChildMessages({
    ...context,
    text: request.childText,
    outputFile: sessionRecord(session).outputOf,
  });
  return {
    begin: () => line(initMessage(session, keySourceOf(session, host.environment), context)),
    show(event) {
      turns.add(event);
      for (const message of answers.take(event)) line(message);
      if (event.type === "assistant-answered") return;
      for (const message of messagesOf(event, request, context)) line(message);
    },
    showChild(news) {
      tally.add(news.event);
      for (const message of children(news)) line(message);
    },
    end,
    fail,
  };
}

/** Turns as programs count them: the prompt, and each message that the conversation got after it. */
function createTurnCount(): { add(event: RunEvent): void; take(): number | undefined } {
  let messages: number | undefined;
  return {
    add(event) {
      if (event.type === "turn-started") messages ??= 1;
      if (event.type !== "user-added" || event.origin === "prompt" || messages === undefined) return;
      const { content } = event.message;
      const results = typeof content === "string" ? [] : content.filter(({ type }) => type === "tool_result");
      messages += Math.max(1, results.length);
    },
    take() {
      const taken = messages;
      messages = undefined;
      return taken;
    },
  };
}

function createTextPrinter(
  host: CliHost,
  session: Session,
  { reported, budget }: { readonly reported: ReadonlySet<string>; readonly budget: number | undefined },
): Printer {
  const progress = createProgressView(host, reported);
  return {
    begin: () => progress.begin(session.plan),
    show: progress.show,
    ...(progress.showChild === undefined ? {} : { showChild: progress.showChild }),
    fail: () => undefined,
    end(ending) {
      progress.end(ending);
      const failure = apiFailureOf(ending);
      if (ending.output !== undefined) host.stdout.write(`${JSON.stringify(ending.output)}\n`);
      else if (ending.reason === "max_turns")
        host.stdout.write(`Error: Reached max turns (${ending.totals.turns})\n`);
      else if (ending.reason === "max_budget" && budget !== undefined)
        host.stdout.write(`Error: Exceeded USD budget (${budget})\n`);
      else if (failure !== undefined) host.stdout.write(`${answerText(failure.text, host.stdout)}\n`);
      else if (ending.text !== "") host.stdout.write(`${answerText(ending.text.trimEnd(), host.stdout)}\n`);
    },
  };
}

/** What a model says: as it is for programs, and for a terminal without what that would act on. */
export function answerText(text: string, { isTerminal }: CliOutput): string {
  return isTerminal ? harmlessLines(text) : text;
}

/** What a person at a terminal sees of a run before its result; on stderr, so that stdout stays the result alone. */
interface ProgressView {
  begin(plan: RunPlan): void;
  show(event: RunEvent): void;
  /** Absent where no one sees it. */
  readonly showChild: ((news: TaskEvent) => void) | undefined;
  end(ending: RunEnding): void;
}

export function createProgressView(
  { stderr }: CliHost,
  reported: ReadonlySet<string> = new Set(),
): ProgressView {
  const paint = createPaint(stderr.isColourAllowed);
  const say = (text: string): void => stderr.write(`${paint.dim(stripControlCharacters(text))}\n`);
  const showChild = ({ event, state }: TaskEvent): void => {
    const line = describeChild(event, state);
    if (line !== undefined) say(`[${state.agentType} ${state.description}] ${line}`);
  };
  return {
    begin(plan) {
      for (const note of plan.notes) if (!reported.has(note)) say(`note: ${note}`);
    },
    show(event) {
      if (event.type === "model-retried") {
        say(`the model did not answer (${event.code}); trying again in ${Math.ceil(event.delayMs / 1000)} s`);
      }
      if (event.type === "context-compacted")
        say(`the conversation was compacted from ${event.preTokens} to ${event.postTokens} tokens`);
      if (!stderr.isTerminal) return;
      if (event.type === "call-started") say(`· ${describeCall(event.call)}`);
      if (event.type === "call-finished" && event.denied !== undefined)
        say(`  refused: ${refusalForPeople(event.denied)}`);
    },
    showChild: stderr.isTerminal ? showChild : undefined,
    end(ending) {
      if (ending.error !== undefined)
        stderr.write(`${paint.error("retinue:")} ${stripControlCharacters(ending.error)}\n`);
      const advice = ending.error === undefined ? undefined : endingAdvice(ending);
      if (advice !== undefined) stderr.write(`${stripControlCharacters(advice)}\n`);
      if (ending.denials.length > 0) stderr.write(`${stripControlCharacters(describeDenials(ending))}\n`);
    },
  };
}

/** One line for each thing worth knowing of a child. */
function describeChild(
  event: RunEvent,
  { startedAt, endedAt, toolUses, usage }: TaskState,
): string | undefined {
  if (event.type === "call-started") return `· ${describeCall(event.call)}`;
  if (event.type === "call-finished" && event.denied !== undefined)
    return `refused: ${refusalForPeople(event.denied)}`;
  if (event.type === "run-stalled")
    return `no sign of life for ${Math.round(event.silentMs / 1000)} s${event.stops ? "; it is stopped" : ""}`;
  if (event.type === "loop-noticed")
    return `${event.call.name}: the same calls ${event.times} times with the same results`;
  if (event.type === "context-compacted")
    return `compacted from ${event.preTokens} to ${event.postTokens} tokens`;
  if (event.type !== "run-ended") return undefined;
  const count = contextTokens(usage) + usage.outputTokens;
  const tokens = count === 0 ? "" : ` ${plural(count, "token")},`;
  const seconds = (((endedAt ?? startedAt) - startedAt) / 1000).toFixed(1);
  return `${event.ending.status}: ${plural(toolUses, "call")},${tokens} ${seconds} s`;
}

function describeDenials({ denials }: RunEnding): string {
  const tools = [...new Set(denials.map(({ call }) => call.name))].join(",");
  const count = denials.length === 1 ? "1 call was" : `${denials.length} calls were`;
  return `${count} not allowed; unless a rule or the definition denies it, --allowedTools "${tools}" allows it.`;
}

interface ChildMessageOptions extends MessageContext {
  /** What children say and think, too. */
  readonly text: boolean;
  readonly outputFile: (agentId: string) => string;
}

/** What the stream shows of child agents: their start, each tool call, their end, and what they do. */
function createChildMessages(options: ChildMessageOptions): (news: TaskEvent) => readonly OutputMessage[] {
  const started = new Set<string>();
  return ({ event, state }) => {
    const run = `${state.id} ${state.startedAt}`;
    const isNew = !started.has(run);
    started.add(run);
    const report = (subtype: string, fields: object): OutputMessage => ({
      type: "system",
      subtype,
      task_id: state.id,
      ...(state.callId === undefined ? {} : { tool_use_id: state.callId }),
      ...fields,
      session_id: options.sessionId,
      uuid: options.uuid(),
    });
    return [
      ...(isNew ? [report("task_started", startOf(state))] : []),
      ...spoken(event, state, options),
      ...(event.type === "call-started" ? [report("task_progress", progressOf(event, state))] : []),
      ...(event.type === "run-ended" ? [report("task_notification", endOf(event, state, options))] : []),
    ];
  };
}

function startOf({ description, agentType, background }: TaskState) {
  return { description, subagent_type: agentType, is_backgrounded: background, spawn_depth: 1 };
}

function progressOf({ call }: Extract<RunEvent, { type: "call-started" }>, state: TaskState) {
  return {
    description: state.description,
    subagent_type: state.agentType,
    usage: usageOf(state),
    last_tool_name: call.name,
    summary: describeCall(call),
  };
}

function endOf(
  { ending }: Extract<RunEvent, { type: "run-ended" }>,
  state: TaskState,
  { outputFile }: ChildMessageOptions,
) {
  return {
    status: ending.status === "partial" ? "completed" : ending.status,
    reason: ending.reason,
    output_file: outputFile(state.id),
    summary: `Agent ${JSON.stringify(state.description)}: ${ending.status}`,
    usage: usageOf(state),
  };
}

function usageOf({ usage, toolUses, startedAt, lastSignAt }: TaskState) {
  return {
    total_tokens: contextTokens(usage) + usage.outputTokens,
    tool_uses: toolUses,
    duration_ms: Math.round(lastSignAt - startedAt),
  };
}

/** The child's own messages, marked as such; without `text` only its calls and their results. */
function spoken(event: RunEvent, state: TaskState, options: ChildMessageOptions): readonly OutputMessage[] {
  const shown = options.text ? event : onlyCalls(event);
  if (shown === undefined) return [];
  const context = {
    sessionId: options.sessionId,
    uuid: options.uuid,
    ...(state.callId === undefined ? {} : { parentToolUseId: state.callId }),
  };
  return messagesOf(shown, { replay: false }, context).map((message) => ({
    ...message,
    agent_id: state.id,
    ...(message.type === "system"
      ? {}
      : { subagent_type: state.agentType, task_description: state.description }),
  }));
}
