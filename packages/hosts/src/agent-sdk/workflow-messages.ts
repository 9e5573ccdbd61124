import { randomUUID } from "node:crypto";
import type { JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { workflowSummary } from "@retinue/core/kernel/workflows/workflow-end-notice.ts";
import {
  progressList,
  type WorkflowChange,
  type WorkflowRunState,
  workflowTotals,
} from "@retinue/core/protocol/workflow-state.ts";
import type { SdkMessage } from "./sdk-messages.ts";

interface WorkflowMessagesOptions {
  readonly emit: (message: SdkMessage) => void;
  readonly sessionId: () => string;
  readonly runs: () => readonly WorkflowRunState[];
  /** What else runs in the background, as messages list it. */
  readonly others: () => readonly JsonRecord[];
}

/** Runs of workflows, as reported to a host. */
export interface WorkflowMessages {
  changed(taskId: string, change: WorkflowChange | { readonly type: "started" }): void;
  /** Those that run, as messages list them. */
  running(): readonly JsonRecord[];
  /** Those that run, as hooks read of them. */
  summaries(): readonly JsonRecord[];
}

/** The whole list of steps goes with each message, so messages of one moment become one. */
const gatherMs = 40;

export function createWorkflowMessages({
  emit,
  sessionId,
  runs,
  others,
}: WorkflowMessagesOptions): WorkflowMessages {
  const waiting = new Map<string, NodeJS.Timeout>();
  const active = (): readonly WorkflowRunState[] => runs().filter(({ status }) => status === "running");
  const listed = (): readonly JsonRecord[] =>
    active().map(({ taskId, runId, description }) => ({
      task_id: taskId,
      run_id: runId,
      task_type: "local_workflow",
      description,
    }));
  const system = (subtype: string, fields: JsonRecord): void =>
    emit({ type: "system", subtype, ...fields, uuid: randomUUID(), session_id: sessionId() });
  const stateOf = (taskId: string): WorkflowRunState | undefined =>
    runs().find((run) => run.taskId === taskId);
  const changed = (): void => system("background_tasks_changed", { tasks: [...others(), ...listed()] });

  function showProgress(taskId: string): void {
    clearTimeout(waiting.get(taskId));
    if (!waiting.delete(taskId)) return;
    const state = stateOf(taskId);
    if (state !== undefined) system("task_progress", { ...about(state), ...progressOf(state) });
  }

  return {
    running: listed,
    summaries: () =>
      active().map(({ taskId, description, name }) => ({
        id: taskId,
        type: "workflow",
        status: "running",
        description,
        name,
      })),
    changed(taskId, change) {
      const state = stateOf(taskId);
      if (state === undefined) return;
      if (change.type === "started") {
        changed();
        system("task_started", { ...about(state), ...startOf(state) });
      } else if (change.type === "ended") {
        showProgress(taskId);
        const { status, endedAt, error } = state;
        const patch = { status, end_time: endedAt, error };
        system("task_updated", { task_id: taskId, run_id: state.runId, patch });
        system("task_notification", { ...about(state), ...endOf(state) });
        changed();
      } else if (change.type === "step" || change.type === "phase") {
        if (!waiting.has(taskId))
          waiting.set(
            taskId,
            setTimeout(() => showProgress(taskId), gatherMs),
          );
      }
    },
  };
}

function about({ taskId, runId, callId }: WorkflowRunState): JsonRecord {
  return { task_id: taskId, run_id: runId, tool_use_id: callId };
}

function startOf({ name, description, script }: WorkflowRunState): JsonRecord {
  return {
    task_type: "local_workflow",
    workflow_name: name,
    description,
    prompt: script,
    is_backgrounded: true,
  };
}

function usageOf(state: WorkflowRunState): JsonRecord {
  const { tokens, toolUses } = workflowTotals(state);
  return {
    total_tokens: tokens,
    tool_uses: toolUses,
    duration_ms: (state.endedAt ?? Date.now()) - state.startedAt,
  };
}

function progressOf(state: WorkflowRunState): JsonRecord {
  const last = state.steps.reduce(
    (newest, step) => (newest === undefined || step.lastSignAt >= newest.lastSignAt ? step : newest),
    state.steps.at(-1),
  );
  const label = last?.label ?? "";
  const description = last?.phase === undefined ? label : `${last.phase}: ${label}`;
  return {
    description: description === "" ? state.description : description,
    last_tool_name: label,
    summary: state.description,
    usage: usageOf(state),
    workflow_progress: progressList(state),
  };
}

function endOf(state: WorkflowRunState): JsonRecord {
  return {
    status: state.status === "killed" ? "stopped" : state.status,
    output_file: state.outputFile ?? "",
    summary: workflowSummary(state),
    usage: usageOf(state),
  };
}
