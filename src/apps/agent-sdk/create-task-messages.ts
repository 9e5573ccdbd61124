import type { RunEvent } from "../../conversation/run-event.ts";
import { contextTokens } from "../../conversation/usage.ts";
import type { JsonRecord } from "../../foundation/json-record.ts";
import type { TaskEvent } from "../../tasks/task-manager.ts";
import { hasEnded, type TaskState } from "../../tasks/task-state.ts";
import { type SdkMessage, type SdkMessageContext, sdkMessages } from "./sdk-messages.ts";

export interface TaskMessageOptions extends Pick<SdkMessageContext, "sessionId" | "uuid"> {
  /** What children say and think, too. */
  readonly text: boolean;
  readonly outputFile: (agentId: string) => string;
  /** All children there are now. */
  readonly list: () => readonly TaskState[];
}

/** What a host hears of child agents: their start, what they do, changes of their state, their end. */
export function createTaskMessages(options: TaskMessageOptions): (news: TaskEvent) => readonly SdkMessage[] {
  const started = new Set<string>();
  const backgrounded = new Set<string>();

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
      ...(state.callId === undefined ? {} : { tool_use_id: state.callId }),
      ...fields,
    });

  function changed(): SdkMessage {
    const running = options.list().filter((task) => task.background && !hasEnded(task));
    const tasks = running.map(({ id, description, agentType }) => ({
      task_id: id,
      task_type: "local_agent",
      subagent_type: agentType,
      description,
    }));
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
      ...(isNew ? [about(state, "task_started", startOf(state))] : []),
      ...(isMoved && !isNew ? [about(state, "task_updated", { patch: { is_backgrounded: true } })] : []),
      ...(isMoved && !isOver ? [changed()] : []),
      ...childMessages(event, state, options),
      ...(event.type === "call-started" ? [about(state, "task_progress", progressOf(event, state))] : []),
      ...(isOver ? [about(state, "task_updated", { patch: patchOf(event, state) })] : []),
      ...(isOver ? [about(state, "task_notification", endOf(event, state, options))] : []),
      ...(isOver && state.background ? [changed()] : []),
    ];
  };
}

function startOf({ description, agentType, background }: TaskState): JsonRecord {
  return {
    description,
    subagent_type: agentType,
    task_type: "local_agent",
    is_backgrounded: background,
    spawn_depth: 1,
  };
}

function progressOf({ call }: Extract<RunEvent, { type: "call-started" }>, state: TaskState): JsonRecord {
  return {
    description: state.description,
    subagent_type: state.agentType,
    usage: usageOf(state),
    last_tool_name: call.name,
  };
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

function patchOf({ ending }: Extract<RunEvent, { type: "run-ended" }>, _state: TaskState): JsonRecord {
  return {
    status: updatedStatus[ending.status],
    end_time: Date.now(),
    ...(ending.error === undefined ? {} : { error: ending.error }),
  };
}

function endOf(
  { ending }: Extract<RunEvent, { type: "run-ended" }>,
  state: TaskState,
  { outputFile }: TaskMessageOptions,
): JsonRecord {
  return {
    status: reportedStatus[ending.status],
    output_file: outputFile(state.id),
    summary: `Agent ${JSON.stringify(state.description)} ${reportedStatus[ending.status]}`,
    usage: usageOf(state),
  };
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
  options: TaskMessageOptions,
): readonly SdkMessage[] {
  const shown = options.text ? event : onlyCalls(event);
  if (shown === undefined) return [];
  return sdkMessages(shown, {
    sessionId: options.sessionId,
    uuid: options.uuid,
    lineIds: () => [],
    partial: false,
    ...(state.callId === undefined ? {} : { parentToolUseId: state.callId }),
    child: { agent_id: state.id, subagent_type: state.agentType, task_description: state.description },
  });
}

function onlyCalls(event: RunEvent): RunEvent | undefined {
  if (event.type === "assistant-answered") {
    const content = event.message.content.filter(({ type }) => type === "tool_use");
    return content.length === 0 ? undefined : { ...event, message: { ...event.message, content } };
  }
  if (event.type !== "user-added") return event;
  if (typeof event.message.content === "string") return undefined;
  const content = event.message.content.filter(({ type }) => type === "tool_result");
  return content.length === 0 ? undefined : { ...event, message: { ...event.message, content } };
}
