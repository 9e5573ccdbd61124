import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import {
  foldWorkflow,
  type WorkflowChange,
  type WorkflowRunState,
  workflowTotals,
} from "../../protocol/workflow-state.ts";
import { createFeed } from "../../tasks/feed.ts";
import type { TaskManager } from "../../tasks/task-manager.ts";
import type { TaskSource, TaskView } from "../../tools/task-source.ts";
import { pageOf } from "../../tools/text-page.ts";

/** Something that happened in a run of a workflow of this session. */
export interface WorkflowEvent {
  readonly runId: string;
  readonly taskId: string;
  readonly change: WorkflowChange | { readonly type: "started" };
  /** As it is when it is read. */
  readonly state: WorkflowRunState;
}

/** One run in this session: its state as it grows, its end, and how to stop it. */
export interface LiveWorkflow {
  readonly taskId: string;
  state(): WorkflowRunState;
  readonly ended: Promise<WorkflowRunState>;
  stop(reason?: RetinueError): Promise<void>;
}

/** All runs of a session, those that have ended too. */
export interface WorkflowRuns {
  readonly source: TaskSource;
  /** Begins to keep a run. Returns what takes its changes. */
  add(
    initial: WorkflowRunState,
    stop: AbortController,
  ): { readonly emit: (change: WorkflowChange) => void; readonly live: LiveWorkflow };
  /** By the id of the task or of the run, of which the newest counts. */
  find(id: string): LiveWorkflow | undefined;
  list(): readonly WorkflowRunState[];
  isBusy(): boolean;
  onEvent(listener: (event: WorkflowEvent) => void): () => void;
  stopAll(): Promise<void>;
}

/** `clockOf` gives the time of the session's clock for milliseconds since 1970. */
export function createWorkflowRuns(clockOf: (epochMs: number) => number): WorkflowRuns {
  const runs = new Map<string, LiveWorkflow>();
  const feed = createFeed<WorkflowEvent>();
  const find: WorkflowRuns["find"] = (id) =>
    runs.get(id) ?? [...runs.values()].findLast((run) => run.state().runId === id);
  const isRunning = (run: LiveWorkflow): boolean => run.state().status === "running";
  return {
    source: sourceOf(runs, { find, clockOf }),
    add(initial, stop) {
      let state = initial;
      const { runId, taskId } = initial;
      const end = Promise.withResolvers<WorkflowRunState>();
      const publish = (change: WorkflowEvent["change"]): void =>
        feed.publish({
          runId,
          taskId,
          change,
          // Sinks that keep events do not keep a state for each.
          get state() {
            return state;
          },
        });
      const live: LiveWorkflow = {
        taskId,
        state: () => state,
        ended: end.promise,
        async stop(reason = new RetinueError("stopped-by-parent", "The workflow was stopped.")) {
          stop.abort(reason);
          await end.promise;
        },
      };
      runs.set(taskId, live);
      publish({ type: "started" });
      return {
        live,
        emit(change) {
          state = foldWorkflow(state, change);
          publish(change);
          if (change.type === "ended") end.resolve(state);
        },
      };
    },
    find,
    list: () => [...runs.values()].map((run) => run.state()),
    isBusy: () => [...runs.values()].some(isRunning),
    onEvent: feed.listen,
    async stopAll() {
      const reason = new RetinueError("session-closed", "The session was closed.");
      await Promise.all([...runs.values()].filter(isRunning).map((run) => run.stop(reason)));
    },
  };
}

/** Who stops a task by the id of a run, from this process or another, stops the run. */
export function stoppingRuns(tasks: TaskManager, runs: Pick<WorkflowRuns, "find">): TaskManager {
  return {
    ...tasks,
    async stop(id, by) {
      const run = runs.find(id);
      if (run === undefined) return tasks.stop(id, by);
      await run.stop();
      return undefined;
    },
  };
}

/** Lets TaskOutput and TaskStop reach runs as they reach shells and agents. */
function sourceOf(
  runs: ReadonlyMap<string, LiveWorkflow>,
  { find, clockOf }: Pick<WorkflowRuns, "find"> & { readonly clockOf: (epochMs: number) => number },
): TaskSource {
  const viewOf = (run: LiveWorkflow | undefined): TaskView | undefined =>
    run && taskView(run.state(), clockOf);
  return {
    kind: "local_workflow",
    find: (id) => viewOf(find(id)),
    list: () => [...runs.values()].map((run) => taskView(run.state(), clockOf)),
    async output(id) {
      const run = find(id);
      return run === undefined ? "" : pageOf(textOf(run.state()), 0).text;
    },
    page: async (id, offset) => pageOf(textOf(find(id)?.state()), offset),
    async ended(id) {
      await find(id)?.ended;
    },
    async stop(id) {
      await find(id)?.stop();
    },
  };
}

function textOf(state: WorkflowRunState | undefined): string {
  if (state === undefined) return "";
  const { done, agents } = workflowTotals(state);
  const lines = [`${state.status}: ${done} of ${agents} agents done`, ...state.logs];
  if (state.error !== undefined) lines.push(state.error);
  if (state.result !== undefined) lines.push(state.result);
  return lines.join("\n");
}

function taskView(state: WorkflowRunState, clockOf: (epochMs: number) => number): TaskView {
  const { taskId, status, description, startedAt, endedAt, error, outputFile, callId } = state;
  const { tokens, toolUses, agents, costUsd } = workflowTotals(state);
  return {
    id: taskId,
    kind: "local_workflow",
    state: status === "killed" ? "stopped" : status,
    description,
    owner: "",
    callId,
    startedAt: clockOf(startedAt),
    ...(endedAt === undefined ? {} : { endedAt: clockOf(endedAt) }),
    lastSignAt: clockOf(state.steps.reduce((last, { lastSignAt }) => Math.max(last, lastSignAt), startedAt)),
    note: error,
    outputFile,
    metrics: { tokens, toolUses, agents, cost: costUsd },
  };
}
