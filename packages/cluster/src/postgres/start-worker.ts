// @io

import { sleep } from "@retinue/base/foundation/abortable.ts";
import { isRecord } from "@retinue/base/foundation/json-record.ts";
import { isRetinueError, RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { type RunActivation, type ServeOptions, thrownPauseMs, type Worker } from "../store.ts";
import { type AgentTable, anyQueue } from "./agent-table.ts";
import type { Database } from "./database.ts";
import { type JobRunner, startJobRunner } from "./job-runner.ts";
import { createLiveRuns, type LiveRuns } from "./live-runs.ts";
import { joinMembership, type MemberDescription, type Membership } from "./membership.ts";
import type { PostgresBus } from "./postgres-bus.ts";
import { type RunSchedule, runJob, timerJob, timerQueue, wakeTopic } from "./run-schedule.ts";
import type { Place } from "./schema.ts";

export const cancelTopic = "engine/cancel";

/** How often a worker looks for work that no notice announced. */
const lookMs = 1_000;
/** The same while notices cannot arrive. */
const deafLookMs = 250;
/** How often leftovers are searched: jobs that were claimed and never started, agents without a job. */
const rescueMs = 5_000;
const defaultGraceMs = 20_000;

export interface WorkerOptions {
  readonly database: Database;
  readonly place: Place;
  readonly bus: PostgresBus;
  readonly agents: AgentTable;
  readonly schedule: RunSchedule;
  readonly self: Omit<MemberDescription, "slots" | "has">;
  readonly frozenMs: number;
  readonly run: RunActivation;
  readonly serve: ServeOptions;
}

/** Takes agents from the queues it can serve, runs them, and watches over the other workers. */
export async function startWorker(options: WorkerOptions): Promise<Worker> {
  const { bus, self, serve, agents, schedule, run } = options;
  const onError = serve.onError ?? (() => undefined);
  const draining = new AbortController();
  let membership: Membership | undefined;
  // For half of the time after which others replace it, a worker may be sure that no one has taken over.
  const isCertain = (): boolean => performance.now() - (membership?.reportedAt ?? 0) < options.frozenMs / 2;
  const onRest = (): void => dispatcher.call();
  const live = createLiveRuns({
    worker: self.id,
    agents,
    schedule,
    run,
    draining: draining.signal,
    isCertain,
    onError,
    onRest,
  });
  const runner = await startRunner(options, live);
  try {
    membership = await join(options, { live, runner });
  } catch (error) {
    // What has been started would keep a process alive that is no worker.
    await runner.stop();
    throw error;
  }
  const rescue = createRescue(options, { live, runner });
  const look = async (): Promise<void> => {
    await rescue();
    await lookForWork(options, { live, runner });
  };
  const dispatcher = startDispatcher({
    look,
    intervalMs: () => (bus.isConnected ? lookMs : deafLookMs),
    onError,
  });
  const subscriptions = await Promise.all([
    bus.subscribe(wakeTopic, () => dispatcher.call()),
    bus.subscribe(cancelTopic, (agent) => typeof agent === "string" && live.cancel(agent)),
  ]);
  bus.onGap(() => dispatcher.call());
  dispatcher.call();

  let drained: Promise<void> | undefined;
  const drain = async (graceMs: number): Promise<void> => {
    draining.abort(new RetinueError("draining", "The worker is shutting down."));
    await dispatcher.stop();
    await live.rest(graceMs);
    for (const subscription of subscriptions) subscription.close();
    await membership.leave();
    await runner.stop();
    // What was given back should not wait for the next look of the others.
    bus.publish(wakeTopic, null);
  };
  const drainOnce = (graceMs = defaultGraceMs): Promise<void> => {
    drained ??= drain(graceMs);
    return drained;
  };
  return { id: self.id, drain: drainOnce, [Symbol.asyncDispose]: () => drainOnce() };
}

interface Machinery {
  readonly live: LiveRuns;
  readonly runner: JobRunner;
}

function startRunner(
  { database, place, self, schedule, serve }: WorkerOptions,
  live: LiveRuns,
): Promise<JobRunner> {
  const onError = serve.onError ?? (() => undefined);
  const jobs = new Map<string, (...input: string[]) => Promise<void>>([
    [runJob, (agent = "", run = "") => live.start(agent, run)],
    [timerJob, (text = "") => keepTrying(() => wakeByTimer(schedule, text), onError)],
  ]);
  return startJobRunner({ database, place, id: self.id, jobs, onError });
}

/** A timer that is dropped because the store was away would leave its agent waiting for ever. */
async function keepTrying(work: () => Promise<void>, onError: (error: unknown) => void): Promise<void> {
  while (true) {
    try {
      return await work();
    } catch (error) {
      onError(error);
      // With the store of this process closed, its successor finds the job unfinished.
      if (isRetinueError(error) && error.code === "store-closed") return;
      await new Promise((resolve) => setTimeout(resolve, thrownPauseMs));
    }
  }
}

async function wakeByTimer(schedule: RunSchedule, text: string): Promise<void> {
  const request: unknown = JSON.parse(text);
  if (!isRecord(request)) return;
  const { agent, activationId, needs, priority } = request;
  if (typeof agent !== "string" || typeof activationId !== "string") return;
  await schedule.wake({
    agent,
    activationId,
    needs: Array.isArray(needs) ? needs.filter((need) => typeof need === "string") : undefined,
    priority: typeof priority === "number" ? priority : undefined,
  });
}

function join(options: WorkerOptions, { live, runner }: Machinery): Promise<Membership> {
  const { database, place, agents, self, serve, bus, frozenMs } = options;
  return joinMembership({
    database,
    place,
    agents,
    frozenMs,
    self: { ...self, slots: serve.slots, has: serve.has ?? [] },
    running: () => live.size,
    ailment: serve.ailment ?? (() => undefined),
    async recover(worker) {
      await runner.recover(worker);
      bus.publish(wakeTopic, null);
    },
    onTakenOver: () => live.loseAll(),
    // A cancellation whose notice was lost is still found here.
    async onReport() {
      if (live.size > 0) for (const agent of await agents.cancelledOn(self.id)) live.cancel(agent);
    },
    onError: serve.onError ?? (() => undefined),
  });
}

interface Waiting {
  /** Queues with waiting jobs that this worker can serve, the oldest job first. */
  readonly queues: readonly string[];
  readonly max_agents: number | null;
  readonly has_timers: boolean;
}

async function lookForWork(options: WorkerOptions, { live, runner }: Machinery): Promise<void> {
  const { database, place, serve } = options;
  const [waiting] = await database.query<Waiting>({
    name: "worker-look",
    text: lookStatement(place),
    values: [place.tenant, serve.has ?? []],
  });
  if (waiting === undefined) return;
  if (waiting.has_timers) await runner.poll(timerQueue, 100);
  if (waiting.queues.length === 0 || live.size >= serve.slots || serve.ailment?.() !== undefined) return;
  const start = async (limit: number): Promise<void> => {
    const before = live.size;
    for (const queue of waiting.queues) {
      const free = Math.min(serve.slots - live.size, limit - (live.size - before));
      if (free > 0) await runner.poll(queue, free);
    }
  };
  if (waiting.max_agents === null) return start(serve.slots);
  await startWithinLimit(options, waiting.max_agents, start);
}

function lookStatement({ schema, dbosSchema }: Place): string {
  const waits = `FROM ${dbosSchema}.workflow_status w WHERE w.status = 'ENQUEUED' AND w.queue_name =`;
  return `
    SELECT array(
        SELECT q.name FROM (
          SELECT name FROM ${schema}.queue WHERE tenant = $1 AND needs <@ $2::text[] UNION SELECT '${anyQueue}'
        ) AS q
        CROSS JOIN LATERAL (SELECT priority, created_at ${waits} q.name ORDER BY priority, created_at LIMIT 1) AS first
        ORDER BY first.priority, first.created_at
      ) AS queues,
      (SELECT max_agents FROM ${schema}.tenant WHERE tenant = $1) AS max_agents,
      EXISTS (SELECT 1 ${waits} '${timerQueue}') AS has_timers`;
}

/** One worker at a time counts and starts, so that all together never start more than the limit. */
async function startWithinLimit(
  { database, place }: WorkerOptions,
  most: number,
  start: (limit: number) => Promise<void>,
): Promise<void> {
  const { schema, dbosSchema, tenant } = place;
  await database.transaction(async (client) => {
    await client.query("SELECT pg_advisory_xact_lock(hashtextextended($1, 1))", [`${schema}/${tenant}`]);
    // A job whose agent rests already, or is scheduled anew, holds no place although its own end is not recorded yet.
    const { rows } = await client.query<{ running: string }>(
      `SELECT count(*) AS running FROM ${dbosSchema}.workflow_status w
       JOIN ${schema}.agent a ON a.tenant = $1 AND a.agent = substring(w.workflow_uuid from '^(.*)@[0-9]+$')
         AND a.run::text = substring(w.workflow_uuid from '@([0-9]+)$') AND a.active
       WHERE w.status = 'PENDING' AND w.name = '${runJob}'`,
      [tenant],
    );
    const left = most - Number(rows[0]?.running ?? 0);
    if (left > 0) await start(left);
  });
}

/**
 * Finds what an outage at the wrong moment leaves behind: jobs claimed by this worker that never reached it, jobs of workers
 * that are not registered, and agents without any job.
 */
function createRescue(
  { database, place, schedule, self, bus }: WorkerOptions,
  { live, runner }: Machinery,
): () => Promise<void> {
  const { schema, dbosSchema, tenant } = place;
  let next = performance.now() + rescueMs;
  let suspects = new Set<string>();
  return async () => {
    if (performance.now() < next) return;
    next = performance.now() + rescueMs * (1 + Math.random() / 2);
    const rows = await database.query<{ id: string; queue: string; worker: string; is_known: boolean }>({
      text: `
        SELECT workflow_uuid AS id, queue_name AS queue, executor_id AS worker, EXISTS (
          SELECT 1 FROM ${schema}.worker k WHERE k.tenant = $1 AND k.id = executor_id) AS is_known
        FROM ${dbosSchema}.workflow_status WHERE status = 'PENDING' AND (executor_id = $2
          OR executor_id NOT IN (SELECT id FROM ${schema}.worker WHERE tenant = $1))`,
      values: [tenant, self.id],
    });
    const lost = rows.filter(({ id, worker }) => worker === self.id && !live.has(...splitJobId(id)));
    await runner.resume(lost.filter(({ id }) => suspects.has(id)));
    suspects = new Set(lost.map(({ id }) => id));
    const unknown = new Set(rows.filter(({ is_known }) => !is_known).map(({ worker }) => worker));
    for (const worker of unknown) if (worker !== self.id) await runner.recover(worker);
    await schedule.rescue();
    if (lost.length + unknown.size > 0) bus.publish(wakeTopic, null);
  };
}

function splitJobId(id: string): [agent: string, run: string] {
  const at = id.lastIndexOf("@");
  return [id.slice(0, at), id.slice(at + 1)];
}

interface DispatcherOptions {
  /** Looks for work and starts what there is room for. */
  readonly look: () => Promise<void>;
  /** How long to wait without a call. */
  readonly intervalMs: () => number;
  readonly onError: (error: unknown) => void;
}

/** Looks for work one look at a time: when called, and now and then in case a call was lost. */
interface Dispatcher {
  call(): void;
  stop(): Promise<void>;
}

function startDispatcher({ look, intervalMs, onError }: DispatcherOptions): Dispatcher {
  const stopping = new AbortController();
  let called = Promise.withResolvers<void>();
  const loop = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      called = Promise.withResolvers();
      try {
        await look();
      } catch (error) {
        onError(error);
      }
      const pause = new AbortController();
      const signal = AbortSignal.any([stopping.signal, pause.signal]);
      await Promise.race([called.promise, sleep(intervalMs(), signal).catch(() => undefined)]);
      pause.abort();
    }
  };
  const ended = loop();
  return {
    call: () => called.resolve(),
    async stop() {
      stopping.abort();
      await ended;
    },
  };
}
