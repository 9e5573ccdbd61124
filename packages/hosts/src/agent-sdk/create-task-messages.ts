import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import type { RunEnding, RunEvent } from "@retinue/core/conversation/run-event.ts";
import { contextTokens } from "@retinue/core/conversation/usage.ts";
import type { TaskEvent } from "@retinue/core/kernel/session.ts";
import type { TaskState } from "../../../../src/index.ts";
import { describeCall } from "../shared/describe-call.ts";
import { runIdOf, runningAgents } from "./background-commands.ts";
import { type CallResults, createCallResults } from "./call-results.ts";
import { failureMessage } from "./result-message.ts";
import { type SdkMessage, type SdkMessageContext, sdkMessages } from "./sdk-messages.ts";

export interface TaskMessageOptions extends Pick<SdkMessageContext, "sessionId" | "uuid"> {
  /** What children say and think, too; of those in the background it is always shown. */
  readonly text: boolean;
  /** A sentence about what a child is doing with each of its calls. */
  readonly summaries: boolean;
  readonly outputFile: (agentId: string) => string;
  /** All children there are now. */
  readonly list: () => readonly TaskState[];
  /** What the call that started a child asks it to do. */
  readonly promptOf: (callId: string) => string | undefined;
  /** Commands in the background. */
  readonly commands: () => readonly JsonRecord[];
}

/** What a host receives about child agents: their start, what they do, changes of their state, their end. */
export function createTaskMessages(
  options: TaskMessageOptions,
): (pendingMessages: TaskEvent) => readonly SdkMessage[] {
  const started = new Set<string>();
  const backgrounded = new Set<string>();
  const results = createCallResults();

  const system = (subtype: string, fields: JsonRecord): SdkMessage => ({
    type: "system",
    subtype,
    ...fields,
    uuid: options.uuid(),
    session_id: options.sessionId,
  });
  const about = (state: TaskState, subtype: string, fields: JsonRecord): SdkMessage =>
    system(subtype, {
      task_id: state.id,
      run_id: runIdOf(state),
      tool_use_id: state.callId,
      ...fields,
    });

  function changed(): SdkMessage {
    const tasks = [...runningAgents(options.list()), ...options.commands()];
    return system("background_tasks_changed", { tasks });
  }

  return ({ event, state }) => {
    const run = `${state.id} ${state.startedAt}`;
    const isNew = !started.has(run);
    started.add(run);
    const isMoved = state.background && !backgrounded.has(run);
    if (isMoved) backgrounded.add(run);
    const isOver = event.type === "run-ended";
    return [
      ...(isMoved && !isOver ? [changed()] : []),
      ...(isNew ? [about(state, "task_started", startOf(state, options))] : []),
      ...(isMoved && !isNew ? [about(state, "task_updated", { patch: { is_backgrounded: true } })] : []),
      ...withProgress(childMessages(event, state, { ...options, results }), {
        progress: progressOf(event, state, options).map((fields) => about(state, "task_progress", fields)),
        isFirst: !state.background,
      }),
      ...(isOver ? failureOf(event.ending, state, options) : []),
      ...(isOver
        ? [system("task_updated", { task_id: state.id, run_id: runIdOf(state), patch: patchOf(event) })]
        : []),
      ...(isOver ? [about(state, "task_notification", endOf(event, state, options))] : []),
      ...(isOver && state.background ? [changed()] : []),
    ];
  };
}

function startOf(
  { description, agentType, background, callId, parentId, depth = 1 }: TaskState,
  { promptOf }: TaskMessageOptions,
): JsonRecord {
  const prompt = callId === undefined ? undefined : promptOf(callId);
  return {
    prompt,
    description,
    subagent_type: agentType,
    task_type: "local_agent",
    is_backgrounded: background,
    spawn_depth: depth,
    ...(depth === 1 ? {} : { parent_task_id: parentId }),
  };
}

/** One for each call of an answer. */
function progressOf(
  event: RunEvent,
  state: TaskState,
  { summaries }: TaskMessageOptions,
): readonly JsonRecord[] {
  if (event.type !== "assistant-answered") return [];
  const used = usageOf(state);
  return event.message.content
    .filter((block) => block.type === "tool_use")
    .map((call, index) => ({
      description: describeCall(call),
      subagent_type: state.agentType,
      usage: { ...used, tool_uses: Number(used["tool_uses"]) + index + 1 },
      last_tool_name: call.name,
      ...(summaries ? { summary: `${state.description}: ${describeCall(call)}` } : {}),
    }));
}

