import type { WaitClock } from "@retinue/base/foundation/abortable.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { EventSource } from "../conversation/agent-event.ts";
import type { Message, UserMessage } from "../conversation/message.ts";
import type { EventSink, RunEvent, RunTotals } from "../conversation/run-event.ts";
import type { ReportedEvent } from "../journal/transcript-writer.ts";
import type { ChildPlan } from "../planning/agent-plan.ts";
import {
  concludeTask,
  driveTask,
  hasEnded,
  interruptedReason,
  releaseTask,
  startedTask,
  type TaskEntry,
  type TaskStart,
  type TaskState,
  type TaskTable,
  takeTotals,
} from "./drive-task.ts";
import { createFeed } from "./feed.ts";
import { createStopwatch, type SilenceLimit, type Stopwatch, watchRun } from "./watch-run.ts";

export interface ParkOptions {
  /** It waits for agents that it has started: it has no place until the last of such waits is over. */
  readonly forChildren?: boolean;
  /** What it does meanwhile, as a few words. */
  readonly activity?: string;
}

/** What a running child knows of those who may be watching it. */
export interface TaskControl {
  /** Whether somebody waits for it who could be asked; false in the background. */
  attended(): boolean;
  /** Aborted when the child is moved to the background: open questions are then answered no. */
  readonly unattended: AbortSignal;
  /** Messages sent to it since it last asked. */
  takeMessages(): readonly UserMessage[];
  /** Writes down that hooks are about to hear of it, so that after a crash they do not hear it twice. */
  reported?(event: ReportedEvent): Promise<void>;
  /** Resolves when everything it said so far would survive a power cut. */
  commit?(): Promise<void>;
  /** Gives its place to others while it waits, and takes one again before it continues; absent: it keeps its place. */
  park?<T>(wait: () => Promise<T>, options?: ParkOptions): Promise<T>;
  /** The agents it waits for are at work, so its own silence is none. */
  showLife?(): void;
  /** After it was idle: resolves when it has a place among those that run again. */
  takePlace?(signal: AbortSignal): Promise<void>;
  /** Its own time, which is paused while a person is asked for it. */
  readonly stopwatch?: Stopwatch;
}

/** Takes events of a child together with its state after each. */
export interface TaskSink extends Pick<EventSink, "types"> {
  readonly take: (event: RunEvent, state: TaskState) => void;
}

/** A child that is ready to run. */
export interface TaskRun {
  readonly start: Omit<TaskStart, "at">;
  /** Where it was called for, before others that took longer to prepare; the queue keeps this order. */
  readonly order?: number;
  readonly events: (line: TaskControl, signal: AbortSignal) => AsyncIterable<RunEvent>;
  /** Take each event after it was folded; what they throw ends the child, not its siblings. */
  readonly sinks?: readonly TaskSink[];
  /** Runs once, when the child has ended, however it ended. */
  readonly onEnd?: (state: TaskState) => void | Promise<void>;
}

export type TaskStarted =
  | { readonly type: "started"; readonly state: TaskState }
  /** `isOver`: the session has ended meanwhile. */
  | { readonly type: "refused"; readonly reason: string; readonly isOver?: true };

/** An event of a child, with the state that it led to. */
export interface TaskEvent extends EventSource {
  readonly type: RunEvent["type"];
  readonly event: RunEvent;
  readonly state: TaskState;
}

export type StoppedBy = "user" | "parent" | "program" | "session";

/** All child agents of a session: at most so many at the same time, each with one driver. */
export interface TaskManager extends AsyncDisposable {
  start(run: TaskRun): TaskStarted;
  /** Why no child could be started now, before anything is found out for it; one in the background may be refused sooner. */
  refusal(background: boolean): string | undefined;
  /** The state when the child has ended, or when it was moved to the background meanwhile. */
  wait(id: string, options: { readonly signal: AbortSignal }): Promise<TaskState | undefined>;
  /** The state when the child has ended; detaching does not count. */
  ended(id: string): Promise<TaskState | undefined>;
  /** Stops waiting: the caller is freed immediately and the child continues unattended. */
  detach(id: string): boolean;
  stop(id: string, by: StoppedBy): Promise<TaskState | undefined>;
  /** Between its turns the child reads it. False when it has ended or is not known. */
  send(id: string, message: UserMessage): boolean;
  /** Messages that a child had taken and not read when it ended; given once. */
  takeUnread(id: string): readonly UserMessage[];
  get(id: string): TaskState | undefined;
  list(): readonly TaskState[];
  /** What all runs took together since the last asking, those that still run included; of an agent that was resumed there are several. */
  takeTotals(): RunTotals | undefined;
  /** Leaving the loop, or `return()`, ends the watching. */
  watch(): AsyncIterableIterator<TaskEvent>;
  /** Calls back with each event as it happens; the returned function ends it. */
  onEvent(listener: (event: TaskEvent) => void): () => void;
}

interface TaskManagerOptions {
  readonly maxRunning: number;
  /** What happens to one child too many; absent: one that somebody waits for is queued, one in the background refused. */
  readonly overflow?: "refuse" | "queue";
  readonly now: () => number;
  /** How many that have ended are kept in memory; what is older is in their files. */
  readonly keptEnded?: number;
}

