import { randomBytes, randomUUID } from "node:crypto";
import type { RunEnding, RunEvent } from "../conversation/run-event.ts";
import { noUsage } from "../conversation/usage.ts";
import { abortable } from "../foundation/abortable.ts";
import { createReplayLog } from "../foundation/replay-log.ts";
import { isRetinueError, RetinueError } from "../foundation/retinue-error.ts";
import type { ChildPlan } from "../planning/plan-run.ts";
import type { SpawnRequest } from "../planning/spawn-request.ts";
import type { Spawn } from "../tasks/create-agent-tool.ts";
import type { TaskState } from "../tasks/drive-task.ts";
import type { Spawner } from "../tasks/spawner.ts";
import type { TaskManager } from "../tasks/task-manager.ts";
import { checkArgument, checks } from "./options/check-options.ts";
import type { ChildOutputs, OutputSchema, TypedOutput } from "./options/typed-output.ts";

/** What a run returns at its end. */
export interface RunResult<Output = unknown> extends RunEnding {
  readonly sessionId: string;
  /** The checked value, where `output` asked for one. */
  readonly output?: Output;
}

/**
 * A run in progress. It is not a promise, so it can be returned from an async function: await `result`, iterate
 * `events` or `textStream`, and `stop()` it.
 */
export interface RunHandle<Output = unknown, Result = RunResult<Output>> {
  /** Identifies this run; for a child agent, its agent id. */
  readonly id: string;
  /** Empty until the session is found, where the run resumes an earlier one. */
  readonly sessionId: string;
  /**
   * Resolves with the result. What a model or tool does wrong is a result, too; only a mistake in the call, such as an
   * unknown agent, rejects. A rejection that is never awaited is not reported as unhandled.
   */
  readonly result: Promise<Result>;
  /** Everything that happens, from the start however late you iterate, as often as you like. Throws what `result` rejects with. */
  readonly events: AsyncIterable<RunEvent>;
  /** The text of the answers as the model writes it, replayed from the start as well. */
  readonly textStream: AsyncIterable<string>;
  /** Ends the run and its tools; the result then has the status `stopped`. */
  stop(reason?: string): Promise<Result>;
}

interface RunDriver {
  readonly events: (signal: AbortSignal) => AsyncIterable<RunEvent>;
  readonly sessionId: () => string;
  readonly signal?: AbortSignal;
}

/** Starts driving immediately, whether or not the events are read. */
export function startRun<Output>(driver: RunDriver): RunHandle<Output> {
  const controller = new AbortController();
  const log = createReplayLog<RunEvent>();
  const signal =
    driver.signal === undefined ? controller.signal : AbortSignal.any([driver.signal, controller.signal]);
  const result = drive<Output>(driver, signal, log.push);
  // Also keeps a rejection that is not awaited from being unhandled.
  result.then(
    () => log.end(),
    (error: unknown) => log.end({ error }),
  );
  return {
    id: randomUUID(),
    get sessionId() {
      return driver.sessionId();
    },
    result,
    events: log,
    textStream: textStreamOf(log),
    stop(reason = "stopped") {
      controller.abort(new RetinueError(reason, "The run was stopped."));
      return result;
    },
  };
}

/** The text that models write, piece by piece, without what surrounds it. */
function textStreamOf(events: AsyncIterable<RunEvent>): AsyncIterable<string> {
  return {
    async *[Symbol.asyncIterator]() {
      for await (const event of events) {
        if (event.type === "model-streamed" && event.event.type === "text-delta") yield event.event.text;
      }
    },
  };
}

async function drive<Output>(
  driver: RunDriver,
  signal: AbortSignal,
  publish: (event: RunEvent) => void,
): Promise<RunResult<Output>> {
  // The caller has the handle before the first event.
  await Promise.resolve();
  let ending: RunEnding | undefined;
  for await (const event of driver.events(signal)) {
    if (event.type === "run-ended") ending = event.ending;
    publish(event);
  }
  if (ending === undefined) throw new RetinueError("run-without-end", "The run ended without an ending.");
  // The output was checked against the caller's own schema before it became part of the ending.
  return { ...ending, sessionId: driver.sessionId() } as RunResult<Output>;
}

/** The ending of a run that was stopped before it had begun. */
export function stoppedEnding(reason: string): RunEnding {
  const totals = { usage: noUsage, turns: 0, toolUses: 0, durationMs: 0, modelMs: 0, costUsd: 0 };
  return { status: "stopped", reason, text: "", denials: [], totals };
}

/** What a child returns at its end, to the program that started it. */
export interface AgentResult<Output = unknown> extends RunResult<Output> {
  readonly agentId: string;
  readonly agentType: string;
  /** Where its work can be followed; absent where nothing is kept, or it was stopped before it had started. */
  readonly outputFile?: string;
}

/** A child that a program has started: a run handle with what only a child can do. `result` rejects when it was not started. */
export interface AgentHandle<Output = unknown> extends RunHandle<Output, AgentResult<Output>> {
  /** Resolves when the child runs or is queued; rejects where it was refused. */
  readonly started: Promise<void>;
  /** From now on no one is asked for it; the parent is notified at its end. */
  detach(): Promise<void>;
  /** Read between its turns; a child that has ended is resumed by the next spawn with `resume`. */
  send(text: string): Promise<boolean>;
  state(): TaskState | undefined;
}

/** Where a child runs. */
export interface AgentHost {
  readonly spawner: Spawner;
  /** Set where the session leads a team: starts a teammate where the request has a name, else an ordinary child. */
  readonly spawnInTeam?: Spawn;
  readonly tasks: TaskManager;
  /** A child that was asked for a typed output finds it there when it is opened. */
  readonly outputs: ChildOutputs;
}

