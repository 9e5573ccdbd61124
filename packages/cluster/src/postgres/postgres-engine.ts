import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { missingEverywhere } from "../missing-needs.ts";
import { type ActivationStatus, checkName, type Engine, type WorkerStatus } from "../store.ts";
import { createAgentTable } from "./agent-table.ts";
import type { Database } from "./database.ts";
import type { MemberDescription } from "./membership.ts";
import type { PostgresBus } from "./postgres-bus.ts";
import type { Place } from "./schema.ts";
import { cancelTopic, startWorker, wakeTopic } from "./start-worker.ts";

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
        throw new RetinueError("already-serving", "This process already is a worker of this store.");
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
