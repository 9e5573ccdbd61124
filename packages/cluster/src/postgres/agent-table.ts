import { createHash } from "node:crypto";
import type { PoolClient } from "pg";
import { normalizeNeeds } from "../missing-needs.ts";
import type { Database } from "./database.ts";
import type { Place } from "./schema.ts";

/** How many activation ids are remembered per agent, to recognize a repeated wake. */
const rememberedIds = 32;

/** A run of an agent that is to be scheduled. */
export interface ScheduledRun {
  readonly agent: string;
  readonly run: string;
  readonly queue: string;
  readonly priority: number;
}

export interface WakeRequest {
  readonly agent: string;
  readonly activationId: string;
  readonly needs: readonly string[] | undefined;
  readonly priority: number | undefined;
}

/** A run that this worker has begun; the token distinguishes it from an earlier or later owner. */
export interface OwnedRun {
  readonly agent: string;
  readonly token: string;
  /** The wakes that the run has seen. */
  readonly wakes: string;
}

/**
 * The rows that make waking safe. While an agent is active, it has exactly one scheduled run, so two activations
 * never overlap; a wake that comes while it runs raises a counter, and the run may end only if the counter is unchanged,
 * so no wake is lost.
 */
export interface AgentTable {
  /** Counts the wake. Gives the run to schedule if the agent was at rest; nothing if it is active or the wake is known. */
  wake(client: PoolClient, request: WakeRequest): Promise<ScheduledRun | undefined>;
  /** Makes a worker the owner of a run; nothing if the run is over or was cancelled. */
  begin(
    agent: string,
    run: string,
    owner: { readonly worker: string; readonly token: string },
  ): Promise<OwnedRun | undefined>;
  owns(run: OwnedRun): Promise<boolean>;
  /** Lets the agent rest, unless it was woken meanwhile; then gives the run with the wakes of now. */
  end(run: OwnedRun): Promise<OwnedRun | "ended" | "lost">;
  /** Gives the agent back; what comes out is to be scheduled. */
  release(client: PoolClient, run: OwnedRun): Promise<ScheduledRun | undefined>;
  /** Stops a run that has not begun, and marks one that has. */
  cancel(agent: string): Promise<void>;
  /** Agents of a worker whose runs are marked as cancelled. */
  cancelledOn(worker: string): Promise<readonly string[]>;
  /** Takes away what a dead worker owned. */
  disown(client: PoolClient, worker: string): Promise<void>;
  /** Agents that are active although nothing is scheduled for them, as after an error of the scheduler. */
  findStranded(client: PoolClient): Promise<readonly ScheduledRun[]>;
}

export function createAgentTable(database: Database, place: Place): AgentTable {
  return {
    ...createWaking(place),
    ...createOwning(database, place),
    ...createReleasing(database, place),
  };
}

function createWaking({ schema, tenant }: Place): Pick<AgentTable, "wake"> {
  const table = `${schema}.agent`;
  const knownQueues = new Set<string>();
  return {
    async wake(client, { agent, activationId, needs, priority }) {
      const queue = needs === undefined ? null : queueOf(needs);
      if (needs !== undefined && queue !== null && !knownQueues.has(queue)) {
        await client.query(`INSERT INTO ${schema}.queue VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`, [
          tenant,
          queue,
          normalizeNeeds(needs),
        ]);
        knownQueues.add(queue);
      }
      const { rows } = await client.query<WokenRow>({
        name: "agent-wake",
        text: wakeStatement(table),
        values: [tenant, agent, queue, priority ?? null, activationId, anyQueue],
      });
      const [row] = rows;
      return row === undefined || !row.starts
        ? undefined
        : { agent, run: row.run, queue: row.queue, priority: row.priority };
    },
  };
}

/** A run between its begin and its end, by one owner. */
function createOwning(
  database: Database,
  { schema, tenant }: Place,
): Pick<AgentTable, "begin" | "owns" | "end"> {
  const table = `${schema}.agent`;
  const one = async <Row extends object>(
    name: string,
    text: string,
    values: unknown[],
  ): Promise<Row | undefined> => (await database.query<Row>({ name, text, values: [tenant, ...values] }))[0];
  return {
    async begin(agent, run, { worker, token }) {
      const row = await one<{ wakes: string }>(
        "agent-begin",
        `UPDATE ${table} SET owner_worker = $4, owner_token = $5, updated = clock_timestamp()
         WHERE tenant = $1 AND agent = $2 AND run = $3 AND active AND cancelled_run IS DISTINCT FROM run RETURNING wakes`,
        [agent, run, worker, token],
      );
      return row === undefined ? undefined : { agent, token, wakes: row.wakes };
    },
    async owns({ agent, token }) {
      const text = `SELECT true AS owned FROM ${table} WHERE tenant = $1 AND agent = $2 AND owner_token = $3`;
      return (await one("agent-owns", text, [agent, token])) !== undefined;
    },
    async end({ agent, token, wakes }) {
      const owned = `tenant = $1 AND agent = $2 AND owner_token = $3`;
      const ended = await one(
        "agent-end",
        `UPDATE ${table} SET active = false, owner_worker = NULL, owner_token = NULL, updated = clock_timestamp()
         WHERE ${owned} AND (wakes = $4 OR (cancelled_run = run AND wakes = cancelled_wakes)) RETURNING agent`,
        [agent, token, wakes],
      );
      if (ended !== undefined) return "ended";
      const row = await one<{ wakes: string }>(
        "agent-wakes",
        `UPDATE ${table} SET cancelled_run = NULL WHERE ${owned} RETURNING wakes`,
        [agent, token],
      );
      return row === undefined ? "lost" : { agent, token, wakes: row.wakes };
    },
  };
}

