// @io
import { sleep } from "@retinue/base/foundation/abortable.ts";
import { checkArgument, checks } from "@retinue/base/foundation/check-arguments.ts";
import { version } from "@retinue/base/foundation/version.ts";
import { activateAgent } from "./activate-agent.ts";
import type { AgentProgram } from "./agent-program.ts";
import { readAgentState, toAgentRecord } from "./agent-records.ts";
import { createQuarantine } from "./quarantine.ts";
import {
  isStore,
  type JsonValue,
  type LogSummary,
  type ServeOptions,
  type Store,
  type Worker,
} from "./store.ts";
import { createWorkerHealth, type WorkerHealthOptions } from "./worker-health.ts";

export interface ServeAgentsOptions extends Omit<ServeOptions, "ailment"> {
  /** Queues this worker serves besides the common one. */
  readonly queues?: readonly string[] | undefined;
  /** The machine's own name, for agents that are pinned to it. */
  readonly machine?: string | undefined;
  /** Recorded with each claim. */
  readonly codeVersion?: string | undefined;
  /**
   * Finds out what is wrong with this machine, at the start and after an error; undefined where nothing is. While there is something,
   * the worker takes no agents.
   */
  readonly probe?: WorkerHealthOptions["probe"] | undefined;
  /** How long an agent waits after its first failure, twice as long after each further one; 1000 when absent. */
  readonly pauseMs?: number | undefined;
}

export const serveShape = checks.shape(
  {
    slots: checks.count,
    has: checks.texts,
    queues: checks.texts,
    machine: checks.filled,
    codeVersion: checks.filled,
    onError: checks.call,
    probe: checks.call,
    pauseMs: checks.anything,
  },
  ["slots"],
);

/** Makes this process a worker that runs agents by a program. */
export async function serveAgents(
  store: Store,
  program: AgentProgram,
  options: ServeAgentsOptions,
): Promise<Worker> {
  checkArgument("The first argument of serveAgents()", isStore, store);
  checkArgument("The second argument of serveAgents()", checks.call, program);
  checkArgument("The third argument of serveAgents()", serveShape, options);
  const { queues = [], machine, has = [], pauseMs, codeVersion = version } = options;
  const probe = options.probe ?? (async () => undefined);
  const pinned = machine === undefined ? [] : [machineNeed(machine)];
  const all = [...has, ...queues.map(queueNeed), ...pinned];
  const onError = options.onError ?? (() => undefined);
  const health = createWorkerHealth({ probe, report: (text) => onError(new Error(text)) });
  await health.check();
  const quarantine = createQuarantine();
  const worker = await store.engine.serve(
    (activation) =>
      activateAgent(store, activation, {
        program,
        version: codeVersion,
        has: all,
        health,
        quarantine,
        pauseMs,
      }),
    { ...options, has: all, ailment: () => health.ailment },
  );
  const stopping = new AbortController();
  const reconciling = keepReconciling(store, onError, stopping.signal);
  const drain = async (graceMs?: number): Promise<void> => {
    stopping.abort();
    await reconciling;
    await worker.drain(graceMs);
    health[Symbol.dispose]();
  };
  return { id: worker.id, drain, [Symbol.asyncDispose]: () => drain() };
}

/** Between the two looks at the start, and between all others. */
const soonMs = 3_000;
const reconcileMs = 30_000;

/** Looks for agents that count as working and that no worker runs. */
async function keepReconciling(
  store: Store,
  onError: (error: unknown) => void,
  signal: AbortSignal,
): Promise<void> {
  const reconciler = createReconciler(store);
  for (let looks = 0; !signal.aborted; looks += 1) {
    try {
      for (const agent of await reconciler.run())
        onError(new Error(`${agent} had work but was not scheduled; it has been scheduled now.`));
    } catch (error) {
      if (!signal.aborted) onError(error);
    }
    const pause = looks === 0 ? soonMs : reconcileMs * (0.75 + Math.random() / 2);
    await sleep(pause, signal).catch(() => undefined);
  }
}

export function queueNeed(queue: string): string {
  return `queue:${queue}`;
}

export function machineNeed(machine: string): string {
  return `machine:${machine}`;
}

/** Compares what the logs say with what the engine knows; remembers what it saw the last time. */
interface Reconciler {
  /** Wakes agents that have work by their log although nothing is scheduled for them; gives their names. */
  run(): Promise<readonly string[]>;
}

/**
 * A wake that was lost, by an error between two writes or a mistake of the engine, would leave an agent for ever that only seems to be
 * working. Whatever has not changed between two looks and is not scheduled is woken: an open log, and a message that came after an agent
 * had come to rest. The same state is woken once.
 */
export function createReconciler({ log, engine }: Pick<Store, "log" | "engine">): Reconciler {
  let seen = new Map<string, string>();
  let known = new Map<string, Rest>();
  /** By the last record, which is read once for each end of a log. */
  const restOf = async ({ name, lastSeq }: LogSummary): Promise<Rest> => {
    const before = known.get(name);
    if (before?.seq === lastSeq) return before;
    const [last] = await log.read(name, -1);
    return { seq: lastSeq, wakes: last === undefined ? "nothing" : whatWakes(last.record) };
  };
  return {
    async run() {
      const inboxes = await log.list(inboxPrefix);
      const mail = new Map(inboxes.map((inbox) => [inbox.name.slice(inboxPrefix.length), inbox]));
      const [now, rests] = [new Map<string, string>(), new Map<string, Rest>()];
      const found: string[] = [];
      for (const summary of await log.list(runPrefix)) {
        const { name, lastSeq, lastAt } = summary;
        const rest = await restOf(summary);
        rests.set(name, rest);
        const agent = name.slice(runPrefix.length);
        const inbox = mail.get(agent);
        const hasMail = inbox !== undefined && inbox.lastAt > lastAt;
        if (rest.wakes === "nothing" || (rest.wakes === "mail" && !hasMail)) continue;
        const state = `${lastSeq}/${inbox?.lastSeq ?? 0}`;
        now.set(agent, state);
        if (seen.get(agent) !== state || (await engine.status(agent)).state !== "idle") continue;
        const { needs } = readAgentState(await log.read(name, 0, 1));
        await engine.wake(agent, `reconciled/${state}`, { needs });
        // A wake that the engine has known before changes nothing.
        if ((await engine.status(agent)).state !== "idle") found.push(agent);
      }
      seen = now;
      known = rests;
      return found;
    },
  };
}

const runPrefix = "run/";
const inboxPrefix = "in/";

/** What makes an agent work whose log ends at this record. */
interface Rest {
  readonly seq: number;
  readonly wakes: "itself" | "mail" | "nothing";
}

function whatWakes(last: JsonValue): Rest["wakes"] {
  const record = toAgentRecord(last);
  switch (record?.type) {
    case "dead-letter":
      return "nothing";
    case "ended":
      return record.ending.status === "stopped" ? "nothing" : "mail";
    case "parked":
      return "mail";
    default:
      return "itself";
  }
}
