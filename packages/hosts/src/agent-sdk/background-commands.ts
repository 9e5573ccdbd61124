import { randomUUID } from "node:crypto";
import type { JsonRecord } from "@retinue/base/foundation/json-record.ts";
import type { UserMessage } from "@retinue/core/conversation/message.ts";
import type { SessionPorts } from "@retinue/core/kernel/session-ports.ts";
import { hasEnded } from "@retinue/core/protocol/agent-state.ts";
import type { TaskState } from "../../../../src/index.ts";
import type { SdkMessage } from "./sdk-messages.ts";

type TaskView = Parameters<NonNullable<SessionPorts["commandChanged"]>>[0];

export interface BackgroundCommandOptions {
  readonly emit: (message: SdkMessage) => void;
  readonly sessionId: () => string;
  readonly mainAgentId: () => string;
  readonly agents: () => readonly TaskState[];
  /** What else runs in the background, as messages list it. */
  readonly others: () => readonly JsonRecord[];
  /** Called when one has ended. */
  readonly settled: () => void;
}

/** Commands in the background, as reported to a host, and their end as reported to the main agent. */
export interface BackgroundCommands {
  changed(command: TaskView, stop: () => Promise<void>): void;
  /** The one with this id, also after its end. */
  find(id: string): TaskView | undefined;
  /** Ends one that runs; false where there is none. */
  stop(id: string): Promise<boolean>;
  isBusy(): boolean;
  /** What has ended since the last asking, as one prompt. */
  takeReports(): UserMessage["content"] | undefined;
  /** Those that run, as hooks read of them. */
  summaries(): readonly JsonRecord[];
  /** Those that run, as messages list them. */
  running(): readonly JsonRecord[];
}

export function createBackgroundCommands(options: BackgroundCommandOptions): BackgroundCommands {
  const running = new Map<string, TaskView>();
  const known = new Map<string, { readonly view: TaskView; readonly stop: () => Promise<void> }>();
  let reports: TaskView[] = [];
  const listed = (): readonly JsonRecord[] => [...running.values()].map(taskOf);
  const announce = createAnnouncer(options, listed);
  return {
    changed(view, stop) {
      known.set(view.id, { view, stop });
      if (view.state === "running") {
        running.set(view.id, view);
        announce.started(view);
        return;
      }
      running.delete(view.id);
      announce.ended(view);
      // What the agent or the host stopped needs no report, and children read of their own commands.
      if (view.state !== "stopped" && view.owner === options.mainAgentId()) reports.push(view);
      options.settled();
    },
    find: (id) => known.get(id)?.view,
    async stop(id) {
      if (!running.has(id)) return false;
      await known.get(id)?.stop();
      return true;
    },
    isBusy: () => running.size > 0,
    running: listed,
    summaries: () =>
      [...running.values()].map(({ id, description, command }) => ({
        id,
        type: "shell",
        status: "running",
        description,
        command,
      })),
    takeReports() {
      if (reports.length === 0) return undefined;
      const texts = reports.map((command) => ({ type: "text", text: reportOf(command) }) as const);
      reports = [];
      return texts;
    },
  };
}

function createAnnouncer(
  { emit, sessionId, agents, others }: BackgroundCommandOptions,
  listed: () => readonly JsonRecord[],
) {
  const system = (subtype: string, fields: JsonRecord): void =>
    emit({ type: "system", subtype, ...fields, uuid: randomUUID(), session_id: sessionId() });
  const changed = (): void =>
    system("background_tasks_changed", { tasks: [...runningAgents(agents()), ...listed(), ...others()] });
  return {
    started(command: TaskView): void {
      changed();
      system("task_started", { ...about(command), ...taskOf(command), is_backgrounded: true });
    },
    ended(command: TaskView): void {
      const { id, state, outputFile = "" } = command;
      const patch = { status: updatedStatus[state], end_time: Date.now() };
      system("task_updated", { task_id: id, run_id: runIdOf(command), patch });
      const summary = summaryOf(command);
      const status = reportedStatus[state];
      system("task_notification", { ...about(command), status, output_file: outputFile, summary });
      changed();
    },
  };
}

/** Each run of a task has an id of its own; a task that is resumed has several. */
export function runIdOf({ id, startedAt }: Pick<TaskState, "id" | "startedAt">): string {
  return `${Math.round(startedAt).toString(36)}-${id.slice(-8)}`;
}

/** Children in the background, as `background_tasks_changed` lists them. */
export function runningAgents(agents: readonly TaskState[]): readonly JsonRecord[] {
  return agents
    .filter((task) => task.background && !hasEnded(task))
    .map(({ id, description, agentType, startedAt }) => ({
      task_id: id,
      run_id: runIdOf({ id, startedAt }),
      task_type: "local_agent",
      subagent_type: agentType,
      description,
    }));
}

function taskOf(command: TaskView): JsonRecord {
  const { id, description } = command;
  return { task_id: id, run_id: runIdOf(command), task_type: "local_bash", description };
}

function about(command: TaskView): JsonRecord {
  const { id, callId } = command;
  return { task_id: id, run_id: runIdOf(command), tool_use_id: callId };
}

const updatedStatus = {
  running: "running",
  completed: "completed",
  failed: "failed",
  stopped: "killed",
  "timed-out": "failed",
} as const;

const reportedStatus = {
  running: "completed",
  completed: "completed",
  failed: "failed",
  stopped: "stopped",
  "timed-out": "failed",
} as const;

function summaryOf({ description, state, exitCode }: TaskView): string {
  if (state === "stopped") return description;
  const code = exitCode === undefined ? "" : ` (exit code ${exitCode})`;
  return `Background command ${JSON.stringify(description)} ${reportedStatus[state]}${code}`;
}

function reportOf(command: TaskView): string {
  const { id, outputFile } = command;
  return [
    "<task-notification>",
    `<task-id>${id}</task-id>`,
    ...(outputFile === undefined ? [] : [`<output-file>${outputFile}</output-file>`]),
    `<status>${reportedStatus[command.state]}</status>`,
    `<summary>${summaryOf(command)}</summary>`,
    "</task-notification>",
  ].join("\n");
}
