import type { UserMessage } from "../conversation/message.ts";
import { addTotals, type RunEvent, type RunTotals } from "../conversation/run-event.ts";
import { abortable } from "../foundation/abortable.ts";
import { createFeed } from "../foundation/feed.ts";
import { RetinueError } from "../foundation/retinue-error.ts";
import type { Stopwatch } from "../foundation/stopwatch.ts";
import type { ReportedEvent } from "../journal/plan-line.ts";
import { endedBy, givenUp } from "./given-up.ts";
import {
  foldTask,
  hasEnded,
  interruptedReason,
  startedTask,
  type TaskStart,
  type TaskState,
} from "./task-state.ts";

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
  /** After it was idle: resolves when it has a place among those that run again. */
  takePlace?(signal: AbortSignal): Promise<void>;
  /** Its own time, which is paused while a person is asked for it. */
  readonly stopwatch?: Stopwatch;
}

/** A child that is ready to run. */
export interface TaskRun {
  readonly start: Omit<TaskStart, "at">;
  /** Where it was called for, before others that took longer to prepare; the queue keeps this order. */
  readonly order?: number;
  readonly events: (line: TaskControl, signal: AbortSignal) => AsyncIterable<RunEvent>;
  /** Hears each event after it was folded; what it throws ends the child, not its siblings. */
  readonly onEvent?: (event: RunEvent, state: TaskState) => void;
  /** Runs once, when the child has ended, however it ended. */
  readonly onEnd?: (state: TaskState) => void | Promise<void>;
}

export type TaskStarted =
  | { readonly type: "started"; readonly state: TaskState }
  /** `isOver`: the session has ended meanwhile. */
  | { readonly type: "refused"; readonly reason: string; readonly isOver?: true };

export interface TaskEvent {
  readonly event: RunEvent;
  readonly state: TaskState;
}

export type StoppedBy = "user" | "parent" | "program" | "session";

/** All child agents of a session: at most so many at once, each with one driver. */
export interface TaskManager extends AsyncDisposable {
  start(run: TaskRun): TaskStarted;
  /** Why no child could be started now, before anything is found out for it; one in the background may be refused sooner. */
  refusal(background: boolean): string | undefined;
  /** The state when the child has ended, or when it was moved to the background meanwhile. */
  wait(id: string, options: { readonly signal: AbortSignal }): Promise<TaskState | undefined>;
  /** The state when the child has ended; detaching does not count. */
  ended(id: string): Promise<TaskState | undefined>;
  /** Stops waiting: the caller is freed at once and the child continues unattended. */
  detach(id: string): boolean;
  stop(id: string, by: StoppedBy): Promise<TaskState | undefined>;
  /** Between its turns the child reads it. False when it has ended or is not known. */
  send(id: string, message: UserMessage): boolean;
  /** Messages that a child had taken and not read when it ended; given once. */
  takeUnread(id: string): readonly UserMessage[];
  get(id: string): TaskState | undefined;
  list(): readonly TaskState[];
  /** What all runs that have ended since the last asking took together; of an agent that was resumed there are several. */
  takeTotals(): RunTotals | undefined;
  /** Leaving the loop, or `return()`, ends the watching. */
  watch(): AsyncIterableIterator<TaskEvent>;
}

export interface TaskManagerOptions {
  readonly maxRunning: number;
  /** What happens to one child too many; absent: one that somebody waits for is queued, one in the background refused. */
  readonly overflow?: "refuse" | "queue";
  readonly now: () => number;
  /** How many that have ended are kept in memory; what is older is in their files. */
  readonly keptEnded?: number;
}

/** Enough for whoever looks back; a server that runs for weeks must not grow with every child. */
const usuallyKept = 200;

interface Entry {
  state: TaskState;
  run: TaskRun;
  readonly controller: AbortController;
  readonly mail: UserMessage[];
  readonly done: PromiseWithResolvers<TaskState>;
  readonly detached: PromiseWithResolvers<void>;
  readonly moved: AbortController;
  /** Set while one that was idle waits for a place. */
  resume?: () => void;
}

