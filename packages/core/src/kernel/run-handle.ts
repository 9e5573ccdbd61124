import { randomBytes, randomUUID } from "node:crypto";
import { abortable, abortCode } from "@retinue/base/foundation/abortable.ts";
import { checkArgument, checks, invalid } from "@retinue/base/foundation/check-arguments.ts";
import { createReplayLog } from "@retinue/base/foundation/replay-log.ts";
import { isRetinueError, RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import {
  type AgentDenial,
  type AgentEvent,
  createTreeFold,
  type EventSource,
  mainAgentId,
  type TreeTotals,
} from "../conversation/agent-event.ts";
import { addTotals, noTotals, type RunEnding, type RunEvent } from "../conversation/run-event.ts";
import type { ChildPlan } from "../planning/agent-plan.ts";
import type { SpawnRequest } from "../planning/agent-request.ts";
import type { TaskState } from "../protocol/agent-state.ts";
import type { Spawn } from "../tasks/spawn-outcome.ts";
import type { TaskManager } from "../tasks/task-manager.ts";
import type { Spawner } from "./agent/open-spawner.ts";
import type { Integrated } from "./merge/create-integration.ts";
import { checkOptions } from "./options/check-options.ts";
import {
  type ChildOutputs,
  endingWithOutput,
  type OutputSchema,
  type TypedOutput,
} from "./options/typed-output.ts";
import type { BatchQuestion } from "./quotes/batch-question.ts";
import { type ResponseOptions, toResponse } from "./web/to-response.ts";

/** What a run returns at its end: of the whole tree, the agent and all its children. */
export interface RunResult<Output = unknown>
  extends Omit<RunEnding, "denials" | "output">,
    Omit<TreeTotals, "denials"> {
  readonly sessionId: string;
  /** With the option `integrate`: the queue of the merge, or why there was none. */
  readonly merge?: Integrated["merge"];
  readonly mergeError?: Integrated["mergeError"];
  /** Set where the text is all there is of an answer that was cut off or of a run that did not complete. */
  readonly partial?: true;
  /** The calls that were not allowed to run, of all agents. */
  readonly denials: readonly AgentDenial[];
  /** The checked value, where `output` asked for one. */
  readonly output?: Output;
}

/**
 * A run in progress. It is not a promise, so it can be returned from an async function: await `text`, `output` or `result`,
 * iterate `events` or `textStream`, and `stop()` it.
 */
export interface RunHandle<Output = unknown, Result = RunResult<Output>> {
  /** Identifies this run; for a child agent, its agent id. */
  readonly id: string;
  /** Empty until the session is found, where the run resumes an earlier one. */
  readonly sessionId: string;
  /** The answer. Rejects with a `RetinueError` where the run failed, was stopped, or ended at a limit without an answer. */
  readonly text: Promise<string>;
  /** The value that the option `output` asked for. Rejects where there is none. */
  readonly output: Promise<Output>;
  /**
   * Resolves with the result, whatever its status: what a model or tool does wrong is a result, too. Only a mistake in the
   * call, such as an unknown agent, rejects. A rejection that is never awaited is not reported as unhandled.
   */
  readonly result: Promise<Result>;
  /**
   * Everything that happens in this agent and its children, each event with its `agentId`: from the start however late you
   * iterate, as often as you like. A late reader gets finished answers of children whole instead of in pieces. Throws what
   * `result` rejects with.
   */
  readonly events: AsyncIterable<AgentEvent>;
  /**
   * The text of this agent's answers as its model writes it, with a blank line between two answers, replayed from the start
   * as well. Where a connection broke and the answer begins again, what was given is not repeated.
   */
  readonly textStream: AsyncIterable<string>;
  /** Ends the run and its tools; the result then has the status `stopped`. */
  stop(reason?: string): Promise<Result>;
  /** The run as a streamed HTTP response: server-sent events, or what `useChat` of the AI SDK reads. */
  toResponse(options?: ResponseOptions): Response;
}

/** Shows what the children of a session do, until it is disposed. */
export type WatchChildren = (tasks: Pick<TaskManager, "onEvent">) => Disposable;

interface RunDriver {
  readonly events: (signal: AbortSignal, watchChildren: WatchChildren) => AsyncIterable<RunEvent>;
  readonly sessionId: () => string;
  readonly signal?: AbortSignal | undefined;
  readonly wantsOutput: boolean;
  /** What was done behind the run. */
  readonly integrated?: (() => Integrated) | undefined;
}

/** Starts driving immediately, whether or not the events are read. */
export function startRun<Output>(driver: RunDriver): RunHandle<Output> {
  const controller = new AbortController();
  const record = createRunRecord({ agentId: mainAgentId });
  const signal =
    driver.signal === undefined ? controller.signal : AbortSignal.any([driver.signal, controller.signal]);
  const result = drive<Output>(driver, signal, record);
  const handle: RunHandle<Output> = {
    id: randomUUID(),
    get sessionId() {
      return driver.sessionId();
    },
    ...viewsOf<Output, RunResult<Output>>(result, record, driver),
    stop(reason = "stopped") {
      controller.abort(new RetinueError(reason, "The run was stopped."));
      return result;
    },
    toResponse(options) {
      checkOptions("toResponse", options ?? {});
      return toResponse(handle, options);
    },
  };
  return handle;
}

async function drive<Output>(
  driver: RunDriver,
  signal: AbortSignal,
  record: RunRecord,
): Promise<RunResult<Output>> {
  // The caller has the handle before the first event.
  await Promise.resolve();
  let ending: RunEnding | undefined;
  const watchChildren: WatchChildren = (tasks) => {
    record.sees();
    const end = tasks.onEvent(({ event, agentId, parentId, agentType }) =>
      record.take(event, { agentId, ...(parentId && { parentId }), ...(agentType && { agentType }) }),
    );
    return { [Symbol.dispose]: end };
  };
  for await (const event of driver.events(signal, watchChildren)) {
    if (event.type === "run-ended") ending = event.ending;
    record.take(event);
  }
  if (ending === undefined)
    throw new RetinueError("run-without-end", "The run ended without reporting a result.");
  return { ...record.resultOf<Output>(ending), ...driver.integrated?.(), sessionId: driver.sessionId() };
}

/** What happens in a run, kept for readers and added up. */
interface RunRecord {
  readonly own: EventSource;
  readonly log: ReturnType<typeof createReplayLog<AgentEvent>>;
  /** Absent: an event of the agent itself. */
  take(event: RunEvent, source?: EventSource): void;
  /** From now on events of children come too, so that the sums of the tree are those of this run. */
  readonly sees: () => void;
  /** Whether the text of the result is an answer that broke off. */
  isCutOff(): boolean;
  resultOf<Output>(ending: RunEnding): Omit<RunResult<Output>, "sessionId">;
}

function createRunRecord(own: EventSource): RunRecord {
  const log = createReplayLog<AgentEvent>();
  const fold = createTreeFold();
  /** Where pieces of the unfinished answer of each child are; its whole text comes at its end. */
  const pieces = new Map<string, number[]>();
  let written = "";
  let seesChildren = false;
  let beginsAgain = false;

  function followText(event: RunEvent): void {
    if (event.type === "assistant-answered") written = "";
    if (event.type === "model-retried" || event.type === "model-fell-back") beginsAgain = true;
    if (event.type !== "model-streamed" || event.event.type !== "text-delta") return;
    written = beginsAgain ? event.event.text : written + event.event.text;
    beginsAgain = false;
  }

  function forgetPieces(event: AgentEvent, place: number): void {
    const { agentId } = event;
    if (event.type === "model-streamed") {
      const known = pieces.get(agentId);
      if (known === undefined) pieces.set(agentId, [place]);
      else known.push(place);
    }
    if (event.type !== "assistant-answered" && event.type !== "run-ended") return;
    log.forget(pieces.get(agentId) ?? []);
    pieces.delete(agentId);
  }

  return {
    own,
    log,
    take(event, source = own) {
      const placed: AgentEvent = { ...event, ...source };
      fold.add(placed);
      const place = log.push(placed);
      if (source.agentId === own.agentId) followText(event);
      else forgetPieces(placed, place);
    },
    sees() {
      seesChildren = true;
    },
    isCutOff: () => written !== "",
    resultOf<Output>({ denials, output, ...ending }: RunEnding) {
      const isCut = ending.status !== "completed";
      const text = isCut && written !== "" ? written : ending.text;
      const sums = fold.totals();
      return {
        ...ending,
        text,
        ...(isCut && text !== "" ? { partial: true as const } : {}),
        totals: seesChildren
          ? sums.agents
              .filter(({ agentId }) => agentId !== own.agentId)
              .reduce((sum, { totals }) => addTotals(sum, totals), ending.totals)
          : (ending.tree ?? ending.totals),
        agents: sums.agents,
        models: sums.models,
        denials:
          sums.denials.length > 0
            ? sums.denials
            : denials.map((denial) => ({ ...denial, agentId: own.agentId })),
        // The value was checked against the caller's own schema before it became part of the ending.
        ...(output === undefined ? {} : { output: output as Output }),
      };
    },
  };
}

/** What a program reads of a run: the same for a main agent and a child. */
function viewsOf<Output, Result extends RunResult<Output>>(
  result: Promise<Result>,
  { log, own, isCutOff }: RunRecord,
  { wantsOutput }: { readonly wantsOutput: boolean },
): Pick<RunHandle<Output, Result>, "text" | "output" | "result" | "events" | "textStream"> {
  // Also keeps a rejection that is not awaited from being unhandled.
  result.then(
    () => log.end(),
    (error: unknown) => log.end({ error }),
  );
  const quiet = <T>(promise: Promise<T>): Promise<T> => {
    promise.catch(() => undefined);
    return promise;
  };
  const text = quiet(
    result.then((ended) => {
      // A limit gives the agent a last turn to answer in; an answer that was cut off is none.
      const isAnswer = ended.status === "partial" && ended.text !== "" && !isCutOff();
      if (ended.status === "completed" || isAnswer) return ended.text;
      throw errorOf(ended);
    }),
  );
  const output = quiet(
    result.then((ended) => {
      if (!wantsOutput) throw invalid("The run was started without the option output, so it has no output.");
      if (ended.output !== undefined) return ended.output;
      throw errorOf(ended);
    }),
  );
  return { result, events: log, textStream: textStreamOf(log, own.agentId), text, output };
}

/** Why there is no answer, for callers that asked for nothing else. */
function errorOf({ status, reason, error, advice, provider }: RunResult): RetinueError {
  const message =
    error ?? (status === "stopped" ? "The run was stopped." : "The run ended without an answer.");
  const cause =
    provider === undefined
      ? undefined
      : Object.assign(new Error(provider.message), { status: provider.status, type: provider.type });
  return new RetinueError(reason, message, { ...(advice && { advice }), ...(cause && { cause }) });
}

/** The text that one agent's model writes, piece by piece, without what surrounds it. */
function textStreamOf(events: AsyncIterable<AgentEvent>, agentId: string): AsyncIterable<string> {
  return {
    async *[Symbol.asyncIterator]() {
      /** What was given of the answer in progress, and of an attempt at it that broke off. */
      let given = "";
      let brokenOff = "";
      let hasGiven = false;
      let isNewAnswer = true;
      for await (const event of events) {
        if (event.agentId !== agentId) continue;
        if (event.type === "assistant-answered") {
          isNewAnswer = true;
          given = "";
          brokenOff = "";
        }
        const isAgain = event.type === "model-retried" || event.type === "model-fell-back";
        if (isAgain && given !== "") {
          brokenOff = given;
          given = "";
        }
        if (event.type !== "model-streamed" || event.event.type !== "text-delta") continue;
        let piece = event.event.text;
        given += piece;
        if (piece === "") continue;
        if (brokenOff !== "") {
          // The same words again: they were given before.
          if (brokenOff.startsWith(given)) continue;
          piece = given.startsWith(brokenOff) ? given.slice(brokenOff.length) : `\n\n${given}`;
          brokenOff = "";
        } else if (isNewAnswer && hasGiven) piece = `\n\n${piece}`;
        isNewAnswer = false;
        hasGiven = true;
        yield piece;
      }
    },
  };
}

/** The ending of a run that was stopped before it had started. */
export function stoppedEnding(reason: string): RunEnding {
  return { status: "stopped", reason, text: "", denials: [], totals: { ...noTotals, costUsd: 0 } };
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
  /** From now on it asks no questions; the parent is notified at its end. */
  detach(): Promise<void>;
  /** Read between its turns; a child that has ended is resumed by the next spawn with `resume`. */
  send(text: string): Promise<boolean>;
  state(): TaskState | undefined;
}

/** Where a child runs. */
export interface AgentHost {
  readonly spawner: Spawner;
  /** One question about agents that are to start together, where settings want it; they start as they come back, or not at all. */
  readonly askBeforeStart?: BatchQuestion["ask"];
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
  readonly stopWatching: () => void;
  readonly ended: ReturnType<TaskManager["ended"]>;
  readonly output: TypedOutput | undefined;
};

/** A child to be decided, or one that was decided before. */
type ChildStart = SpawnRequest | { readonly plan: ChildPlan };

/** Starts a child as soon as its host is there. */
export function startAgent<Output>(what: ChildStart, options: StartAgentOptions): AgentHandle<Output> {
  const stopped = new AbortController();
  const signal =
    options.signal === undefined ? stopped.signal : AbortSignal.any([options.signal, stopped.signal]);
  const source =
    "plan" in what
      ? { agentId: what.plan.agent.id, agentType: what.plan.task.agentType }
      : {
          agentId: what.resume ?? `a${randomBytes(8).toString("hex")}`,
          agentType: what.agentType ?? "general-purpose",
        };
  const id = source.agentId;
  const record = createRunRecord(source);
  let current: TaskManager | undefined;
  const started = begin(what, { ...options, record, signal }).then((child) => {
    current = child.tasks;
    return child;
  });
  const result = follow<Output>(started, { record, signal, sessionId: options.sessionId });
  const running = started.then(() => undefined);
  running.catch(() => undefined);
  const handle: AgentHandle<Output> = {
    id,
    get sessionId() {
      return options.sessionId();
    },
    ...viewsOf<Output, AgentResult<Output>>(result, record, { wantsOutput: options.output !== undefined }),
    started: running,
    state: () => current?.get(id),
    toResponse(given) {
      checkOptions("toResponse", given ?? {});
      return toResponse(handle, given);
    },
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
  return handle;
}

async function begin(
  what: ChildStart,
  {
    record,
    signal,
    ...options
  }: StartAgentOptions & { readonly record: RunRecord; readonly signal: AbortSignal },
): Promise<Started> {
  const id = record.own.agentId;
  const host = Promise.resolve(options.host);
  // A host that fails after the child was stopped does not matter.
  host.catch(() => undefined);
  const { spawner, tasks, outputs } = await abortable(host, signal);
  const remindsOnce = "plan" in what && what.plan.task.workflow !== undefined;
  const output = options.output && (await outputs.ask(id, options.output, { remindsOnce }));
  const stopWatching = tasks.onEvent(({ agentId, event }) => {
    if (agentId === id) record.take(event);
  });
  try {
    const outcome =
      "plan" in what
        ? await spawner.startPlan(what.plan, { signal })
        : await spawner.start({ ...what, agentId: id }, { signal });
    if (outcome.type === "refused")
      throw new RetinueError("agent-refused", `The agent was not started: ${outcome.reason}`);
    // Asked for now, because a task that has ended is forgotten after a while.
    return { ...outcome, stopWatching, tasks, ended: tasks.ended(id), output };
  } catch (error) {
    outputs.forget(id);
    stopWatching();
    throw error;
  }
}

async function follow<Output>(
  starting: Promise<Started>,
  {
    record,
    signal,
    sessionId,
  }: { readonly record: RunRecord; readonly signal: AbortSignal; readonly sessionId: () => string },
): Promise<AgentResult<Output>> {
  const { agentId, agentType = "" } = record.own;
  let started: Started;
  try {
    started = await starting;
  } catch (error) {
    if (!signal.aborted || (isRetinueError(error) && error.code === "agent-refused")) throw error;
    const ending = stoppedEnding(abortCode(signal));
    record.take({ type: "run-ended", ending });
    return { ...record.resultOf<Output>(ending), agentId, sessionId: sessionId(), agentType };
  }
  const { plan, outputFile, stopWatching, tasks, ended, output } = started;
  const stop = (): void => void tasks.stop(agentId, "program");
  signal.addEventListener("abort", stop, { once: true });
  if (signal.aborted) stop();
  try {
    const ending = (await ended)?.ending;
    if (ending === undefined)
      throw new RetinueError("agent-lost", "The agent ended without reporting a result.");
    return {
      ...record.resultOf<Output>(endingWithOutput(ending, output)),
      agentId,
      sessionId: sessionId(),
      agentType: plan.task.agentType,
      ...(outputFile === undefined ? {} : { outputFile }),
    };
  } finally {
    stopWatching();
    signal.removeEventListener("abort", stop);
  }
}
