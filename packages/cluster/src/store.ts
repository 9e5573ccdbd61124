import { checks } from "@retinue/base/foundation/check-arguments.ts";
import { isRetinueError, RetinueError } from "@retinue/base/foundation/retinue-error.ts";

export type JsonValue =
  | null
  | boolean
  | number
  | string
  | readonly JsonValue[]
  | { readonly [key: string]: JsonValue };

/** One record of a log with its place in it. */
export interface LogEntry {
  /** Counts from 1 without gaps. */
  readonly seq: number;
  /** When it was appended, by the store's clock, in milliseconds since 1970. */
  readonly at: number;
  readonly record: JsonValue;
}

export interface LogSummary {
  readonly name: string;
  readonly lastSeq: number;
  readonly lastAt: number;
  /** The last entry, where it was asked for. */
  readonly last?: LogEntry | undefined;
}

export interface ListOptions {
  /** Give the last entry of each log as well. */
  readonly last?: boolean | undefined;
}

export interface AppendOptions {
  /**
   * All readers see the records, but a crash of the server itself within the next moments may lose them, until the next
   * append that is not relaxed. For what can be written again.
   */
  readonly relaxed?: boolean | undefined;
}

/** Append-only records by name: the state of an agent, its inbox, the board of a team. A name is any text up to 400 characters. */
export interface Log {
  /** Records after `from`, in order, at most `limit` of them; a negative `from` takes that many from the end. */
  read(name: string, from?: number, limit?: number): Promise<readonly LogEntry[]>;
  /**
   * Appends all of the records or none, and returns the sequence number of the last one. With `expect` this happens only if
   * the last sequence number is `expect` (0 for an empty log); otherwise it throws a conflict. That is the fence: of two
   * processes that both believe to own a log, one is refused.
   */
  append(
    name: string,
    records: readonly JsonValue[],
    expect?: number,
    options?: AppendOptions,
  ): Promise<number>;
  /** All logs whose name begins with the prefix, by name. */
  list(prefix: string, options?: ListOptions): Promise<readonly LogSummary[]>;
  /** Deletes the records up to a sequence number, or the whole log. What is kept keeps its numbers. */
  remove(name: string, upTo?: number): Promise<void>;
}

export interface WakeOptions {
  /** What a worker must have to run this agent, such as `queue:gpu`. Kept for later wakes that do not name any. */
  readonly needs?: readonly string[] | undefined;
  /** Lower runs first; 0 by default. */
  readonly priority?: number | undefined;
  /** Wakes the agent only after this time. */
  readonly delayMs?: number | undefined;
}

/** One run of an agent on a worker. */
export interface Activation {
  readonly agent: string;
  /** The id of the worker that runs it. */
  readonly worker: string;
  /** Aborted when the agent is cancelled, when another worker has taken over, or when draining takes too long. */
  readonly signal: AbortSignal;
  /** Aborted when the worker shuts down: finish the current turn and return "again". */
  readonly draining: AbortSignal;
  /** Resolves while this worker may act for the agent, and throws a conflict once another one has taken over. */
  confirm(): Promise<void>;
}

/**
 * "done" lets the agent rest until it is woken, "again" hands it to the next free worker, immediately or after a while. An activation that
 * throws is never done: the agent runs again after a pause.
 */
export type ActivationOutcome = "done" | "again" | { readonly againAfterMs: number };
export type RunActivation = (activation: Activation) => Promise<ActivationOutcome>;

/** How long an agent waits whose activation has thrown, as when the store did not take what it had to write. */
export const thrownPauseMs = 1_000;

export interface ServeOptions {
  /** How many agents run here concurrently. */
  readonly slots: number;
  /** What this worker has; it takes only agents whose needs are all among them. */
  readonly has?: readonly string[] | undefined;
  /** Why this worker takes nothing at present; undefined while it does. Asked before it takes agents. */
  readonly ailment?: (() => string | undefined) | undefined;
  /** Is notified of activations that threw and of errors of the store. */
  readonly onError?: ((error: unknown, agent?: string) => void) | undefined;
}

