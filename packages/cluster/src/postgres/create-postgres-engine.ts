// @io

import { randomUUID } from "node:crypto";
import { sleep } from "@retinue/base/foundation/abortable.ts";
import { isRetinueError, RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { classifyFailure } from "../classify-failure.ts";
import { missingEverywhere } from "../missing-needs.ts";
import {
  type ActivationOutcome,
  type ActivationStatus,
  checkName,
  type Engine,
  ownershipLost,
  type RunActivation,
  type ServeOptions,
  thrownPauseMs,
  type Worker,
  type WorkerStatus,
} from "../store.ts";
import { type AgentTable, createAgentTable, type OwnedRun } from "./agent-table.ts";
import type { Database } from "./database.ts";
import { joinMembership, type MemberDescription, type Membership } from "./membership.ts";
import type { PostgresBus } from "./postgres-bus.ts";
import type { Place } from "./schema.ts";

export interface PostgresEngineOptions {
  readonly database: Database;
  readonly place: Place;
  readonly bus: PostgresBus;
  readonly self: Omit<MemberDescription, "slots" | "has">;
  readonly frozenMs: number;
}

/** Agents as rows, which workers claim; notices between processes by NOTIFY. */
export function createPostgresEngine(options: PostgresEngineOptions): Engine {
  const { database, place, bus } = options;
  const { schema, tenant } = place;
  const agents = createAgentTable(database, place, bus.channelOf(wakeTopic));
  let isServing = false;

  return {
    async wake(agent, activationId, { delayMs = 0, needs, priority } = {}) {
      checkName("an agent", agent);
      const request = { agent, activationId, needs, priority };
      await (delayMs > 0 ? agents.wakeLater(request, delayMs) : agents.wake(request));
    },
    async cancel(agent) {
      await agents.cancel(agent);
      bus.publish(cancelTopic, agent);
    },
    async serve(run, serve) {
      if (isServing)
        throw new RetinueError("already-serving", "This process is already a worker of this store.");
      isServing = true;
      try {
        const worker = await startWorker({ ...options, agents, run, serve });
        const drain = (graceMs?: number): Promise<void> =>
          worker.drain(graceMs).finally(() => {
            isServing = false;
          });
        return { id: worker.id, drain, [Symbol.asyncDispose]: () => drain() };
      } catch (error) {
        isServing = false;
        throw error;
      }
    },
    async limit(most) {
      const text = `INSERT INTO ${schema}.tenant VALUES ($1, $2) ON CONFLICT (tenant) DO UPDATE SET max_agents = $2`;
      await database.query({ text, values: [tenant, most ?? null] });
      bus.publish(wakeTopic, null);
    },
    status: (agent) => readStatus(database, place, agent),
    workers: () => readWorkers(database, place),
    async prune(before) {
      const text = `DELETE FROM ${schema}.agent
        WHERE tenant = $1 AND NOT active AND updated < to_timestamp($2::float8 / 1000) RETURNING agent`;
      const removed = await database.query({ text, values: [tenant, before] });
      return removed.length;
    },
  };
}

/** A worker that has said nothing for this long runs nothing, although no other has been there to find it dead. */
const silentMs = 15_000;

interface StatusRow {
  readonly active: boolean;
  readonly worker: string | null;
  readonly needs: readonly string[];
}

async function readStatus(database: Database, place: Place, agent: string): Promise<ActivationStatus> {
  const { schema, tenant } = place;
  const text = `
    SELECT a.active, a.needs, k.id AS worker FROM ${schema}.agent a
    LEFT JOIN ${schema}.worker k ON k.tenant = a.tenant AND k.id = a.owner_worker
      AND k.beat > clock_timestamp() - $3 * interval '1 ms'
    WHERE a.tenant = $1 AND a.agent = $2`;
  const [row] = await database.query<StatusRow>({ text, values: [tenant, agent, silentMs] });
  if (row === undefined || !row.active) return { state: "idle" };
  if (row.worker !== null) return { state: "running", worker: row.worker };
  return { state: "queued", missing: missingEverywhere(row.needs, await readWorkers(database, place)) };
}

interface WorkerRow extends Omit<WorkerStatus, "seenAt" | "ailment"> {
  readonly seen: string;
  readonly ailment: string | null;
}

async function readWorkers(database: Database, { schema, tenant }: Place): Promise<readonly WorkerStatus[]> {
  const text = `
    SELECT id, machine, pid, version, slots, running, has, ailment, extract(epoch from beat) * 1000 AS seen
    FROM ${schema}.worker WHERE tenant = $1 ORDER BY started, id`;
  const rows = await database.query<WorkerRow>({ text, values: [tenant] });
  return rows.map(({ seen, ailment, ...worker }) => ({
    ...worker,
    ...(ailment === null ? {} : { ailment }),
    seenAt: Number(seen),
  }));
}

/** Workers look for agents to claim when something is published here. */
const wakeTopic = "engine/wake";
const cancelTopic = "engine/cancel";

/** How often a worker looks for agents that no notice announced. */
const lookMs = 1_000;
/** The same while notices cannot arrive. */
const disconnectedLookMs = 250;
const defaultGraceMs = 20_000;

interface WorkerOptions {
  readonly database: Database;
  readonly place: Place;
  readonly bus: PostgresBus;
  readonly agents: AgentTable;
  readonly self: Omit<MemberDescription, "slots" | "has">;
  readonly frozenMs: number;
  readonly run: RunActivation;
  readonly serve: ServeOptions;
}

/** Claims agents whose needs it has, runs them, and watches over the other workers. */
async function startWorker(options: WorkerOptions): Promise<Worker> {
  const { bus, self, serve, agents, run, frozenMs, database, place } = options;
  const { slots, has = [], ailment = () => undefined, onError = () => undefined } = serve;
  const draining = new AbortController();
  let membership: Membership | undefined;
  let wakeup = Promise.withResolvers<void>();
  const look = (): void => wakeup.resolve();
  const live = createLiveRuns({
    worker: self.id,
    agents,
    run,
    draining: draining.signal,
    // For half of the time after which others replace it, a worker may be sure that it was not replaced.
    isCertain: () => performance.now() - (membership?.reportedAt ?? 0) < frozenMs / 2,
    onError,
    onEnd: look,
  });

  const pendingClaims = new Set<string>();
  /** Starts what waits and there is room for; gives the time until the next look. */
  const claim = async (): Promise<number> => {
    const intervalMs = bus.isConnected ? lookMs : disconnectedLookMs;
    const free = slots - live.size;
    if (free <= 0 || ailment() !== undefined) return intervalMs;
    const token = randomUUID();
    pendingClaims.add(token);
    try {
      const { runs, dueMs = intervalMs } = await agents.claim({ worker: self.id, token, has, free });
      for (const owned of runs) void live.start(owned);
      return Math.max(0, Math.min(dueMs, intervalMs));
    } finally {
      pendingClaims.delete(token);
    }
  };
  const keepClaiming = async (): Promise<void> => {
    while (!draining.signal.aborted) {
      wakeup = Promise.withResolvers();
      let pauseMs = lookMs;
      try {
        pauseMs = await claim();
      } catch (error) {
        onError(error);
      }
      const pause = new AbortController();
      const signal = AbortSignal.any([draining.signal, pause.signal]);
      await Promise.race([wakeup.promise, sleep(pauseMs, signal).catch(() => undefined)]);
      pause.abort();
    }
  };

  const subscriptions = await Promise.all([
    bus.subscribe(wakeTopic, look),
    bus.subscribe(cancelTopic, (agent) => typeof agent === "string" && live.cancel(agent)),
  ]);
  bus.onGap(look);
  try {
    membership = await joinMembership({
      database,
      place,
      agents,
      frozenMs,
      self: { ...self, slots, has },
      running: () => live.size,
      ailment,
      onTakenOver: () => live.abortAll(),
      async onReport() {
        for (const row of await agents.ownedBy(self.id)) {
          // A cancellation whose notice was lost, and agents of a claim whose answer was lost.
          if (row.is_cancelled) live.cancel(row.agent);
          if (!live.has(row) && !pendingClaims.has(row.token)) await agents.release(row);
        }
      },
      onError,
    });
  } catch (error) {
    for (const subscription of subscriptions) subscription.close();
    throw error;
  }
  const claiming = keepClaiming();

  let drained: Promise<void> | undefined;
  const drain = (graceMs = defaultGraceMs): Promise<void> => {
    drained ??= (async () => {
      draining.abort(new RetinueError("draining", "The worker is shutting down."));
      await claiming;
      await live.settle(graceMs);
      for (const subscription of subscriptions) subscription.close();
      await membership.leave();
    })();
    return drained;
  };
  return { id: self.id, drain, [Symbol.asyncDispose]: () => drain() };
}

interface LiveRunsOptions {
  readonly worker: string;
  readonly agents: Pick<AgentTable, "owns" | "end" | "release">;
  readonly run: RunActivation;
  readonly draining: AbortSignal;
  /** True while it cannot have been replaced, because this worker has reported a moment ago. */
  readonly isCertain: () => boolean;
  readonly onError: (error: unknown, agent: string) => void;
  /** A slot is free again. */
  readonly onEnd: () => void;
}

/** The agents that run in this process. */
export interface LiveRuns {
  readonly size: number;
  has(run: Pick<OwnedRun, "agent" | "token">): boolean;
  /** Runs an agent until it rests; never throws. */
  start(run: OwnedRun): Promise<void>;
  cancel(agent: string): void;
  /** Aborts everything, because others have taken over. */
  abortAll(): void;
  /** Resolves when nothing runs; what still does after the time is aborted and given back. */
  settle(graceMs: number): Promise<void>;
}

interface Live {
  readonly agent: string;
  readonly token: string;
  controller: AbortController;
}

export function createLiveRuns(options: LiveRunsOptions): LiveRuns {
  const { onError, onEnd } = options;
  const live = new Set<Live>();
  let onEmpty: (() => void) | undefined;

  return {
    get size() {
      return live.size;
    },
    has: ({ agent, token }) => [...live].some((entry) => entry.agent === agent && entry.token === token),
    async start(run) {
      const { agent, token } = run;
      const entry = { agent, token, controller: new AbortController() };
      live.add(entry);
      try {
        for (let next: OwnedRun | undefined = run; next !== undefined; )
          next = await runOnce(options, entry, next);
      } catch (error) {
        onError(error, agent);
      } finally {
        live.delete(entry);
        if (live.size === 0) onEmpty?.();
        onEnd();
      }
    },
    cancel(agent) {
      const reason = new RetinueError("cancelled", `The agent ${agent} was cancelled.`);
      for (const entry of live) if (entry.agent === agent) entry.controller.abort(reason);
    },
    abortAll() {
      for (const { agent, controller } of live) controller.abort(ownershipLost(agent));
    },
    async settle(graceMs) {
      if (live.size === 0) return;
      const timer = setTimeout(() => {
        const reason = new RetinueError("draining", "The worker shut down before the turn ended.");
        for (const { controller } of live) controller.abort(reason);
      }, graceMs);
      await new Promise<void>((resolve) => {
        onEmpty = resolve;
      });
      clearTimeout(timer);
    },
  };
}

/** Gives the run to continue with if the agent was woken while it ran. */
async function runOnce(options: LiveRunsOptions, live: Live, owned: OwnedRun): Promise<OwnedRun | undefined> {
  const { agents, run, draining, isCertain, onError, worker } = options;
  const { agent } = live;
  // A run that follows a cancelled one is not cancelled itself.
  if (live.controller.signal.aborted) live.controller = new AbortController();
  const { controller } = live;
  const { signal } = controller;
  const confirm = async (): Promise<void> => {
    signal.throwIfAborted();
    if (isCertain() || (await agents.owns(owned))) return;
    controller.abort(ownershipLost(agent));
    throw ownershipLost(agent);
  };
  let outcome: ActivationOutcome;
  try {
    outcome = await run({ agent, worker, signal, draining, confirm });
  } catch (error) {
    const isLost = signal.aborted || classifyFailure(error) === "conflict";
    // The caller that cancelled the agent has handled what follows. Nothing else that is thrown is done. Giving back has no effect on an agent
    // that another worker has.
    if (hasCode(signal.reason, "cancelled")) outcome = "done";
    else outcome = isLost ? "again" : { againAfterMs: thrownPauseMs };
    if (!isLost) onError(error, agent);
  }
  if (hasCode(signal.reason, "draining")) outcome = "again";
  if (outcome !== "done") {
    await agents.release(owned, outcome === "again" ? 0 : outcome.againAfterMs);
    return undefined;
  }
  const next = await agents.end(owned);
  if (next === "ended" || next === "lost") return undefined;
  if (!draining.aborted) return next;
  await agents.release(next);
  return undefined;
}

function hasCode(error: unknown, code: string): boolean {
  return isRetinueError(error) && error.code === code;
}