/** Enough to look back on; a server that runs for weeks must not grow with every child. */
const defaultKeptEnded = 200;

export function createTaskManager(options: TaskManagerOptions): TaskManager {
  const { maxRunning, now, keptEnded = defaultKeptEnded } = options;
  const table: TaskTable = {
    maxRunning,
    now,
    keptEnded,
    entries: new Map(),
    active: new Set(),
    queue: [],
    returning: [],
    ended: new Set(),
    totals: undefined,
    feed: createFeed<TaskEvent>(),
    isClosed: false,
  };
  const { entries, feed } = table;
  const running = (id: string): TaskEntry | undefined => {
    const entry = entries.get(id);
    return entry === undefined || hasEnded(entry.state) ? undefined : entry;
  };
  return {
    start: (run) => startTask(table, options, run),
    refusal: (background) => refusalOf(table, options, background),
    stop: (id, by) => stopTask(table, id, by),
    get(id) {
      const entry = entries.get(id);
      return entry === undefined ? undefined : stateOf(table, entry);
    },
    list: () => [...entries.values()].map((entry) => stateOf(table, entry)),
    takeTotals: () => takeTotals(table),
    ended: async (id) => entries.get(id)?.done.promise,
    wait: (id, { signal }) => waitFor(entries.get(id), signal),
    detach(id) {
      const entry = running(id);
      if (entry === undefined) return false;
      entry.state = { ...entry.state, background: true };
      entry.moved.abort(new RetinueError("detached", "The agent was moved to the background."));
      entry.detached.resolve();
      return true;
    },
    send: (id, message) => running(id)?.mail.push(message) !== undefined,
    takeUnread: (id) => (running(id) === undefined ? (entries.get(id)?.mail.splice(0) ?? []) : []),
    watch: () => feed.subscribe(),
    onEvent: feed.listen,
    async [Symbol.asyncDispose]() {
      table.isClosed = true;
      await Promise.all([...entries.keys()].map((id) => stopTask(table, id, "session")));
      feed.end();
    },
  };
}

/** The state, with the position in the queue of a child that waits. */
function stateOf({ queue }: TaskTable, entry: TaskEntry): TaskState {
  if (entry.state.status !== "queued") return entry.state;
  return { ...entry.state, queuePosition: queue.indexOf(entry) + 1 };
}

function refusalOf(
  { isClosed, active }: TaskTable,
  { overflow, maxRunning }: TaskManagerOptions,
  background: boolean,
): string | undefined {
  if (isClosed) return "the session is over";
  const isQueued = overflow === undefined ? !background : overflow === "queue";
  if (isQueued || active.size < maxRunning) return undefined;
  return `max concurrent agents reached (${maxRunning})`;
}

function startTask(table: TaskTable, options: TaskManagerOptions, run: TaskRun): TaskStarted {
  const { entries, active, maxRunning, now } = table;
  const { id, background } = run.start;
  if (table.isClosed) return { type: "refused", reason: "the session is over", isOver: true };
  const known = entries.get(id);
  if (known !== undefined && !hasEnded(known.state))
    return { type: "refused", reason: `the agent ${id} is still running; send it a message instead` };
  // Steps of a workflow have places of their own.
  const isCounted = run.start.workflow === undefined;
  const reason = isCounted ? refusalOf(table, options, background) : undefined;
  if (reason !== undefined) return { type: "refused", reason };
  const isFull = isCounted && active.size >= maxRunning;
  const state = startedTask({ ...run.start, at: now() });
  const entry: TaskEntry = {
    state: isFull ? { ...state, status: "queued", activity: "waiting for a place" } : state,
    run,
    controller: new AbortController(),
    mail: [],
    done: Promise.withResolvers(),
    detached: Promise.withResolvers(),
    moved: new AbortController(),
  };
  entries.delete(id);
  entries.set(id, entry);
  if (isFull) enqueue(table, entry);
  else void driveTask(table, entry);
  return { type: "started", state: stateOf(table, entry) };
}

function enqueue({ queue }: TaskTable, entry: TaskEntry): void {
  const { order } = entry.run;
  const at = order === undefined ? -1 : queue.findIndex(({ run }) => (run.order ?? order) > order);
  queue.splice(at === -1 ? queue.length : at, 0, entry);
}

async function stopTask(table: TaskTable, id: string, by: StoppedBy): Promise<TaskState | undefined> {
  const { entries, queue } = table;
  const entry = entries.get(id);
  if (entry === undefined || hasEnded(entry.state)) return entry?.state;
  entry.controller.abort(stopReason(by));
  // One that was idle and waits for a place again leaves the queue by itself.
  const position = entry.resume === undefined ? queue.indexOf(entry) : -1;
  if (position !== -1) {
    queue.splice(position, 1);
    concludeTask(table, entry, undefined);
    await releaseTask(table, entry);
  }
  return entry.done.promise;
}

