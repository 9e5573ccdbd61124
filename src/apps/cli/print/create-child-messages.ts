import type { RunEvent } from "../../../conversation/run-event.ts";
import { contextTokens } from "../../../conversation/usage.ts";
import type { TaskEvent, TaskState } from "../../../runtime/session.ts";
import { onlyCalls } from "../../agent-sdk/create-task-messages.ts";
import { describeCall } from "./describe-call.ts";
import { type MessageContext, messagesOf, type OutputMessage } from "./output-messages.ts";

export interface ChildMessageOptions extends MessageContext {
  /** What children say and think, too. */
  readonly text: boolean;
  readonly outputFile: (agentId: string) => string;
}

/** What the stream shows of child agents: their start, each tool call, their end, and what they do. */
export function createChildMessages(
  options: ChildMessageOptions,
): (news: TaskEvent) => readonly OutputMessage[] {
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