/** What takes a run away from its owner. */
function createReleasing(
  database: Database,
  { schema, dbosSchema, tenant }: Place,
): Pick<AgentTable, "release" | "cancel" | "cancelledOn" | "disown" | "findStranded"> {
  const table = `${schema}.agent`;
  return {
    async release(client, { agent, token }) {
      const { rows } = await client.query<ScheduledRun>(
        `UPDATE ${table} SET run = run + 1, run_wake = wakes, owner_worker = NULL, owner_token = NULL, updated = clock_timestamp()
         WHERE tenant = $1 AND agent = $2 AND owner_token = $3 RETURNING agent, run, queue, priority`,
        [tenant, agent, token],
      );
      return rows[0];
    },
    async cancel(agent) {
      const text = `UPDATE ${table} SET cancelled_run = run, cancelled_wakes = wakes, active = owner_token IS NOT NULL, updated = clock_timestamp()
        WHERE tenant = $1 AND agent = $2 AND active`;
      await database.query({ text, values: [tenant, agent] });
    },
    async cancelledOn(worker) {
      const text = `SELECT agent FROM ${table} WHERE tenant = $1 AND owner_worker = $2 AND cancelled_run = run`;
      const rows = await database.query<{ agent: string }>({
        name: "agent-cancelled",
        text,
        values: [tenant, worker],
      });
      return rows.map(({ agent }) => agent);
    },
    async disown(client, worker) {
      const text = `UPDATE ${table} SET owner_worker = NULL, owner_token = NULL WHERE tenant = $1 AND owner_worker = $2`;
      await client.query(text, [tenant, worker]);
    },
    async findStranded(client) {
      const { rows } = await client.query<ScheduledRun>(
        `UPDATE ${table} a SET run = run + 1, run_wake = wakes, owner_worker = NULL, owner_token = NULL, updated = clock_timestamp()
         WHERE a.tenant = $1 AND a.active AND a.updated < clock_timestamp() - interval '10 s' AND NOT EXISTS (
           SELECT 1 FROM ${dbosSchema}.workflow_status w
           WHERE w.workflow_uuid = a.agent || '@' || a.run AND w.status IN ('ENQUEUED', 'PENDING', 'DELAYED'))
         RETURNING agent, run, queue, priority`,
        [tenant],
      );
      return rows;
    },
  };
}

interface WokenRow {
  readonly run: string;
  readonly queue: string;
  readonly priority: number;
  readonly starts: boolean;
}

/** Whether this wake begins a run is read off its number: a run remembers which wake began it. */
function wakeStatement(table: string): string {
  return `
    INSERT INTO ${table} AS a (tenant, agent, queue, priority, wakes, activation_ids, active, run, run_wake)
    VALUES ($1, $2, coalesce($3, $6), coalesce($4::integer, 0), 1, ARRAY[$5::text], true, 1, 1)
    ON CONFLICT (tenant, agent) DO UPDATE SET
      queue = coalesce($3, a.queue),
      priority = coalesce($4::integer, a.priority),
      wakes = a.wakes + 1,
      activation_ids = ($5::text || a.activation_ids)[1:${rememberedIds}],
      run = CASE WHEN a.active THEN a.run ELSE a.run + 1 END,
      run_wake = CASE WHEN a.active THEN a.run_wake ELSE a.wakes + 1 END,
      active = true,
      updated = clock_timestamp()
    WHERE NOT ($5::text = ANY (a.activation_ids))
    RETURNING run, queue, priority, run_wake = wakes AS starts`;
}

/** The queue of agents that need nothing in particular. */
export const anyQueue = "any";

/** Agents with equal needs wait in one queue, which only workers that have all of it serve. */
export function queueOf(needs: readonly string[]): string {
  const text = normalizeNeeds(needs).join(" ");
  if (text === "") return anyQueue;
  return text.length <= 80 ? text : createHash("sha256").update(text).digest("hex");
}
