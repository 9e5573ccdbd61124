import { abortable, settledSoon, sleep } from "@retinue/base/foundation/abortable.ts";
import { isRetinueError, RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { EventSource } from "../conversation/agent-event.ts";
import type { UserMessage } from "../conversation/message.ts";
import {
  addTotals,
  type EventSink,
  handTo,
  type RunEnding,
  type RunEvent,
  type RunTotals,
  subtractTotals,
} from "../conversation/run-event.ts";
import { contextTokens } from "../conversation/usage.ts";
import type { ReportedEvent } from "../journal/transcript-writer.ts";
import { endingOfCause } from "../loop/loop-ports.ts";
import {
  foldTask,
  hasEnded,
  interruptedReason,
  startedTask,
  type TaskStart,
  type TaskState,
} from "../protocol/agent-state.ts";
import { createFeed, type Feed } from "./feed.ts";
import type { Stopwatch } from "./watch-run.ts";

export interface ParkOptions {
  /** It waits for agents that it has started: it has no place until the last of such waits is over. */
  readonly forChildren?: boolean;
  /** What it does meanwhile, as a few words. */
  readonly activity?: string;
}

/** What a running child knows of whether it is watched. */
export interface TaskControl {
  /** Whether it can ask a person; false in the background. */
  attended(): boolean;
  /** Aborted when the child is moved to the background: open questions are then answered no. */
  readonly unattended: AbortSignal;
  /** Messages sent to it since it last asked. */
  takeMessages(): readonly UserMessage[];
  /** Writes down that hooks are about to be notified, so that after a crash they are not notified twice. */
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
  /** What happens to one child too many; absent: one in the foreground is queued, one in the background refused. */
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
  const { entries, active, queue, maxRunning, now } = table;
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
  if (isFull) {
    // The queue keeps the order in which they were called for, however long each took to prepare.
    const { order } = run;
    const at = order === undefined ? -1 : queue.findIndex((other) => (other.run.order ?? order) > order);
    queue.splice(at === -1 ? queue.length : at, 0, entry);
  } else void driveTask(table, entry);
  return { type: "started", state: stateOf(table, entry) };
}

async function stopTask(table: TaskTable, id: string, by: StoppedBy): Promise<TaskState | undefined> {
  const { entries, queue } = table;
  const entry = entries.get(id);
  if (entry === undefined || hasEnded(entry.state)) return entry?.state;
  entry.controller.abort(
    by === "session"
      ? // It was interrupted, as if the process had died, and not abandoned.
        new RetinueError(interruptedReason, "The session ended before the agent did.")
      : new RetinueError(`stopped-by-${by}`, `The agent was stopped by the ${by}.`),
  );
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

/** What `Promise.withResolvers` gives, spelt out so that the published types need no newer library than ES2022. */
interface Resolvers<Value> {
  readonly promise: Promise<Value>;
  readonly resolve: (value: Value | PromiseLike<Value>) => void;
  readonly reject: (reason?: unknown) => void;
}

/** One child, from its start until enough others have ended after it. */
interface TaskEntry {
  state: TaskState;
  run: TaskRun;
  readonly controller: AbortController;
  readonly mail: UserMessage[];
  readonly done: Resolvers<TaskState>;
  readonly detached: Resolvers<void>;
  readonly moved: AbortController;
  /** Set while one that was idle waits for a place. */
  resume?: () => void;
  /** How many calls of it wait for agents that it has started; meanwhile it has no place. */
  childWaits?: number;
  /** Of its state, what was counted before the run or the part of it ended; and how much of that belongs to this part. */
  counted?: { readonly ever: RunTotals; readonly part: RunTotals | undefined };
}

/** All children of a session, as the task manager keeps them. */
interface TaskTable {
  readonly maxRunning: number;
  readonly keptEnded: number;
  readonly now: () => number;
  readonly entries: Map<string, TaskEntry>;
  /** Those that hold a place; counting all entries instead would make many children slow. */
  readonly active: Set<TaskEntry>;
  readonly queue: TaskEntry[];
  /** Those that had given up their place and want one again; they come before the queue. */
  readonly returning: { readonly entry: TaskEntry; readonly enter: () => void }[];
  /** Those that have ended and released everything, oldest first. */
  readonly ended: Set<TaskEntry>;
  readonly feed: Feed<TaskEvent>;
  totals: RunTotals | undefined;
  isClosed: boolean;
}

/** Runs a child to its end, however it ends, and then starts the next one in the queue. */
async function driveTask(table: TaskTable, entry: TaskEntry): Promise<void> {
  if (entry.run.start.workflow === undefined) table.active.add(entry);
  const control: TaskControl = {
    attended: () => !entry.state.background,
    unattended: entry.moved.signal,
    takeMessages: () => entry.mail.splice(0),
    takePlace: (signal) => takePlace(table, entry, signal),
    park: (wait, options) => park(table, entry, { wait, ...options }),
  };
  const { signal } = entry.controller;
  const follow = async (): Promise<void> => {
    for await (const event of entry.run.events(control, signal)) {
      if (hasEnded(entry.state)) return;
      apply(table, entry, event);
      handTo(entry.run.sinks ?? [], event, entry.state);
    }
  };
  const finished = follow().catch((error: unknown) => concludeTask(table, entry, error));
  const settled = new AbortController();
  await Promise.race([finished, abandoned(signal, settled.signal)]);
  // With a reason, because Node makes an error with a stack where there is none.
  settled.abort("settled");
  if (!hasEnded(entry.state))
    concludeTask(table, entry, new RetinueError("no-end", "The agent did not report how it ended."));
  await releaseTask(table, entry);
}

/** Folds an event into the state of a child that has not ended. */
function apply(table: TaskTable, entry: TaskEntry, event: RunEvent): void {
  entry.state = foldTask(entry.state, event, table.now());
  if (table.feed.listeners.size > 0) {
    const { id: agentId, parentId, agentType } = entry.state;
    table.feed.publish({ type: event.type, agentId, parentId, agentType, event, state: entry.state });
  }
  if (event.type !== "run-ended" && event.type !== "run-idled") return;
  const early = entry.counted?.part;
  addToTable(table, early === undefined ? event.ending.totals : subtractTotals(event.ending.totals, early));
  entry.counted = { ever: soFar(entry.state), part: undefined };
  table.active.delete(entry);
  // Immediately, so that a newcomer does not get the place before those in the queue while this one still cleans up.
  startNext(table);
}

/** What the children took since the last asking, those that still run included: their end adds only what came after. */
function takeTotals(table: TaskTable): RunTotals | undefined {
  for (const entry of table.entries.values()) {
    if (hasEnded(entry.state)) continue;
    const ever = soFar(entry.state);
    const added = entry.counted === undefined ? ever : subtractTotals(ever, entry.counted.ever);
    if (added.turns + added.toolUses + contextTokens(added.usage) === 0) continue;
    const part = entry.counted?.part;
    entry.counted = { ever, part: part === undefined ? added : addTotals(part, added) };
    addToTable(table, added);
  }
  const { totals } = table;
  table.totals = undefined;
  return totals;
}

function addToTable(table: TaskTable, totals: RunTotals): void {
  table.totals = table.totals === undefined ? totals : addTotals(table.totals, totals);
}

/** Its time counts when it has ended. */
function soFar({ usage, turns, toolUses, costUsd }: TaskState): RunTotals {
  const known = costUsd === undefined ? {} : { costUsd };
  return { usage, turns, toolUses, durationMs: 0, modelMs: 0, ...known };
}

/** A child that was idle queues like one that starts, without being started again. */
async function takePlace(table: TaskTable, entry: TaskEntry, signal: AbortSignal): Promise<void> {
  const { active, maxRunning, queue } = table;
  if (active.size < maxRunning) {
    active.add(entry);
    return;
  }
  const waiting = Promise.withResolvers<void>();
  entry.resume = waiting.resolve;
  queue.push(entry);
  await abortable(waiting.promise, signal).finally(() => {
    const position = queue.indexOf(entry);
    if (position !== -1) queue.splice(position, 1);
    delete entry.resume;
  });
}

/** Those it waits for may be in the queue, so as long as it waits for one of them, it has no place. */
async function park<T>(
  table: TaskTable,
  entry: TaskEntry,
  {
    wait,
    forChildren = false,
    activity = "waiting for an approval",
  }: ParkOptions & { readonly wait: () => Promise<T> },
): Promise<T> {
  // Of several waits of one agent the first gives the place away.
  const isFirst = table.active.delete(entry);
  if (isFirst) {
    entry.state = { ...entry.state, activity };
    startNext(table);
  }
  if (!forChildren) {
    if (!isFirst) return wait();
    try {
      return await wait();
    } finally {
      if ((entry.childWaits ?? 0) === 0) await regainSlot(table, entry);
    }
  }
  entry.childWaits = (entry.childWaits ?? 0) + 1;
  try {
    return await wait();
  } finally {
    entry.childWaits -= 1;
    if (entry.childWaits === 0 && !table.active.has(entry)) await regainSlot(table, entry);
  }
}

async function regainSlot({ active, maxRunning, returning }: TaskTable, entry: TaskEntry): Promise<void> {
  const { signal } = entry.controller;
  if (hasEnded(entry.state)) return;
  if (active.size >= maxRunning && !signal.aborted) {
    const entered = Promise.withResolvers<void>();
    const place = { entry, enter: () => entered.resolve() };
    returning.push(place);
    signal.addEventListener("abort", place.enter, { once: true });
    await entered.promise;
    signal.removeEventListener("abort", place.enter);
    const at = returning.indexOf(place);
    if (at !== -1) returning.splice(at, 1);
  }
  // One that is stopped may exceed the number for the moment in which it ends.
  if (!hasEnded(entry.state)) active.add(entry);
}

/** The child that waited longest gets the place that became free. */
function startNext(table: TaskTable): void {
  const { active, maxRunning, queue, returning, now } = table;
  if (active.size >= maxRunning) return;
  const back = returning.shift();
  if (back !== undefined) {
    active.add(back.entry);
    back.enter();
    return;
  }
  const entry = queue.shift();
  if (entry === undefined) return;
  if (entry.resume !== undefined) {
    active.add(entry);
    entry.resume();
    return;
  }
  entry.state = { ...entry.state, status: "running", activity: "starting", lastSignAt: now() };
  void driveTask(table, entry);
}

/** Ends a child that did not report its own ending, and notifies the recorder of it. */
function concludeTask(table: TaskTable, entry: TaskEntry, error: unknown): void {
  if (hasEnded(entry.state)) return;
  const event = endedBy(error, { state: entry.state, signal: entry.controller.signal }, table.now());
  apply(table, entry, event);
  try {
    handTo(entry.run.sinks ?? [], event, entry.state);
  } catch {
    // The recorder may be what failed; the child has ended all the same.
  }
}

async function releaseTask(table: TaskTable, entry: TaskEntry): Promise<void> {
  try {
    await entry.run.onEnd?.(entry.state);
  } catch {
    // The child has ended; what its ending triggers must not take down others.
  }
  entry.done.resolve(entry.state);
  // What a run was made of goes with its end; its state goes when enough others have ended after it.
  const { ended, entries, keptEnded } = table;
  entry.run = { start: entry.run.start, async *events() {} };
  ended.add(entry);
  for (const oldest of ended) {
    if (ended.size <= keptEnded) return;
    ended.delete(oldest);
    if (entries.get(oldest.state.id) === oldest) entries.delete(oldest.state.id);
  }
}

/** A child that does not end when its signal aborts is abandoned after this time. */
const abandonAfterMs = 4500;

/** Resolves some time after a stop was requested; never, and without a timer left, once the child has settled. */
async function abandoned(stopped: AbortSignal, settled: AbortSignal): Promise<void> {
  const never = new Promise<void>(() => undefined);
  await new Promise<void>((resolve) => {
    if (stopped.aborted) resolve();
    else stopped.addEventListener("abort", () => resolve(), { once: true, signal: settled });
  });
  await sleep(abandonAfterMs, settled).catch(() => never);
}

/** The ending of a child that could not report its own: in the same shape as any other, from what was seen of it. */
function endedBy(
  error: unknown,
  { state, signal }: { readonly state: TaskState; readonly signal: AbortSignal },
  at: number,
): RunEvent {
  const { usage, turns, toolUses, costUsd: cost, startedAt, lastText } = state;
  const ending: RunEnding = {
    ...endingOfCause(signal.aborted ? signal.reason : error, signal.aborted),
    text: lastText,
    denials: [],
    totals: {
      usage,
      turns,
      toolUses,
      durationMs: at - startedAt,
      modelMs: 0,
      costUsd: cost,
    },
  };
  return { type: "run-ended", ending };
}

/** Why a run is stopped when the whole session ends; the child then counts as cut off and not as given up. */
const sessionEnds: ReadonlySet<string> = new Set([
  "interrupted",
  "reader-gone",
  "session-closed",
  "runtime-disposed",
]);

export function endsSession(reason: unknown): boolean {
  return isRetinueError(reason) && sessionEnds.has(reason.code);
}

/** Less than a tool call is waited for after a stop, so that its answer still names the child. */
const stopTimeoutMs = 2_000;

/** Stops a child whose caller was stopped; one that takes long is left to end by itself. */
export async function stopWithCaller(
  { stop }: Pick<TaskManager, "stop">,
  agentId: string,
  reason: unknown,
): Promise<void> {
  const by: StoppedBy = endsSession(reason) ? "session" : "parent";
  const late = AbortSignal.abort(new RetinueError("stop-late", "The agent did not end in time."));
  await settledSoon(stop(agentId, by), late, stopTimeoutMs).catch(() => undefined);
}

/** How many children run concurrently, and what happens to one more. */
export interface ChildLimits {
  readonly maxRunning: number;
  /** Absent: one in the foreground is queued, one in the background is refused. */
  readonly overflow?: "refuse" | "queue";
}

/** Unless the environment or settings have another number. */
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
