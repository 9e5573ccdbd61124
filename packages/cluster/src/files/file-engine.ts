import { isRecord } from "@retinue/base/foundation/json-record.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { missingNeeds, normalizeNeeds } from "../missing-needs.ts";
import {
  type ActivationOutcome,
  type ActivationStatus,
  checkName,
  type Engine,
  type JsonValue,
  type Log,
  type RunActivation,
  type ServeOptions,
  thrownPauseMs,
  type WakeOptions,
  type Worker,
} from "../store.ts";

/** How often the worker looks for agents whose pause is over. */
const lookMs = 250;
/** How many activation ids are remembered per agent, to recognize a repeated wake. */
const rememberedIds = 32;

interface Agent {
  readonly name: string;
  needs: readonly string[];
  priority: number;
  /** Wakes so far, and how many of them the last activation had seen when it began. */
  wakes: number;
  seen: number;
  ids: readonly string[];
  running: AbortController | undefined;
  /** Given back to wait for a while; a process that starts later need not know. */
  notBefore: number;
  idleSince: number;
}

export interface FileEngineOptions {
  readonly log: Log;
  readonly now: () => number;
  readonly identity: { readonly machine: string; readonly pid: number; readonly version: string };
}

/** Runs agents in this process. Wakes are written down, so that they are not lost when the process ends. */
export async function createFileEngine({ log, now, identity }: FileEngineOptions): Promise<FileEngine> {
  const engine: EngineState = {
    log,
    now,
    identity,
    agents: await recoverAgents(log, now()),
    timers: new Set(),
    server: undefined,
    limit: Number.POSITIVE_INFINITY,
  };
  const { agents } = engine;
  for (const { agent, id, at } of await readTimers(log))
    wakeLater(engine, { agent, id, options: {}, delayMs: Math.max(0, at - now()) });
  return {
    ...createReports(engine),
    async wake(name, id, options = {}) {
      checkName("an agent", name);
      const { delayMs = 0 } = options;
      if (delayMs <= 0) return wakeNow(engine, agentOf(agents, name, now()), { id, options });
      await record(log, { timer: name, id, at: now() + delayMs });
      wakeLater(engine, { agent: name, id, options, delayMs });
    },
    async cancel(name) {
      const agent = agents.get(name);
      if (agent === undefined) return;
      agent.seen = agent.wakes;
      agent.running?.abort(new RetinueError("cancelled", `The agent ${name} was cancelled.`));
      if (agent.running === undefined) await record(log, { idle: name });
    },
    serve: async (run, options) => startServer(engine, run, options),
    async limit(most) {
      engine.limit = most ?? Number.POSITIVE_INFINITY;
      dispatch(engine);
    },
    async close() {
      for (const timer of engine.timers) clearTimeout(timer);
      if (engine.server !== undefined)
        await drainServer(engine.server, { graceMs: 0, running: () => runningIn(engine) });
      engine.server = undefined;
    },
  };
}

interface EngineState extends FileEngineOptions {
  readonly agents: Map<string, Agent>;
  readonly timers: Set<NodeJS.Timeout>;
  server: Server | undefined;
  /** How many agents may run at the same time. */
  limit: number;
}

function runningIn({ agents }: EngineState): Agent[] {
  return [...agents.values()].filter((agent) => agent.running !== undefined);
}

function isQueued(agent: Agent): boolean {
  return agent.wakes > agent.seen && agent.running === undefined;
}

function dispatch(engine: EngineState): void {
  const { server, agents, limit } = engine;
  if (server === undefined || server.draining.signal.aborted) return;
  const { options } = server;
  if (options.ailment?.() !== undefined) return;
  const ready = [...agents.values()]
    .filter((agent) => isQueued(agent) && missingNeeds(agent.needs, options.has ?? []).length === 0)
    .filter(({ notBefore }) => notBefore <= engine.now())
    .sort((a, b) => a.priority - b.priority);
  const free = Math.min(options.slots, limit) - runningIn(engine).length;
  for (const agent of ready.slice(0, Math.max(0, free))) void runAgent(engine, server, agent);
}

