import { isRetinueError } from "../foundation/retinue-error.ts";
import type { AgentContext, AgentProgram, Effect, ProgramOutcome } from "./agent-program.ts";
import {
  type AgentRecord,
  type AgentState,
  agentLog,
  idempotencyKey,
  inboxLog,
  liveTopic,
  type Message,
  type OpenCall,
  readAgentState,
  toJson,
} from "./agent-records.ts";
import { missingNeeds } from "./missing-needs.ts";
import { deliver, startAgent } from "./start-agent.ts";
import {
  type Activation,
  type AppendOptions,
  isConflict,
  type JsonValue,
  type Log,
  type LogEntry,
  type Store,
} from "./store.ts";

interface ActivateOptions {
  readonly program: AgentProgram;
  /** Recorded with each claim. */
  readonly version: string;
  /** What this worker has. */
  readonly has: readonly string[];
}

/**
 * One activation: read the log, claim the agent by an append that expects the end that was read, work turn by turn, and stop
 * when there is nothing to do. A conflict at any write means that another worker owns the agent, or that it was stopped.
 */
export async function activateAgent(
  store: Store,
  activation: Activation,
  { program, version, has }: ActivateOptions,
): Promise<"done" | "again"> {
  const { agent } = activation;
  const history = await store.log.read(agentLog(agent));
  const state = readAgentState(history);
  if (state.plan === undefined) return "done";
  if (state.ending !== undefined) await announceEnd(store, agent, state);
  if (!(await hasWork(store, agent, state))) return "done";
  // The engine forgets agents that rest for very long, and with them what they need.
  if (missingNeeds(state.needs, has).length > 0) {
    await store.engine.wake(agent, `needs/${state.lastSeq}`, { needs: state.needs });
    return "again";
  }
  try {
    const writer = createFencedWriter(store.log, agentLog(agent), state.lastSeq);
    await writer.append(claim(state, activation.worker, version));
    const context = createContext({ store, activation, state, history, writer });
    const outcome = await program(context).catch((error: unknown) => failure(error, activation.signal));
    return await conclude(store, { agent, state, writer, outcome });
  } catch (error) {
    if (!isConflict(error)) throw error;
    const now = readAgentState(await store.log.read(agentLog(agent)));
    // The worker that runs it now has been scheduled separately; for a worker that lost the agent, "again" has no effect.
    if (now.ending === undefined) return "again";
    // The one that stopped the agent may have died before the parent was notified.
    await announceEnd(store, agent, now);
    return "done";
  }
}

/** A stopped agent stays stopped; a finished or waiting one works again when there is a message. */
async function hasWork(
  store: Store,
  agent: string,
  { ending, inboxSeq, received }: AgentState,
): Promise<boolean> {
  if (ending === undefined) return true;
  if (ending.status === "stopped") return false;
  const unread = await store.log.read(inboxLog(agent), inboxSeq);
  return unread.some(({ record }) => !received.has(toMessage(record).id));
}

function claim({ openCalls }: AgentState, worker: string, version: string): readonly JsonValue[] {
  const interrupted = openCalls.map(({ seq }): AgentRecord => ({ type: "interrupted", call: seq }));
  return [toJson({ type: "claimed", worker, version }), ...interrupted.map(toJson)];
}

/** A program that fails ends its agent; a store that fails or an abort does not, so that the agent continues elsewhere. */
function failure(error: unknown, signal: AbortSignal): ProgramOutcome {
  const isOurs = isConflict(error) || (isRetinueError(error) && error.code === "store-unreachable");
  if (isOurs || signal.aborted) throw error;
  const reason = error instanceof Error ? error.message : String(error);
  return { type: "ended", ending: { status: "failed", result: reason } };
}

interface Conclusion {
  readonly agent: string;
  readonly state: AgentState;
  readonly writer: FencedWriter;
  readonly outcome: ProgramOutcome;
}

async function conclude(
  store: Store,
  { agent, state, writer, outcome }: Conclusion,
): Promise<"done" | "again"> {
  switch (outcome.type) {
    case "yielded":
      return "again";
    case "parked": {
      const seq = await writer.append([toJson({ type: "parked", waitingFor: outcome.waitingFor })]);
      store.bus.publish(agentLog(agent), seq);
      const { wakeAfterMs } = outcome;
      if (wakeAfterMs !== undefined) await store.engine.wake(agent, `timer/${seq}`, { delayMs: wakeAfterMs });
      return "done";
    }
    case "ended": {
      const seq = await writer.append([toJson({ type: "ended", ending: outcome.ending })]);
      await announceEnd(store, agent, { ...state, ending: { ...outcome.ending, seq } });
      return "done";
    }
  }
}

/** May happen twice, after a crash in between; the message to the parent has an id, so it arrives once. */
async function announceEnd(store: Store, agent: string, { parent, ending }: AgentState): Promise<void> {
  if (ending === undefined) return;
  store.bus.publish(agentLog(agent), ending.seq);
  if (parent === undefined) return;
  const { seq, status, result } = ending;
  const body = { type: "child-ended", agent, status, result };
  await deliver(store, parent, { id: `ended/${agent}/${seq}`, from: agent, body });
}

interface ContextParts {
  readonly store: Store;
  readonly activation: Activation;
  readonly state: AgentState;
  readonly history: readonly LogEntry[];
  readonly writer: FencedWriter;
}

