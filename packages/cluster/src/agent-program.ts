import type { Ending, Message, OpenCall } from "./agent-records.ts";
import type { AppendOptions, JsonValue, LogEntry } from "./store.ts";

/** What an agent does when it is activated. State is data, never a place in the code: it continues from the history alone. */
export type AgentProgram = (context: AgentContext) => Promise<ProgramOutcome>;

export type ProgramOutcome =
  | { readonly type: "ended"; readonly ending: Ending }
  /** Nothing to do until a message, an answer or a child's end arrives, or at the latest after `wakeAfterMs`. */
  | { readonly type: "parked"; readonly waitingFor: JsonValue; readonly wakeAfterMs?: number }
  /** There is more to do, but this worker shuts down, or its machine is sick. */
  | { readonly type: "yielded" };

export interface ChildRequest {
  /** Must follow from the history, so that a repetition starts the same child and not a second one. */
  readonly agent: string;
  readonly plan: JsonValue;
  readonly needs?: readonly string[];
}

/** An agent's connection to its log, its inbox and its relatives. Everything written is refused once another worker owns it. */
export interface AgentContext {
  readonly agent: string;
  readonly plan: JsonValue;
  readonly tree: string;
  readonly parent: string | undefined;
  /** The log as it was before this activation. */
  readonly history: readonly LogEntry[];
  /** The log as it is now. */
  readHistory(): Promise<readonly LogEntry[]>;
  /** Calls that were under way when an earlier worker died. They are recorded as interrupted. */
  readonly interrupted: readonly OpenCall[];
  readonly signal: AbortSignal;
  /** Return "yielded" at the end of the turn once this is aborted. */
  readonly draining: AbortSignal;
  /** Resolves while this worker may act for the agent, and throws a conflict once another one has taken over. */
  confirm(): Promise<void>;
  /** Appends lines of the agent's own; gives the number of the first. */
  record(entries: readonly JsonValue[], options?: AppendOptions): Promise<number>;
  /**
   * Does something that has effects outside. The intention is stored first, then it is made sure that no other worker has
   * taken over, then the effect runs with its key, and its result is stored before anything else happens.
   */
  call<Result extends JsonValue>(name: string, input: JsonValue, effect: Effect<Result>): Promise<Result>;
  /** Does an interrupted call again under its old key. */
  repeat<Result extends JsonValue>(call: OpenCall, effect: Effect<Result>): Promise<Result>;
  /** Messages that have arrived and were not taken before, each once. */
  receive(): Promise<readonly Message[]>;
  startChild(child: ChildRequest): Promise<void>;
  /** Whether another worker is well, has what the agent needs, and has not failed with it. */
  canRunElsewhere(): Promise<boolean>;
  /** Notifies watchers; may be lost. */
  publish(event: JsonValue): void;
}

export type Effect<Result extends JsonValue> = (key: string, signal: AbortSignal) => Promise<Result>;
