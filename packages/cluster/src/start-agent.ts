import { randomUUID } from "node:crypto";
import { checkArgument, checks } from "@retinue/base/foundation/check-arguments.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import {
  type AgentRecord,
  type AgentState,
  type AgentStatus,
  agentLog,
  type DeadLetter,
  type Ending,
  inboxLog,
  liveTopic,
  type Message,
  readAgentState,
  statusOf,
  toAgentRecord,
  toJson,
} from "./agent-records.ts";
import {
  type ActivationStatus,
  isConflict,
  isStore,
  type JsonValue,
  type LogEntry,
  type Store,
  type Subscription,
} from "./store.ts";

export interface StartRequest {
  readonly agent: string;
  readonly plan: JsonValue;
  readonly needs?: readonly string[] | undefined;
  /** The root of its tree; its own name when it is the root. */
  readonly tree?: string | undefined;
  readonly parent?: string | undefined;
}

const startShape = checks.shape(
  {
    agent: checks.filled,
    plan: checks.given,
    needs: checks.texts,
    tree: checks.filled,
    parent: checks.filled,
  },
  ["agent", "plan"],
);
const messageShape = checks.shape({ body: checks.given, id: checks.filled, from: checks.text }, ["body"]);
const waitShape = checks.shape({ timeoutMs: checks.amount, signal: checks.signal }, ["timeoutMs"]);

/** Starts an agent by writing its plan as the first record of its log. An agent that exists is only woken. */
export async function startAgent(store: Store, request: StartRequest): Promise<"started" | "exists"> {
  checkArgument("The first argument of startAgent()", isStore, store);
  checkArgument("The second argument of startAgent()", startShape, request);
  const { log, engine } = store;
  const { agent, plan, needs = [], tree = agent, parent } = request;
  const record: AgentRecord = {
    type: "planned",
    plan,
    needs,
    tree,
    parent,
  };
  let outcome: "started" | "exists" = "started";
  try {
    await log.append(agentLog(agent), [toJson(record)], 0);
  } catch (error) {
    if (!isConflict(error)) throw error;
    outcome = "exists";
  }
  await engine.wake(agent, "start", { needs });
  return outcome;
}

/** Puts a message into an agent's inbox and wakes it, wherever it was parked; with `expect`, only if the inbox ends there. */
export async function deliver(
  { log, engine, bus }: Store,
  agent: string,
  message: Message,
  expect?: number,
): Promise<void> {
  await log.append(inboxLog(agent), [toJson(message)], expect);
  bus.publish(inboxLog(agent), message.id);
  await engine.wake(agent, `message/${message.id}`);
}

/** Sends a message; the same id arrives once, however often it is sent. */
export async function sendMessage(
  store: Store,
  agent: string,
  message: { readonly body: JsonValue; readonly id?: string; readonly from?: string },
): Promise<void> {
  checkArgument("The first argument of sendMessage()", isStore, store);
  checkArgument("The second argument of sendMessage()", checks.filled, agent);
  checkArgument("The third argument of sendMessage()", messageShape, message);
  const { body, id = randomUUID(), from } = message;
  const { plan, ending, deadLetter } = await readAgent(store, agent);
  if (plan === undefined) throw noSuchAgent(store, agent);
  if (deadLetter !== undefined) await reviveAgent(store, agent);
  if (ending?.status === "stopped")
    throw new RetinueError("agent-stopped", `The agent ${agent} was stopped and takes no more messages.`);
  await deliver(store, agent, { id, body, from });
}

/** Gives a dead letter to the workers again, with all its claims forgotten. */
export async function reviveAgent(
  store: Store,
  agent: string,
  by?: string,
): Promise<"revived" | AgentStatus> {
  checkArgument("The first argument of reviveAgent()", isStore, store);
  checkArgument("The second argument of reviveAgent()", checks.filled, agent);
  while (true) {
    const state = await readAgent(store, agent);
    if (state.plan === undefined) throw noSuchAgent(store, agent);
    if (state.deadLetter === undefined) return statusOf(state);
    const record = toJson({ type: "revived", by });
    try {
      const seq = await store.log.append(agentLog(agent), [record], state.lastSeq);
      await store.engine.wake(agent, `revived/${seq}`, { needs: state.needs });
      store.bus.publish(agentLog(agent), seq);
      return "revived";
    } catch (error) {
      if (!isConflict(error)) throw error;
    }
  }
}

export async function readAgent({ log }: Store, agent: string): Promise<AgentState> {
  return readAgentState(await log.read(agentLog(agent)));
}

/** What is known of an agent from the first and the last record of its log, however long that is; `last` where it is known. */
export async function glanceAtAgent({ log }: Store, agent: string, last?: LogEntry): Promise<AgentGlimpse> {
  const [first] = await log.read(agentLog(agent), 0, 1);
  const [end] = last === undefined ? await log.read(agentLog(agent), -1) : [last];
  // An ending, parking and a dead letter are always the last record, because whatever follows begins with another.
  const state = readAgentState([first, end].filter((entry) => entry !== undefined));
  const { plan, deadLetter, attempts } = state;
  return { plan, status: statusOf(state), deadLetter, lastError: attempts.error };
}

export interface AgentGlimpse {
  readonly plan: JsonValue | undefined;
  readonly status: AgentStatus;
  readonly deadLetter: DeadLetter | undefined;
  /** Why the last worker gave it back, where it was not taken since. */
  readonly lastError: string | undefined;
}

