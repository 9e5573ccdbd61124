// @io
import { isRetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { AgentContext, AgentProgram, Effect, ProgramOutcome } from "./agent-program.ts";
import {
  type AgentRecord,
  type AgentState,
  agentLog,
  idempotencyKey,
  inboxLog,
  isStep,
  liveTopic,
  type Message,
  type OpenCall,
  type ReleaseCause,
  readAgentState,
  toJson,
} from "./agent-records.ts";
import { classifyFailure, type FailureSource } from "./classify-failure.ts";
import { missingNeeds } from "./missing-needs.ts";
import { type Quarantine, suspiciousCrashes, type Trial } from "./quarantine.ts";
import { deliver, startAgent } from "./start-agent.ts";
import {
  type Activation,
  type ActivationOutcome,
  type AppendOptions,
  isConflict,
  type JsonValue,
  type Log,
  type LogEntry,
  type Store,
} from "./store.ts";
import type { WorkerHealth } from "./worker-health.ts";

interface ActivateOptions {
  readonly program: AgentProgram;
  /** Recorded with each claim. */
  readonly version: string;
  /** What this worker has. */
  readonly has: readonly string[];
  readonly health: Pick<WorkerHealth, "examine" | "worked" | "sickness">;
  readonly quarantine: Quarantine;
  /** How long an agent waits after its first failure; twice as long after each further one. */
  readonly pauseMs?: number | undefined;
}

/**
 * One activation: read the log, claim the agent by an append that expects the end that was read, work turn by turn, and stop
 * when there is nothing to do. A conflict at any write means that another worker owns the agent, or that it was stopped.
 */
export async function activateAgent(
  store: Store,
  activation: Activation,
  { program, version, has, health, quarantine, pauseMs = defaultPauseMs }: ActivateOptions,
): Promise<ActivationOutcome> {
  const { agent, worker } = activation;
  const history = await store.log.read(agentLog(agent));
  const state = readAgentState(history);
  if (state.plan === undefined || state.deadLetter !== undefined) return "done";
  if (state.ending !== undefined) await announceEnd(store, agent, state);
  if (!(await hasWork(store, agent, state))) return "done";
  // The engine forgets agents that rest for very long, and with them what they need.
  if (missingNeeds(state.needs, has).length > 0) {
    await store.engine.wake(agent, `needs/${state.lastSeq}`, { needs: state.needs });
    return "again";
  }
  if (await isForOthers(store, worker, state)) return { againAfterMs: jittered(pauseMs) };
  let trial: Trial | undefined;
  try {
    const writer = createFencedWriter(store.log, agentLog(agent), state.lastSeq);
    const giveBack = createRelease({ store, agent, writer, pauseMs });
    const { open, failed } = state.attempts;
    let { crashes } = state.attempts;
    if (open !== undefined && !(await isAlive(store, open, worker))) {
      // One crash may have any cause; after that the agent waits, so that it does not take one worker after another with it.
      if (failed > 1 || crashPauseMs(state) > 0)
        return await giveBack({
          worker: open,
          fault: "crash",
          error: `The worker ${open} died while it ran this agent.`,
        });
      crashes += 1;
    } else if (open !== undefined) {
      // It lives, and lost the store before it could give the agent back.
      await writer.append([toJson({ type: "released", worker: open })]);
    }
    if (crashes >= suspiciousCrashes) {
      trial = quarantine.enter(crashes);
      if (trial === undefined) return { againAfterMs: jittered(pauseMs) };
    }
    await writer.append(claim(state, worker, version));
    const parts = { store, activation, state, history, writer, sickness: health.sickness };
    const context = createContext({ ...parts, onStep: () => trial?.passStep() });
    let outcome: ProgramOutcome;
    try {
      outcome = await program(context);
    } catch (error) {
      if (activation.signal.aborted) {
        // A claim that a worker shutting down could not finish in time is given back, so that it does not count as a crash.
        const { signal } = activation;
        if (!isRetinueError(signal.reason) || signal.reason.code !== "draining") throw error;
        return giveBack({ worker });
      }
      const source = await failureSourceOf(store, { agent, error, lastSeq: writer.lastSeq });
      if (source === "conflict" || source === "store") throw error;
      if (source !== "agent")
        return await giveBack({ worker, fault: await health.examine(error, agent), error: messageOf(error) });
      outcome = { type: "ended", ending: { status: "failed", result: messageOf(error) } };
    }
    health.worked();
    return await conclude(store, { agent, worker, state, writer, outcome });
  } catch (error) {
    if (!isConflict(error)) throw error;
    const now = readAgentState(await store.log.read(agentLog(agent)));
    // The worker that runs it now has been scheduled separately; for a worker that lost the agent, "again" has no effect.
    if (now.ending === undefined) return "again";
    // The process that stopped the agent may have died before the parent was notified.
    await announceEnd(store, agent, now);
    return "done";
  } finally {
    trial?.[Symbol.dispose]();
  }
}

/** A conflict over another log than the agent's own, as a program may have, is no loss of the agent. */
async function failureSourceOf(
  { log }: Store,
  { agent, error, lastSeq }: { readonly agent: string; readonly error: unknown; readonly lastSeq: number },
): Promise<FailureSource> {
  const source = classifyFailure(error);
  if (source !== "conflict") return source;
  const [last] = await log.read(agentLog(agent), -1);
  return last?.seq === lastSeq ? "unknown" : source;
}

/** So many claims may fail without a turn between them, and so many in all before the agent rests, until it is a dead letter. */
const maxFailed = 5;
const maxTotal = 30;
/** After so many claims in all it waits, although it gets further with each. */
const manyClaims = 10;
const defaultPauseMs = 1_000;
const maxPauseMs = 30_000;
/** A machine that is sick takes nothing; the others need not wait. */
const hostPauseMs = 100;

interface Release {
  readonly worker: string;
  readonly fault?: ReleaseCause;
  readonly error?: string;
}

type ReleaseAgent = (given: Release) => Promise<ActivationOutcome>;

/** Ends a claim with its reason. An agent whose claims have failed often enough becomes a dead letter. */
function createRelease({
  store,
  agent,
  writer,
  pauseMs,
}: Pick<ContextParts, "store" | "writer"> & {
  readonly agent: string;
  readonly pauseMs: number;
}): ReleaseAgent {
  return async ({ worker, fault, error }) => {
    const released: AgentRecord = {
      type: "released",
      worker,
      fault,
      error: error?.slice(0, 4_000),
    };
    const before = await store.log.read(agentLog(agent));
    const after = readAgentState([...before, { seq: writer.lastSeq + 1, at: 0, record: toJson(released) }]);
    const { failed, total } = after.attempts;
    const isOwn = fault === "unknown" || fault === "crash";
    const isDead = isOwn && (failed >= maxFailed || total >= maxTotal);
    const last: AgentRecord = { type: "dead-letter", claims: total, error: error ?? "" };
    const seq = await writer.append([toJson(released), ...(isDead ? [toJson(last)] : [])]);
    store.bus.publish(agentLog(agent), seq);
    if (isDead) return "done";
    if (fault === undefined) return "again";
    if (fault === "host") return { againAfterMs: jittered(hostPauseMs) };
    const own = pauseMs * 2 ** (fault === "crash" ? failed - 2 : failed - 1);
    return { againAfterMs: jittered(Math.min(maxPauseMs, Math.max(own, crashPauseMs(after)))) };
  };
}

function crashPauseMs({ attempts: { total } }: AgentState): number {
  return total < manyClaims ? 0 : Math.min(maxPauseMs, defaultPauseMs * 2 ** (total - manyClaims));
}

/** Agents that were hit by the same crash must not return to the same worker at the same moment. */
function jittered(milliseconds: number): number {
  return Math.round(milliseconds * (0.5 + Math.random()));
}

async function isAlive({ engine }: Store, worker: string, own: string): Promise<boolean> {
  return worker === own || (await engine.workers()).some(({ id }) => id === worker);
}

/** Whether the agent has failed here and another worker has not tried it yet. */
async function isForOthers(store: Store, worker: string, state: AgentState): Promise<boolean> {
  return state.attempts.failedOn.includes(worker) && canRunElsewhere(store, worker, state);
}

async function canRunElsewhere(
  { engine }: Store,
  worker: string,
  { attempts, needs }: AgentState,
): Promise<boolean> {
  const all = await engine.workers();
  return all.some(
    ({ id, has, ailment }) =>
      id !== worker &&
      !attempts.failedOn.includes(id) &&
      ailment === undefined &&
      missingNeeds(needs, has).length === 0,
  );
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
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

interface Conclusion {
  readonly agent: string;
  readonly worker: string;
  readonly state: AgentState;
  readonly writer: FencedWriter;
  readonly outcome: ProgramOutcome;
}

async function conclude(
  store: Store,
  { agent, worker, state, writer, outcome }: Conclusion,
): Promise<"done" | "again"> {
  switch (outcome.type) {
    case "yielded":
      await writer.append([toJson({ type: "released", worker })]);
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
  readonly sickness: AbortSignal;
  /** The agent has got further. */
  readonly onStep: () => void;
}

function createContext(parts: ContextParts): AgentContext {
  const { store, activation, state, history, writer, sickness, onStep } = parts;
  const { agent, signal } = activation;
  const perform = async <Result extends JsonValue>(seq: number, effect: Effect<Result>): Promise<Result> => {
    await activation.confirm();
    const result = await effect(idempotencyKey(agent, seq), signal);
    // The result is written first, and that brings it to the disk.
    await writer.append([toJson({ type: "returned", call: seq, result })], { relaxed: true });
    onStep();
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
    draining: AbortSignal.any([activation.draining, sickness]),
    confirm: activation.confirm,
    async record(entries, options) {
      const records = entries.map((entry): AgentRecord => ({ type: "entry", entry }));
      const seq = await writer.append(records.map(toJson), options);
      if (records.some(isStep)) onStep();
      return seq;
    },
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
    canRunElsewhere: () => canRunElsewhere(store, activation.worker, state),
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
 * next. After a conflict every further append fails the same way: another process owns the log now.
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

/** The records at the end that the server has lost, if the log ends with one of ours; nothing was written since, then. */
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