function createContext({ store, activation, state, history, writer }: ContextParts): AgentContext {
  const { agent, signal, draining } = activation;
  const perform = async <Result extends JsonValue>(seq: number, effect: Effect<Result>): Promise<Result> => {
    await activation.confirm();
    const result = await effect(idempotencyKey(agent, seq), signal);
    // Whatever comes of the result is written first, and that brings it to the disk.
    await writer.append([toJson({ type: "returned", call: seq, result })], { relaxed: true });
    return result;
  };
  return {
    agent,
    plan: state.plan ?? null,
    tree: state.tree,
    parent: state.parent,
    history,
    // A log only grows, so what was read at the start need not be read again.
    readHistory: async () => [...history, ...(await store.log.read(agentLog(agent), state.lastSeq))],
    interrupted: state.openCalls,
    signal,
    draining,
    confirm: activation.confirm,
    record: (entries, options) =>
      writer.append(
        entries.map((entry) => toJson({ type: "entry", entry })),
        options,
      ),
    async call(name, input, effect) {
      signal.throwIfAborted();
      return perform(await writer.append([toJson({ type: "called", name, input })]), effect);
    },
    repeat: ({ seq }: OpenCall, effect) => perform(seq, effect),
    receive: createReceive(store, agent, { state, writer }),
    async startChild({ agent: child, plan, needs = [] }) {
      if (!state.children.includes(child)) await writer.append([toJson({ type: "spawned", agent: child })]);
      await startAgent(store, { agent: child, plan, needs, tree: state.tree, parent: agent });
    },
    publish: (event) => store.bus.publish(liveTopic(agent), event),
  };
}

function createReceive(
  { log }: Store,
  agent: string,
  { state, writer }: Pick<ContextParts, "state" | "writer">,
): () => Promise<readonly Message[]> {
  let inboxSeq = state.inboxSeq;
  const known = new Set(state.received);
  return async () => {
    const unread = await log.read(inboxLog(agent), inboxSeq);
    const taken = unread.flatMap(({ seq, record }) => {
      const message = toMessage(record);
      if (known.has(message.id)) return [];
      known.add(message.id);
      return [{ seq, message }];
    });
    inboxSeq = unread.at(-1)?.seq ?? inboxSeq;
    const records = taken.map(({ seq, message }) => toJson({ type: "received", inbox: seq, message }));
    if (records.length > 0) await writer.append(records);
    return taken.map(({ message }) => message);
  };
}

function toMessage(record: JsonValue): Message {
  // Only `deliver` writes to inboxes.
  return record as unknown as Message;
}

/**
 * Appends to a log that this process believes to own. Appends that come while one is under way go out together with the
 * next. After a conflict every further append fails the same way: somebody else owns the log now.
 */
interface FencedWriter {
  readonly lastSeq: number;
  /** The number of the first of these records, once they are stored. */
  append(records: readonly JsonValue[], options?: AppendOptions): Promise<number>;
}

interface Waiting {
  readonly records: readonly JsonValue[];
  readonly relaxed: boolean;
  readonly resolve: (seq: number) => void;
  readonly reject: (error: unknown) => void;
}

export function createFencedWriter(log: Log, name: string, startSeq: number): FencedWriter {
  let lastSeq = startSeq;
  let waiting: Waiting[] = [];
  let isWriting = false;
  let refusal: unknown;
  /** What a crash of the server may have lost, after the last record that it cannot have lost. */
  let [safe, unsafe]: [JsonValue | undefined, readonly JsonValue[]] = [undefined, []];

  const store = async (records: readonly JsonValue[], relaxed: boolean): Promise<void> => {
    try {
      lastSeq = await log.append(name, records, lastSeq, { relaxed });
    } catch (error) {
      if (!isConflict(error) || unsafe.length === 0) throw error;
      const lost = await findLost(log, { name, lastSeq, safe, unsafe });
      if (lost === undefined) throw error;
      lastSeq = await log.append(name, [...lost, ...records], lastSeq - lost.length, { relaxed });
    }
    [safe, unsafe] = relaxed ? [safe, [...unsafe, ...records]] : [records.at(-1), []];
  };
  const write = async (): Promise<void> => {
    isWriting = true;
    while (waiting.length > 0) {
      const batch = waiting;
      waiting = [];
      try {
        if (refusal !== undefined) throw refusal;
        let seq = lastSeq + 1;
        const records = batch.flatMap((entry) => entry.records);
        await store(
          records,
          batch.every(({ relaxed }) => relaxed),
        );
        for (const entry of batch) {
          entry.resolve(seq);
          seq += entry.records.length;
        }
      } catch (error) {
        if (isConflict(error)) refusal = error;
        for (const { reject } of batch) reject(error);
      }
    }
    isWriting = false;
  };
  return {
    get lastSeq() {
      return lastSeq;
    },
    append(records, { relaxed = false } = {}) {
      return new Promise((resolve, reject) => {
        waiting.push({ records, relaxed, resolve, reject });
        if (!isWriting) void write();
      });
    },
  };
}

interface Tail {
  readonly name: string;
  readonly lastSeq: number;
  readonly safe: JsonValue | undefined;
  readonly unsafe: readonly JsonValue[];
}

/** The records at the end that the server has lost, if the log ends with one of ours; no one has written since, then. */
async function findLost(
  log: Log,
  { name, lastSeq, safe, unsafe }: Tail,
): Promise<readonly JsonValue[] | undefined> {
  const [last] = await log.read(name, -1);
  const missing = lastSeq - (last?.seq ?? 0);
  if (last === undefined || missing <= 0 || missing > unsafe.length) return undefined;
  const own = missing === unsafe.length ? safe : unsafe[unsafe.length - missing - 1];
  return JSON.stringify(own) === JSON.stringify(last.record) ? unsafe.slice(-missing) : undefined;
}
