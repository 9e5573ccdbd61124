// @io
import { randomUUID } from "node:crypto";
import { sleep } from "@retinue/base/foundation/abortable.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { RunActivation, ServeOptions, Worker } from "../store.ts";
import type { AgentTable } from "./agent-table.ts";
import type { Database } from "./database.ts";
import { createLiveRuns } from "./live-runs.ts";
import { joinMembership, type MemberDescription, type Membership } from "./membership.ts";
import type { PostgresBus } from "./postgres-bus.ts";
import type { Place } from "./schema.ts";

/** Workers look for agents to claim when something is published here. */
export const wakeTopic = "engine/wake";
export const cancelTopic = "engine/cancel";

/** How often a worker looks for agents that no notice announced. */
const lookMs = 1_000;
/** The same while notices cannot arrive. */
const disconnectedLookMs = 250;
const defaultGraceMs = 20_000;

export interface WorkerOptions {
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
export async function startWorker(options: WorkerOptions): Promise<Worker> {
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
    // For half of the time after which others replace it, a worker may be sure that no one has taken over.
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