async function waitFor(entry: TaskEntry | undefined, signal: AbortSignal): Promise<TaskState | undefined> {
  if (entry === undefined) return undefined;
  const aborted = Promise.withResolvers<void>();
  const release = (): void => aborted.resolve();
  signal.addEventListener("abort", release, { once: true });
  try {
    if (signal.aborted) release();
    await Promise.race([entry.done.promise, entry.detached.promise, aborted.promise]);
  } finally {
    signal.removeEventListener("abort", release);
  }
  return entry.state;
}

/** A child that ends because its session does was interrupted, as if the process had died, and not abandoned. */
function stopReason(by: StoppedBy): RetinueError {
  if (by === "session") return new RetinueError(interruptedReason, "The session ended before the agent did.");
  return new RetinueError(`stopped-by-${by}`, `The agent was stopped by the ${by}.`);
}

/** A child that is decided: its plan and the conversation it continues. Plain data. */
export interface Execution {
  readonly plan: ChildPlan;
  readonly history: readonly Message[];
}

/**
 * Carries out plans somewhere. The events end with exactly one `run-ended`; a stop through the signal is such an ending
 * too. A reader that leaves early has everything released.
 */
export interface Executor {
  execute(execution: Execution, control: TaskControl, signal: AbortSignal): AsyncIterable<RunEvent>;
}

export interface RefusedChild {
  readonly type: "refused";
  readonly reason: string;
}

/** A child whose plan is decided and on disk, and which holds everything it needs. */
export interface OpenedChild {
  readonly type: "opened";
  readonly execution: Execution;
  readonly executor: Executor;
  /** What its record adds to the control of its run. */
  readonly control: Pick<TaskControl, "reported" | "commit">;
  /** Absent: no clock ends it. */
  readonly clocks?: ChildClocks;
  readonly outputFile: string | undefined;
  /** Where its events are kept and shown. */
  readonly sinks: readonly EventSink[];
  /** Marks it for other processes as waiting for a place, until it runs. */
  readonly enterQueue?: () => void;
  readonly leaveQueue?: () => void;
  /** What it reads before its first turn. */
  readonly pendingMessages: readonly UserMessage[];
  /** Called once, however it ended: gives everything back. Never rejects. */
  readonly close: (state?: TaskState) => Promise<KeptWorktree | undefined>;
}

/** The working tree that an isolated child has left behind. */
export interface KeptWorktree {
  readonly path: string;
  readonly branch: string;
}

/** The time by which children are limited. */
export interface ChildClocks {
  readonly clock: WaitClock;
  /** Runs while any agent of the session works. */
  readonly tree: Stopwatch;
  readonly treeTimeMs?: number;
  /** When a silent child that was moved to the background is stopped; 0 never. */
  readonly backgroundStopMs?: number;
}

/** A child's run under its clocks; its time begins now, so waiting for a place has cost it nothing. */
export function runChild(
  { execution, executor, control, clocks, leaveQueue }: OpenedChild,
  line: TaskControl,
  signal: AbortSignal,
): AsyncIterable<RunEvent> {
  leaveQueue?.();
  if (clocks === undefined) return executor.execute(execution, { ...line, ...control }, signal);
  const { limits } = execution.plan;
  const stopwatch = createStopwatch(clocks.clock, clocks.tree);
  const { treeTimeMs } = clocks;
  const life = { lastSign: 0 };
  const showLife = (): void => {
    life.lastSign = stopwatch.elapsed();
  };
  return watchRun(
    (stop) => executor.execute(execution, { ...line, ...control, stopwatch, showLife }, stop),
    {
      clock: clocks.clock,
      stopwatch,
      life,
      timeMs: limits?.timeMs?.value,
      silence: () => silenceOf(limits?.silenceMs?.value, line, clocks),
      tree: treeTimeMs === undefined ? undefined : { stopwatch: clocks.tree, timeMs: treeTimeMs },
    },
    signal,
  );
}

/** A child without a limit of its own gets one once no one watches it any more. */
function silenceOf(
  own: number | undefined,
  line: TaskControl,
  { backgroundStopMs = 0 }: ChildClocks,
): SilenceLimit | undefined {
  if (own !== undefined) return { reportMs: own, stopMs: own * 2 };
  if (line.attended() || backgroundStopMs === 0) return undefined;
  return { reportMs: backgroundStopMs / 2, stopMs: backgroundStopMs };
}

/** How many children run concurrently, and what happens to one more. */
export interface ChildLimits {
  readonly maxRunning: number;
  /** Absent: one that somebody waits for is queued, one in the background is refused. */
  readonly overflow?: "refuse" | "queue";
}

/** Unless the environment or settings say otherwise. */
const defaultChildren = 10;

/** What the setting `limits` says, which its reader has looked at; the environment's number wins. */
export function readChildLimits(
  setting: Readonly<Record<string, unknown>> | undefined,
  fromEnvironment?: number,
): ChildLimits {
  const { agents, overflow } = setting ?? {};
  const maxRunning = fromEnvironment ?? (typeof agents === "number" ? agents : defaultChildren);
  return overflow === "refuse" || overflow === "queue" ? { maxRunning, overflow } : { maxRunning };
}