async function runAgent(
  engine: EngineState,
  { run, options, draining }: Server,
  agent: Agent,
): Promise<void> {
  const controller = new AbortController();
  agent.running = controller;
  agent.seen = agent.wakes;
  let outcome: ActivationOutcome = "done";
  try {
    const { signal } = controller;
    const confirm = async (): Promise<void> => signal.throwIfAborted();
    const worker = workerId(engine.identity);
    outcome = await run({ agent: agent.name, worker, signal, draining: draining.signal, confirm });
  } catch (error) {
    // The caller that cancelled it has handled what follows. Nothing else that is thrown is done.
    if (!controller.signal.aborted) {
      outcome = { againAfterMs: thrownPauseMs };
      options.onError?.(error, agent.name);
    }
  }
  if (outcome !== "done") agent.wakes += 1;
  if (typeof outcome === "object") agent.notBefore = engine.now() + outcome.againAfterMs;
  agent.running = undefined;
  agent.idleSince = engine.now();
  // Where that cannot be written, the agent runs once more after a restart and finds nothing to do.
  await record(engine.log, isQueued(agent) ? { queued: agent.name } : { idle: agent.name }).catch((error) =>
    options.onError?.(error, agent.name),
  );
  engine.server?.onIdle?.();
  dispatch(engine);
}

async function wakeNow(
  engine: EngineState,
  agent: Agent,
  { id, options: { needs, priority } }: { readonly id: string; readonly options: WakeOptions },
): Promise<void> {
  if (agent.ids.includes(id)) return;
  agent.ids = [id, ...agent.ids].slice(0, rememberedIds);
  if (needs !== undefined) agent.needs = normalizeNeeds(needs);
  agent.priority = priority ?? agent.priority;
  agent.wakes += 1;
  await record(engine.log, { wake: agent.name, id, needs: agent.needs, priority: agent.priority });
  dispatch(engine);
}

interface LaterWake {
  readonly agent: string;
  readonly id: string;
  readonly options: WakeOptions;
  readonly delayMs: number;
}

function wakeLater(engine: EngineState, { agent, id, options, delayMs }: LaterWake): void {
  const { timers, agents, now } = engine;
  const timer = setTimeout(() => {
    timers.delete(timer);
    void wakeNow(engine, agentOf(agents, agent, now()), { id, options }).catch((error) =>
      engine.server?.options.onError?.(error, agent),
    );
  }, delayMs);
  timers.add(timer.unref());
}

function startServer(engine: EngineState, run: Server["run"], options: Server["options"]): Worker {
  if (engine.server !== undefined)
    throw new RetinueError("already-serving", "This process is already a worker of this store.");
  // Nothing else may keep the process alive while there is nothing to run; and what had to wait is looked for.
  const alive = setInterval(() => dispatch(engine), lookMs);
  const own: Server = { run, options, draining: new AbortController(), alive, onIdle: undefined };
  engine.server = own;
  dispatch(engine);
  const drain = (graceMs?: number): Promise<void> =>
    drainServer(own, { graceMs: graceMs ?? 10_000, running: () => runningIn(engine) }).then(() => {
      if (engine.server === own) engine.server = undefined;
    });
  return { id: workerId(engine.identity), drain, [Symbol.asyncDispose]: drain };
}

function createReports(engine: EngineState): Pick<Engine, "status" | "workers" | "prune"> {
  const { agents, identity, now, log } = engine;
  return {
    async status(name): Promise<ActivationStatus> {
      const agent = agents.get(name);
      if (agent?.running !== undefined) return { state: "running", worker: workerId(identity) };
      if (agent === undefined || !isQueued(agent)) return { state: "idle" };
      return { state: "queued", missing: missingNeeds(agent.needs, engine.server?.options.has ?? []) };
    },
    async workers() {
      if (engine.server === undefined) return [];
      const { slots, has = [], ailment } = engine.server.options;
      const running = runningIn(engine).length;
      const own = ailment?.();
      const about = own === undefined ? {} : { ailment: own };
      return [{ id: workerId(identity), ...identity, slots, running, has, ...about, seenAt: now() }];
    },
    async prune(before) {
      const idle = [...agents.values()].filter((agent) => !isQueued(agent) && agent.running === undefined);
      const old = idle.filter(({ idleSince }) => idleSince < before);
      for (const { name } of old) agents.delete(name);
      await compact(log, agents);
      return old.length;
    },
  };
}