export interface Worker extends AsyncDisposable {
  readonly id: string;
  /**
   * Takes no more work, asks what runs to stop at its next turn, and resolves when this worker holds nothing. What has not
   * ended after `graceMs` is aborted and given to other workers.
   */
  drain(graceMs?: number): Promise<void>;
}

export type ActivationStatus =
  | { readonly state: "idle" }
  /** `missing` is what no live worker has, so that the agent cannot start until one comes. */
  | { readonly state: "queued"; readonly missing: readonly string[] }
  | { readonly state: "running"; readonly worker: string };

export interface WorkerStatus {
  readonly id: string;
  readonly machine: string;
  readonly pid: number;
  readonly version: string;
  readonly slots: number;
  readonly running: number;
  readonly has: readonly string[];
  /** Why it takes no agents at present; absent while it does. */
  readonly ailment?: string | undefined;
  /** When it last reported, in milliseconds since 1970. */
  readonly seenAt: number;
}

/** Decides where and when an agent runs. Activations of one agent never overlap. */
export interface Engine {
  /** Makes the agent run soon, here or elsewhere. Calls with the same activation id count once. */
  wake(agent: string, activationId: string, options?: WakeOptions): Promise<void>;
  /** Takes back an activation that has not started, and aborts one that runs, on whichever worker. Later wakes count. */
  cancel(agent: string): Promise<void>;
  /** Makes this process a worker. If it dies before `run` returns, the agent runs again elsewhere. */
  serve(run: RunActivation, options: ServeOptions): Promise<Worker>;
  /** At most this many agents run concurrently over all workers; undefined means as many as the workers have slots. */
  limit(agents: number | undefined): Promise<void>;
  status(agent: string): Promise<ActivationStatus>;
  workers(): Promise<readonly WorkerStatus[]>;
  /** Forgets agents that have been idle since before this time, and the engine's own records of finished work. */
  prune(before: number): Promise<number>;
}

/** Live events. Losing one loses nothing, because the log has the truth. */
export interface Bus {
  /** Never throws and never waits. An event too large for the transport arrives as `{ oversize: <bytes> }`. */
  publish(topic: string, event: JsonValue): void;
  /** Resolves when events that are published from now on will arrive. */
  subscribe(topic: string, listener: (event: JsonValue) => void): Promise<Subscription>;
}

export interface Subscription {
  close(): void;
}

/** Where agents live: on one machine in files, or on many in a database. */
export interface Store extends AsyncDisposable {
  /** For messages, without passwords. */
  readonly label: string;
  readonly log: Log;
  readonly engine: Engine;
  readonly bus: Bus;
  close(): Promise<void>;
}

/** A store that `openStore()` gave, or one like it. */
export const isStore = checks.shape(
  { log: checks.thing, engine: checks.thing, bus: checks.thing, close: checks.call },
  ["log", "engine", "bus", "close"],
);

const conflictCode = "log-conflict";

/** Another process has appended to the log since it was read. */
export function logConflict(name: string, expected: number): RetinueError {
  return new RetinueError(
    conflictCode,
    `The log ${name} no longer ends at record ${expected}; another process wrote to it.`,
  );
}

/** Another worker runs the agent now. */
export function ownershipLost(agent: string): RetinueError {
  return new RetinueError(conflictCode, `Another worker has taken over the agent ${agent}.`);
}

export function isConflict(error: unknown): boolean {
  return isRetinueError(error) && error.code === conflictCode;
}

const maxNameLength = 400;

/** Refuses names that no store could keep. */
export function checkName(kind: string, name: string): void {
  if (
    name.length > 0 &&
    name.length <= maxNameLength &&
    !/[\u0000-\u001f\u007f]/.test(name) &&
    name.isWellFormed()
  )
    return;
  throw new RetinueError(
    "invalid-name",
    `${JSON.stringify(name.slice(0, 80))} cannot be the name of ${kind}: it must have 1 to ${maxNameLength} characters and no control characters.`,
  );
}
