import { abortable, sleep } from "@retinue/base/foundation/abortable.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { UserMessage } from "../conversation/message.ts";
import {
  addTotals,
  type EventSink,
  type RunEnding,
  type RunEvent,
  type RunTotals,
  subtractTotals,
} from "../conversation/run-event.ts";
import { contextTokens } from "../conversation/usage.ts";
import { endingOfCause } from "../loop/loop-ports.ts";
import { foldTask, hasEnded, type TaskState } from "../protocol/agent-state.ts";
import type { Feed } from "./feed.ts";
import type { ParkOptions, TaskControl, TaskEvent, TaskRun } from "./task-manager.ts";

export {
  foldTask,
  hasEnded,
  interruptedReason,
  startedTask,
  type TaskStart,
  type TaskState,
  wasCutOff,
} from "../protocol/agent-state.ts";

/** What `Promise.withResolvers` gives, spelt out so that the published types need no newer library than ES2022. */
interface Resolvers<Value> {
  readonly promise: Promise<Value>;
  readonly resolve: (value: Value | PromiseLike<Value>) => void;
  readonly reject: (reason?: unknown) => void;
}

/** One child, from its start until enough others have ended after it. */
export interface TaskEntry {
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
export interface TaskTable {
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
export async function driveTask(table: TaskTable, entry: TaskEntry): Promise<void> {
  if (entry.run.start.workflow === undefined) table.active.add(entry);
  const control: TaskControl = {
    attended: () => !entry.state.background,
    unattended: entry.moved.signal,
    takeMessages: () => entry.mail.splice(0),
    takePlace: (signal) => takePlace(table, entry, signal),
    park: (wait, options) => park(table, entry, { wait, ...options }),
  };
  const finished = follow(table, entry, control).catch((error: unknown) => concludeTask(table, entry, error));
  const settled = new AbortController();
  await Promise.race([finished, abandoned(entry.controller.signal, settled.signal)]);
  // With a reason, because Node makes an error with a stack where there is none.
  settled.abort("settled");
  if (!hasEnded(entry.state))
    concludeTask(table, entry, new RetinueError("no-end", "The agent did not report how it ended."));
  await releaseTask(table, entry);
}

async function follow(table: TaskTable, entry: TaskEntry, control: TaskControl): Promise<void> {
  for await (const event of entry.run.events(control, entry.controller.signal)) {
    if (hasEnded(entry.state)) return;
    apply(table, entry, event);
    handTo(entry.run.sinks ?? [], event, entry.state);
  }
}

/** Gives an event to those who take its type, in their order. */
export function handTo<State>(
  sinks: readonly (Pick<EventSink, "types"> & {
    readonly take: (event: RunEvent, state: State) => void;
  })[],
  event: RunEvent,
  state: State,
): void {
  for (const { types, take } of sinks) if (types === undefined || types.has(event.type)) take(event, state);
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
export function takeTotals(table: TaskTable): RunTotals | undefined {
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
      if ((entry.childWaits ?? 0) === 0) await comeBack(table, entry);
    }
  }
  entry.childWaits = (entry.childWaits ?? 0) + 1;
  try {
    return await wait();
  } finally {
    entry.childWaits -= 1;
    if (entry.childWaits === 0 && !table.active.has(entry)) await comeBack(table, entry);
  }
}

async function comeBack({ active, maxRunning, returning }: TaskTable, entry: TaskEntry): Promise<void> {
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
export function concludeTask(table: TaskTable, entry: TaskEntry, error: unknown): void {
  if (hasEnded(entry.state)) return;
  const event = endedBy(error, { state: entry.state, signal: entry.controller.signal }, table.now());
  apply(table, entry, event);
  try {
    handTo(entry.run.sinks ?? [], event, entry.state);
  } catch {
    // The recorder may be what failed; the child has ended all the same.
  }
}

export async function releaseTask(table: TaskTable, entry: TaskEntry): Promise<void> {
  try {
    await entry.run.onEnd?.(entry.state);
  } catch {
    // The child has ended; what its ending triggers must not take down others.
  }
  entry.done.resolve(entry.state);
  forget(table, entry);
}

/** What a run was made of goes with its end; its state goes when enough others have ended after it. */
function forget({ ended, entries, keptEnded }: TaskTable, entry: TaskEntry): void {
  entry.run = { start: entry.run.start, events: nothing };
  ended.add(entry);
  for (const oldest of ended) {
    if (ended.size <= keptEnded) return;
    ended.delete(oldest);
    if (entries.get(oldest.state.id) === oldest) entries.delete(oldest.state.id);
  }
}

async function* nothing(): AsyncGenerator<RunEvent> {}

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
