import { createReplayLog } from "@retinue/base/foundation/replay-log.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { WorkflowRunState } from "../../protocol/workflow-state.ts";
import type { WorkflowFunctions } from "../../workflows/create-script-functions.ts";
import { sessionsOfRun } from "../../workflows/workflow-journal.ts";
import type { SessionOptions } from "../options/runtime-options.ts";
import type { Session } from "../session.ts";
import type { SessionPool } from "../session-pool.ts";
import type { WorkflowRequest } from "./session-workflows.ts";
import type { StepSchemas, WorkflowFunction } from "./typed-functions.ts";
import type { WorkflowEvent } from "./workflow-runs.ts";

/** What to run: a saved workflow by its name, the text of a script, a file, or a function of the program. */
export type WorkflowInput<Args = unknown, Result = unknown> =
  | string
  | { readonly scriptPath: string }
  | WorkflowFunction<Args, Result>;

/** How a workflow runs, and in what session: everything else is an option of that. */
export interface WorkflowOptions
  extends Omit<
    SessionOptions,
    "resume" | "continue" | "forkSession" | "output" | "childrenOnly" | "leadsTeam"
  > {
  /** An earlier run: its finished steps are taken from its journal. */
  readonly resumeRun?: string | undefined;
  /** Labels of steps that run again although they are finished. */
  readonly fresh?: readonly string[] | undefined;
  /** The most tokens of all its steps together. */
  readonly maxTokens?: number | undefined;
  /** Stops the run; it can be resumed. */
  readonly signal?: AbortSignal | undefined;
}

/** A run in progress. Like other handles it is not a promise: await `result`, iterate `events`, `stop()` it. */
export interface WorkflowHandle<Result = unknown> {
  /** Resolves when it runs; rejects where it was refused, with what is wrong. */
  readonly started: Promise<WorkflowRunState>;
  /** What the script returned. Rejects with a `RetinueError` where it failed or was stopped. */
  readonly result: Promise<Result>;
  /** How it ended, whatever its status. Rejects only where it was refused. */
  readonly ended: Promise<WorkflowRunState>;
  /** What happens, from the start however late it is read: phases, steps, lines, the end. */
  readonly events: AsyncIterable<WorkflowEvent>;
  /** Ends it with its agents. */
  stop(): Promise<void>;
}

/** Starts a workflow in a session of its own, which ends with it. */
export function startWorkflow<Args, Result>(
  what: WorkflowInput<Args, Result>,
  { args, options, pool, transcripts }: StartOptions<Args>,
): WorkflowHandle<Result> {
  const { resumeRun, fresh, maxTokens, signal, ...sessionOptions } = options;
  const stopped = new AbortController();
  const stop = signal === undefined ? stopped.signal : AbortSignal.any([signal, stopped.signal]);
  const log = createReplayLog<WorkflowEvent>();
  const more: WorkflowRequest = { args, resumeFromRunId: resumeRun, fresh, maxTokens };
  const opening = requestOf(what).then((request) =>
    open({ ...request, ...more }, { sessionOptions, pool, transcripts, log, stop }),
  );
  const started = opening.then(({ live }) => live.state());
  const ended = opening.then(async ({ session, live }) => {
    const state = await live.ended;
    await session.close();
    return state;
  });
  const result = ended.then(resultOf<Result>);
  for (const promise of [started, ended, result]) promise.catch(() => undefined);
  ended.then(
    () => log.end(),
    (error: unknown) => log.end({ error }),
  );
  pool.track(ended).catch(() => undefined);
  return {
    started,
    ended,
    result,
    events: log,
    async stop() {
      stopped.abort(new RetinueError("stopped-by-program", "The workflow was stopped."));
      await ended.catch(() => undefined);
    },
  };
}

interface StartOptions<Args> {
  readonly args: Args | undefined;
  readonly options: WorkflowOptions;
  readonly pool: SessionPool;
  readonly transcripts: () => Promise<string>;
}

async function requestOf(what: WorkflowInput<never, unknown>): Promise<WorkflowRequest> {
  if (typeof what === "function") {
    // What reads schemas takes long to load, and scripts have none of a library.
    const { typedFunctions } = await import("./typed-functions.ts");
    const name = what.name === "" ? "function" : what.name;
    const schemas: StepSchemas = new Map();
    const body = ({ args, ...functions }: WorkflowFunctions & { readonly args: never }): unknown =>
      what({ ...typedFunctions(functions, schemas), args });
    return { function: { name, body, schemas } };
  }
  if (typeof what !== "string") return { scriptPath: what.scriptPath };
  return /\bexport\s+const\s+meta\b/.test(what) ? { script: what } : { name: what };
}

interface Opening extends Pick<StartOptions<unknown>, "pool" | "transcripts"> {
  readonly sessionOptions: SessionOptions;
  readonly log: { push(event: WorkflowEvent): void };
  readonly stop: AbortSignal;
}

async function open(request: WorkflowRequest, { sessionOptions, pool, transcripts, log, stop }: Opening) {
  const runId = request.resumeFromRunId;
  const [earlier] = runId === undefined ? [] : await sessionsOfRun(await transcripts(), runId);
  const session: Session = await pool.open({
    ...sessionOptions,
    ...(earlier === undefined ? {} : { sessionId: earlier }),
    childrenOnly: true,
  });
  try {
    const { workflows } = session;
    if (workflows === undefined) throw workflowsOff();
    stop.throwIfAborted();
    const forget = workflows.runs.onEvent(log.push);
    const live = await workflows.start(request);
    void live.ended.then(forget);
    const end = (): void => void live.stop(stop.reason instanceof RetinueError ? stop.reason : undefined);
    if (stop.aborted) end();
    else stop.addEventListener("abort", end, { once: true });
    void live.ended.then(() => stop.removeEventListener("abort", end));
    return { session, live };
  } catch (error) {
    await session.close();
    throw error;
  }
}

export function workflowsOff(): RetinueError {
  return new RetinueError("workflows-off", "Workflows are disabled here.", {
    advice:
      "Check disableWorkflows and enableWorkflows in the settings, CLAUDE_CODE_DISABLE_WORKFLOWS, and deny rules for Workflow.",
  });
}

function resultOf<Result>({ status, error, errorLine, result, scriptPath }: WorkflowRunState): Result {
  if (status === "completed") return (result === undefined ? undefined : JSON.parse(result)) as Result;
  if (status === "killed") throw new RetinueError("workflow-stopped", "The workflow was stopped.");
  const place = errorLine === undefined ? "" : ` (${scriptPath ?? "script"}:${errorLine})`;
  throw new RetinueError("workflow-failed", `The workflow failed: ${error ?? "unknown error"}${place}`);
}