export interface FileEngine extends Engine {
  close(): Promise<void>;
}

interface Server {
  readonly run: RunActivation;
  readonly options: ServeOptions;
  readonly draining: AbortController;
  /** Keeps the process alive until the worker has shut down. */
  readonly alive: NodeJS.Timeout;
  onIdle: (() => void) | undefined;
}

async function drainServer(
  server: Server,
  { graceMs, running }: { readonly graceMs: number; readonly running: () => readonly Agent[] },
): Promise<void> {
  server.draining.abort(new RetinueError("draining", "The worker is shutting down."));
  const timer = setTimeout(() => {
    for (const agent of running()) {
      // It runs again when this store is served the next time.
      agent.wakes += 1;
      agent.running?.abort(new RetinueError("draining", "The worker shut down before the turn ended."));
    }
  }, graceMs);
  await new Promise<void>((resolve) => {
    server.onIdle = () => running().length === 0 && resolve();
    server.onIdle();
  });
  clearTimeout(timer);
  clearInterval(server.alive);
}

function workerId({ machine, pid }: FileEngineOptions["identity"]): string {
  return `${machine}-${pid}`;
}

function agentOf(agents: Map<string, Agent>, name: string, now: number): Agent {
  const known = agents.get(name);
  if (known !== undefined) return known;
  const fresh = {
    name,
    needs: [],
    priority: 0,
    wakes: 0,
    seen: 0,
    ids: [],
    running: undefined,
    notBefore: 0,
    idleSince: now,
  };
  agents.set(name, fresh);
  return fresh;
}

const engineLog = "engine";

async function record(log: Log, what: JsonValue): Promise<void> {
  await log.append(engineLog, [what]);
}

/** What was woken and had not come to rest when the last process ended runs again. */
async function recoverAgents(log: Log, now: number): Promise<Map<string, Agent>> {
  const agents = new Map<string, Agent>();
  for (const { record: entry } of await log.read(engineLog)) {
    if (!isRecord(entry)) continue;
    const { wake, id, needs, priority, idle } = entry;
    if (typeof wake === "string" && typeof id === "string") {
      const agent = agentOf(agents, wake, now);
      agent.ids = [id, ...agent.ids].slice(0, rememberedIds);
      agent.needs = Array.isArray(needs) ? needs.filter((need) => typeof need === "string") : [];
      agent.priority = typeof priority === "number" ? priority : 0;
      agent.wakes += 1;
    }
    const rested = typeof idle === "string" ? agents.get(idle) : undefined;
    if (rested !== undefined) rested.seen = rested.wakes;
  }
  await compact(log, agents);
  return agents;
}

interface Timer {
  readonly agent: string;
  readonly id: string;
  readonly at: number;
}

async function readTimers(log: Log): Promise<Timer[]> {
  const timers = new Map<string, Timer>();
  for (const { record: entry } of await log.read(engineLog)) {
    if (!isRecord(entry)) continue;
    const { timer, wake, id, at } = entry;
    if (typeof timer === "string" && typeof id === "string" && typeof at === "number")
      timers.set(`${timer} ${id}`, { agent: timer, id, at });
    if (typeof wake === "string" && typeof id === "string") timers.delete(`${wake} ${id}`);
  }
  return [...timers.values()];
}

/** Replaces the history of wakes by what is known of each agent now. */
async function compact(log: Log, agents: ReadonlyMap<string, Agent>): Promise<void> {
  const timers = await readTimers(log);
  const [last] = await log.read(engineLog, -1);
  const state = [...agents.values()].flatMap((agent): JsonValue[] => {
    const { name, needs, priority } = agent;
    const wakes = [...agent.ids].reverse().map((id) => ({ wake: name, id, needs, priority }));
    return agent.wakes > agent.seen || agent.running !== undefined ? wakes : [...wakes, { idle: name }];
  });
  const waiting = timers.map(({ agent, id, at }) => ({ timer: agent, id, at }));
  await log.append(engineLog, [...state, ...waiting]);
  if (last !== undefined) await log.remove(engineLog, last.seq);
}