/** The progress of a child that is waited for comes before the call it reports, otherwise behind it. */
function withProgress(
  messages: readonly SdkMessage[],
  { progress, isFirst }: { readonly progress: readonly SdkMessage[]; readonly isFirst: boolean },
): readonly SdkMessage[] {
  const rest = [...progress];
  const shown = messages.flatMap((message) => {
    const next = isCall(message) ? rest.shift() : undefined;
    if (next === undefined) return [message];
    return isFirst ? [next, message] : [message, next];
  });
  return [...shown, ...rest];
}

function isCall({ type, message }: SdkMessage): boolean {
  const content = type === "assistant" && isRecord(message) ? message["content"] : undefined;
  return Array.isArray(content) && isRecord(content[0]) && content[0]["type"] === "tool_use";
}

const updatedStatus = {
  completed: "completed",
  partial: "completed",
  failed: "failed",
  stopped: "killed",
} as const;
const reportedStatus = {
  completed: "completed",
  partial: "completed",
  failed: "failed",
  stopped: "stopped",
} as const;

function patchOf({ ending }: Extract<RunEvent, { type: "run-ended" }>): JsonRecord {
  const isFailed = ending.status === "failed" && ending.error !== undefined;
  return {
    status: updatedStatus[ending.status],
    end_time: Date.now(),
    ...(isFailed ? { error: ending.error } : {}),
  };
}

function endOf(
  { ending }: Extract<RunEvent, { type: "run-ended" }>,
  state: TaskState,
  { outputFile }: TaskMessageOptions,
): JsonRecord {
  return {
    status: reportedStatus[ending.status],
    receipt: ending.receipt,
    quote: ending.quote,
    output_file: outputFile(state.id),
    summary: summaryOf(ending, state),
    usage: usageOf(state),
  };
}

/** A child that was stopped is named; otherwise its words, or why there are none. */
function summaryOf({ status, text, error }: RunEnding, { description }: TaskState): string {
  if (status === "stopped") return description;
  if (text.trim() !== "") return text;
  return status === "failed" && error !== undefined
    ? error
    : `Agent ${JSON.stringify(description)} ${reportedStatus[status]}`;
}

function usageOf({ usage, toolUses, startedAt, lastSignAt }: TaskState): JsonRecord {
  return {
    total_tokens: contextTokens(usage) + usage.outputTokens,
    tool_uses: toolUses,
    duration_ms: Math.round(lastSignAt - startedAt),
  };
}

/** The child's own messages; without `text` only its calls and their results. */
function childMessages(
  event: RunEvent,
  state: TaskState,
  options: TaskMessageOptions & { readonly results: CallResults },
): readonly SdkMessage[] {
  const shown = options.text || state.background ? event : onlyCalls(event);
  if (shown === undefined) return [];
  const isPrompt = event.type === "user-added" && event.origin === "prompt";
  if (isPrompt && state.background) return [];
  return sdkMessages(shown, {
    sessionId: options.sessionId,
    uuid: options.uuid,
    lineIds: () => [],
    partial: false,
    results: options.results,
    prompts: true,
    parentToolUseId: state.callId,
    child: childFields(state),
  });
}

/** The provider failed a child: its last message says so, where what it says is shown. */
function failureOf(ending: RunEnding, state: TaskState, { sessionId, uuid, text }: TaskMessageOptions) {
  const message = failureMessage(ending, { sessionId, uuid: uuid(), id: uuid() });
  if (message === undefined || !(text || state.background)) return [];
  const { api_error_status: _status, ...rest } = message;
  return [{ ...rest, type: message.type, parent_tool_use_id: state.callId ?? null, ...childFields(state) }];
}

function childFields({ id, agentType, description }: TaskState): JsonRecord {
  return { agent_id: id, subagent_type: agentType, task_description: description };
}

/** What an agent does and the outcome, without its text. */
export function onlyCalls(event: RunEvent): RunEvent | undefined {
  if (event.type === "assistant-answered") {
    const content = event.message.content.filter(({ type }) => type === "tool_use");
    return content.length === 0 ? undefined : { ...event, message: { ...event.message, content } };
  }
  if (event.type !== "user-added" || event.origin === "prompt") return event;
  if (typeof event.message.content === "string") return undefined;
  const content = event.message.content.filter(({ type }) => type === "tool_result");
  return content.length === 0 ? undefined : { ...event, message: { ...event.message, content } };
}

/** Remembers what a call asks a child to do, for the message of its start. */
export function noteChildPrompt(event: RunEvent, prompts: Map<string, string>): void {
  if (event.type !== "assistant-answered") return;
  for (const block of event.message.content) {
    if (block.type !== "tool_use" || !isRecord(block.input)) continue;
    const prompt = block.input["prompt"];
    if (typeof prompt === "string") prompts.set(String(block.id), prompt);
  }
}