interface StartAgentOptions {
  readonly host: AgentHost | Promise<AgentHost>;
  readonly sessionId: () => string;
  readonly signal?: AbortSignal | undefined;
  readonly output?: OutputSchema | undefined;
}

type Started = Extract<Awaited<ReturnType<Spawner["start"]>>, { type: "started" }> & {
  readonly tasks: TaskManager;
  readonly news: ReturnType<TaskManager["watch"]>;
  readonly ended: ReturnType<TaskManager["ended"]>;
  readonly output: TypedOutput | undefined;
};

/** A child to be decided, or one that was decided before. */
type ChildStart = SpawnRequest | { readonly plan: ChildPlan };

/** Starts a child as soon as its host is there. */
export function startAgent<Output>(what: ChildStart, options: StartAgentOptions): AgentHandle<Output> {
  const log = createReplayLog<RunEvent>();
  const stopped = new AbortController();
  const signal =
    options.signal === undefined ? stopped.signal : AbortSignal.any([options.signal, stopped.signal]);
  const id = idOf(what);
  let current: TaskManager | undefined;
  const started = begin(what, { ...options, id, signal }).then((child) => {
    current = child.tasks;
    return child;
  });
  const result = follow<Output>(started, {
    log,
    signal,
    agentType: typeOf(what),
    id,
    sessionId: options.sessionId,
  });
  // A rejection that is not awaited must not be unhandled; the readers of the events get it, too.
  result.then(
    () => log.end(),
    (error: unknown) => log.end({ error }),
  );
  const running = started.then(() => undefined);
  running.catch(() => undefined);
  return {
    id,
    get sessionId() {
      return options.sessionId();
    },
    result,
    events: log,
    textStream: textStreamOf(log),
    started: running,
    state: () => current?.get(id),
    stop(reason = "stopped-by-program") {
      stopped.abort(new RetinueError(reason, "The agent was stopped."));
      return result;
    },
    async detach() {
      (await started).tasks.detach(id);
    },
    async send(text) {
      checkArgument("The message of send()", checks.filled, text);
      const { tasks } = await started;
      return tasks.send(id, { role: "user", content: [{ type: "text", text }] });
    },
  };
}

function idOf(what: ChildStart): string {
  if ("plan" in what) return what.plan.agent.id;
  return what.resume ?? `a${randomBytes(8).toString("hex")}`;
}

function typeOf(what: ChildStart): string {
  return "plan" in what ? what.plan.task.agentType : (what.agentType ?? "general-purpose");
}

async function begin(
  what: ChildStart,
  { id, signal, ...options }: StartAgentOptions & { readonly id: string; readonly signal: AbortSignal },
): Promise<Started> {
  const host = Promise.resolve(options.host);
  // A host that fails after the child was stopped concerns no one.
  host.catch(() => undefined);
  const { spawner, tasks, outputs } = await abortable(host, signal);
  const output = options.output === undefined ? undefined : outputs.ask(id, options.output);
  const news = tasks.watch();
  try {
    const outcome =
      "plan" in what
        ? await spawner.startPlan(what.plan, { signal })
        : await spawner.start({ ...what, agentId: id }, { signal });
    if (outcome.type === "refused")
      throw new RetinueError("agent-refused", `The agent was not started: ${outcome.reason}`);
    // Asked for now, because a task that has ended is forgotten after a while.
    return { ...outcome, news, tasks, ended: tasks.ended(id), output };
  } catch (error) {
    outputs.forget(id);
    await news.return?.();
    throw error;
  }
}

interface Followed {
  readonly log: { push(event: RunEvent): void };
  readonly signal: AbortSignal;
  readonly agentType: string;
  readonly id: string;
  readonly sessionId: () => string;
}

async function follow<Output>(
  starting: Promise<Started>,
  { log, signal, agentType, id, sessionId }: Followed,
): Promise<AgentResult<Output>> {
  const about = () => ({ agentId: id, sessionId: sessionId() });
  let started: Started;
  try {
    started = await starting;
  } catch (error) {
    if (!signal.aborted || (isRetinueError(error) && error.code === "agent-refused")) throw error;
    const ending = stoppedEnding(reasonOf(signal));
    log.push({ type: "run-ended", ending });
    return { ...ending, ...about(), agentType } as AgentResult<Output>;
  }
  const { plan, outputFile, news, tasks, ended, output } = started;
  const stop = (): void => void tasks.stop(id, "program");
  signal.addEventListener("abort", stop, { once: true });
  if (signal.aborted) stop();
  try {
    for await (const { event, state } of news) {
      if (state.id !== id) continue;
      log.push(event);
      if (event.type === "run-ended") break;
    }
    const ending = (await ended)?.ending;
    if (ending === undefined) throw new RetinueError("agent-lost", "The agent ended without an ending.");
    const whole = withOutput(ending, output);
    // The value was checked against the caller's own schema.
    const followed = outputFile === undefined ? {} : { outputFile };
    return { ...whole, ...about(), agentType: plan.task.agentType, ...followed } as AgentResult<Output>;
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

/** The ending with the value that was asked for, or with the reason why there is none. */
function withOutput(ending: RunEnding, output: TypedOutput | undefined): RunEnding {
  const value = output?.value();
  if (output === undefined || ending.status !== "completed") return ending;
  if (value !== undefined) return { ...ending, output: value.output };
  const error = "The agent did not return a result matching the schema.";
  return { ...ending, status: "failed", reason: "max_structured_output_retries", error };
}

function reasonOf({ reason }: AbortSignal): string {
  return isRetinueError(reason) ? reason.code : "aborted";
}