export function createTaskManager(options: TaskManagerOptions): TaskManager {
  const { maxRunning, overflow, now, keptEnded = usuallyKept } = options;
  const entries = new Map<string, Entry>();
  /** Those that hold a place; counting all entries instead would make many children slow. */
  const active = new Set<Entry>();
  const queue: Entry[] = [];
  /** Those that have ended and let go of everything, oldest first. */
  const ended = new Set<Entry>();
  let totals: RunTotals | undefined;
  const feed = createFeed<TaskEvent>();
  let isClosed = false;

  /** The state, with the place in the queue of one that waits. */
  function seen(entry: Entry): TaskState {
    if (entry.state.status !== "queued") return entry.state;
    return { ...entry.state, queuePosition: queue.indexOf(entry) + 1 };
  }

  function refusal(background: boolean): string | undefined {
    if (isClosed) return "the session is over";
    const isQueued = overflow === undefined ? !background : overflow === "queue";
    if (isQueued || active.size < maxRunning) return undefined;
    return `max concurrent agents reached (${maxRunning})`;
  }

  function start(run: TaskRun): TaskStarted {
    if (isClosed) return { type: "refused", reason: "the session is over", isOver: true };
    const known = entries.get(run.start.id);
    if (known !== undefined && !hasEnded(known.state)) {
      return {
        type: "refused",
        reason: `the agent ${run.start.id} is still running; send it a message instead`,
      };
    }
    const full = refusal(run.start.background);
    if (full !== undefined) return { type: "refused", reason: full };
    const isFull = active.size >= maxRunning;
    const state = startedTask({ ...run.start, at: now() });
    const entry: Entry = {
      state: isFull ? { ...state, status: "queued", activity: "waiting for a place" } : state,
      run,
      controller: new AbortController(),
      mail: [],
      done: Promise.withResolvers(),
      detached: Promise.withResolvers(),
      moved: new AbortController(),
    };
    entries.delete(run.start.id);
    entries.set(run.start.id, entry);
    if (isFull) enqueue(entry);
    else void drive(entry);
    return { type: "started", state: seen(entry) };
  }

  function enqueue(entry: Entry): void {
    const { order } = entry.run;
    const at = order === undefined ? -1 : queue.findIndex(({ run }) => (run.order ?? order) > order);
    queue.splice(at === -1 ? queue.length : at, 0, entry);
  }

  function take(entry: Entry, event: RunEvent): void {
    if (hasEnded(entry.state)) return;
    entry.state = foldTask(entry.state, event, now());
    feed.publish({ event, state: entry.state });
    if (event.type !== "run-ended" && event.type !== "run-idled") return;
    totals = totals === undefined ? event.ending.totals : addTotals(totals, event.ending.totals);
    active.delete(entry);
    // Immediately, so that no one who comes while it still tidies up gets the place before those who wait.
    next();
  }

  async function drive(entry: Entry): Promise<void> {
    const { controller } = entry;
    active.add(entry);
    const line: TaskControl = {
      attended: () => !entry.state.background,
      unattended: entry.moved.signal,
      takeMessages: () => entry.mail.splice(0),
      takePlace: (signal) => takePlace(entry, signal),
    };
    const finished = follow(entry, line).catch((error: unknown) => conclude(entry, error));
    const settled = new AbortController();
    await Promise.race([finished, givenUp(controller.signal, settled.signal)]);
    settled.abort();
    conclude(entry, new RetinueError("no-end", "The agent did not say how it ended."));
    await letGo(entry);
  }

  /** Ends a child that did not tell its own ending; whoever records it hears of it too. */
  function conclude(entry: Entry, error: unknown): void {
    if (hasEnded(entry.state)) return;
    const event = endedBy(error, { state: entry.state, signal: entry.controller.signal }, now());
    take(entry, event);
    try {
      entry.run.onEvent?.(event, entry.state);
    } catch {
      // It may be this that broke; the child has ended all the same.
    }
  }

  async function letGo(entry: Entry): Promise<void> {
    try {
      await entry.run.onEnd?.(entry.state);
    } catch {
      // The child has ended; what its ending triggers must not take down others.
    }
    entry.done.resolve(entry.state);
    forget(entry);
  }

  /** What a run was made of goes with its end; its state goes when enough others have ended after it. */
  function forget(entry: Entry): void {
    entry.run = { start: entry.run.start, events: nothing };
    ended.add(entry);
    for (const oldest of ended) {
      if (ended.size <= keptEnded) return;
      ended.delete(oldest);
      if (entries.get(oldest.state.id) === oldest) entries.delete(oldest.state.id);
    }
  }

  async function follow(entry: Entry, line: TaskControl): Promise<void> {
    for await (const event of entry.run.events(line, entry.controller.signal)) {
      if (hasEnded(entry.state)) return;
      take(entry, event);
      entry.run.onEvent?.(event, entry.state);
    }
  }

  /** One that was idle queues like one that starts, without being started again. */
  async function takePlace(entry: Entry, signal: AbortSignal): Promise<void> {
    if (active.size < maxRunning) active.add(entry);
    else {
      const waiting = Promise.withResolvers<void>();
      entry.resume = waiting.resolve;
      enqueue(entry);
      await abortable(waiting.promise, signal).finally(() => {
        if (queue.includes(entry)) queue.splice(queue.indexOf(entry), 1);
        delete entry.resume;
      });
    }
  }

  /** Whoever waited longest gets the place that became free. */
  function next(): void {
    if (active.size >= maxRunning) return;
    const entry = queue.shift();
    if (entry === undefined) return;
    if (entry.resume !== undefined) {
      active.add(entry);
      entry.resume();
      return;
    }
    entry.state = { ...entry.state, status: "running", activity: "starting", lastSignAt: now() };
    void drive(entry);
  }

  async function stop(id: string, by: StoppedBy): Promise<TaskState | undefined> {
    const entry = entries.get(id);
    if (entry === undefined || hasEnded(entry.state)) return entry?.state;
    entry.controller.abort(stopReason(by));
    const place = entry.resume === undefined ? queue.indexOf(entry) : -1;
    if (place !== -1) {
      queue.splice(place, 1);
      conclude(entry, undefined);
      await letGo(entry);
    }
    return entry.done.promise;
  }

  return {
    start,
    refusal,
    stop,
    get(id) {
      const entry = entries.get(id);
      return entry === undefined ? undefined : seen(entry);
    },
    list: () => [...entries.values()].map(seen),
    takeTotals() {
      const taken = totals;
      totals = undefined;
      return taken;
    },
    ended: async (id) => entries.get(id)?.done.promise,
    async wait(id, { signal }) {
      const entry = entries.get(id);
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
    },
    detach(id) {
      const entry = entries.get(id);
      if (entry === undefined || hasEnded(entry.state)) return false;
      entry.state = { ...entry.state, background: true };
      entry.moved.abort(new RetinueError("detached", "The agent was moved to the background."));
      entry.detached.resolve();
      return true;
    },
    send(id, message) {
      const entry = entries.get(id);
      if (entry === undefined || hasEnded(entry.state)) return false;
      entry.mail.push(message);
      return true;
    },
    takeUnread(id) {
      const entry = entries.get(id);
      return entry === undefined || !hasEnded(entry.state) ? [] : entry.mail.splice(0);
    },
    watch: () => feed.subscribe(),
    async [Symbol.asyncDispose]() {
      isClosed = true;
      await Promise.all([...entries.keys()].map((id) => stop(id, "session")));
      feed.end();
    },
  };
}

/** One that ends because its session does is cut off, as if the process had died, and not given up. */
function stopReason(by: StoppedBy): RetinueError {
  if (by === "session") return new RetinueError(interruptedReason, "The session ended before the agent did.");
  return new RetinueError(`stopped-by-${by}`, `The agent was stopped by the ${by}.`);
}

async function* nothing(): AsyncGenerator<RunEvent> {}