/**
 * The state of an agent: an open log alone does not make it work. `stranded`: it has work and nothing is scheduled for it; the
 * next look of a worker finds that.
 */
export type ReportedStatus = AgentStatus | "queued" | "stranded";

export function reportedStatus(status: AgentStatus, activation: ActivationStatus): ReportedStatus {
  if (status !== "working" || activation.state === "running") return status;
  return activation.state === "queued" ? "queued" : "stranded";
}

/** Receives the events of an agent while it runs. Events may be lost; the log has everything. */
export async function watchAgent(
  store: Store,
  agent: string,
  listener: (event: JsonValue) => void,
): Promise<Subscription> {
  checkArgument("The first argument of watchAgent()", isStore, store);
  checkArgument("The second argument of watchAgent()", checks.filled, agent);
  checkArgument("The third argument of watchAgent()", checks.call, listener);
  return store.bus.subscribe(liveTopic(agent), listener);
}

export interface AgentReport {
  readonly status: ReportedStatus;
  /** What it waits for, as the agent has put it. */
  readonly waitingFor: JsonValue | undefined;
  readonly ending: Ending | undefined;
  /** After how many failed claims no worker takes it any more, and the last error. */
  readonly deadLetter: DeadLetter | undefined;
  /** Where it runs, or what no worker has that it needs. */
  readonly activation: ActivationStatus;
}

export async function inspectAgent(store: Store, agent: string): Promise<AgentReport> {
  checkArgument("The first argument of inspectAgent()", isStore, store);
  checkArgument("The second argument of inspectAgent()", checks.filled, agent);
  const state = await readAgent(store, agent);
  if (state.plan === undefined) throw noSuchAgent(store, agent);
  const { waitingFor, ending, deadLetter } = state;
  const activation = await store.engine.status(agent);
  const status = reportedStatus(statusOf(state), activation);
  return { status, waitingFor, ending, deadLetter, activation };
}

/**
 * Stops an agent and all its descendants. The end is written into the log first, which shuts out the worker that still runs it; then
 * the running process is notified, so that it does not notice only at its next write.
 */
export async function stopAgent(store: Store, agent: string, reason: JsonValue = null): Promise<Ending> {
  checkArgument("The first argument of stopAgent()", isStore, store);
  checkArgument("The second argument of stopAgent()", checks.filled, agent);
  const { log, engine } = store;
  while (true) {
    const state = await readAgent(store, agent);
    if (state.plan === undefined) throw noSuchAgent(store, agent);
    const isOver = state.ending !== undefined;
    const ending: Ending = state.ending ?? { status: "stopped", result: reason };
    try {
      if (!isOver) await log.append(agentLog(agent), [toJson({ type: "ended", ending })], state.lastSeq);
    } catch (error) {
      if (isConflict(error)) continue;
      throw error;
    }
    await engine.cancel(agent);
    store.bus.publish(agentLog(agent), "ended");
    await Promise.all(state.children.map((child) => stopAgent(store, child, reason).catch(ignoreMissing)));
    // The next activation notifies the parent, and does nothing else.
    await engine.wake(agent, `stopped/${state.lastSeq}`);
    return ending;
  }
}

function ignoreMissing(error: unknown): void {
  if (!(error instanceof RetinueError) || error.code !== "no-such-agent") throw error;
}

export interface WaitOptions {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

/** How often the log is read when no event arrives: the bus may lose some. */
const rereadMs = 1_000;

/** The result for callers that wait for a dead letter. */
export function describeDeadLetter({ claims, error }: DeadLetter): string {
  const times = claims === 1 ? "claim" : "claims";
  return `No worker could run this agent: ${claims} ${times} failed, the last with: ${error}`;
}

/** Resolves with the ending, or undefined after the timeout. For who waits, a dead letter has failed; it can be revived. */
export async function waitForEnd(
  store: Store,
  agent: string,
  options: WaitOptions,
): Promise<Ending | undefined> {
  checkArgument("The first argument of waitForEnd()", isStore, store);
  checkArgument("The second argument of waitForEnd()", checks.filled, agent);
  checkArgument("The third argument of waitForEnd()", waitShape, options);
  const { timeoutMs, signal } = options;
  let notify: () => void = () => undefined;
  const subscription = await store.bus.subscribe(agentLog(agent), () => notify());
  const limit = AbortSignal.timeout(timeoutMs);
  const stop = signal === undefined ? limit : AbortSignal.any([limit, signal]);
  try {
    while (true) {
      const received = new Promise<void>((resolve) => {
        notify = resolve;
      });
      const [last] = await store.log.read(agentLog(agent), -1);
      if (last === undefined) throw noSuchAgent(store, agent);
      // Whatever happens after an end begins with a claim, so an ended agent's log ends with its ending.
      const record = toAgentRecord(last.record);
      if (record?.type === "ended") return record.ending;
      if (record?.type === "dead-letter") return { status: "failed", result: describeDeadLetter(record) };
      signal?.throwIfAborted();
      if (stop.aborted) return undefined;
      await Promise.race([received, sleep(rereadMs, stop)]);
    }
  } finally {
    subscription.close();
  }
}

function sleep(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, milliseconds);
    if (signal.aborted) end();
    else signal.addEventListener("abort", end, { once: true });
  });
}

function noSuchAgent({ label }: Store, agent: string): RetinueError {
  return new RetinueError(
    "no-such-agent",
    `There is no agent ${JSON.stringify(agent)} in the store ${label}.`,
  );
}
