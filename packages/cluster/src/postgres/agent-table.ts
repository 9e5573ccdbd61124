import { normalizeNeeds } from "../missing-needs.ts";
import type { Database, Statement } from "./database.ts";
import type { Place } from "./schema.ts";

/** How many activation ids are remembered per agent, to recognize a repeated wake. */
const rememberedIds = 32;
/** How many delayed wakes one look turns into wakes. */
const maxTimers = 100;

export interface WakeRequest {
  readonly agent: string;
  readonly activationId: string;
  readonly needs?: readonly string[] | undefined;
  readonly priority?: number | undefined;
}

/** A run that a worker has claimed; the token distinguishes it from an earlier or later owner. */
export interface OwnedRun {
  readonly agent: string;
  readonly token: string;
  /** The wakes that the run has seen. */
  readonly wakes: string;
}

export interface ClaimRequest {
  readonly worker: string;
  /** Written into the rows, so that what an unanswered claim took can be recognized. */
  readonly token: string;
  readonly has: readonly string[];
  /** How many to take at most. */
  readonly free: number;
}

export interface Claim {
  readonly runs: readonly OwnedRun[];
  /** When the next delay is over, in milliseconds from now; undefined if nothing is delayed. */
  readonly dueMs: number | undefined;
}

/**
 * The rows that schedule agents. An agent that is active and has no owner is in the queue; its owner is the worker that runs it, so two
 * activations never overlap. A wake that comes while it runs raises a counter, and the run may end only if the counter is unchanged, so no
 * wake is lost. Every method is one statement or one transaction: there is no second record that could disagree with the row.
 */
export interface AgentTable {
  wake(request: WakeRequest): Promise<void>;
  wakeLater(request: WakeRequest, delayMs: number): Promise<void>;
  /**
   * Wakes agents whose delay is over, and makes a worker the owner of agents that wait; of none if the worker is not registered, as after
   * it was taken for dead.
   */
  claim(request: ClaimRequest): Promise<Claim>;
  owns(run: OwnedRun): Promise<boolean>;
  /** Lets the agent rest, unless it was woken meanwhile; then gives the run with the wakes of now. */
  end(run: OwnedRun): Promise<OwnedRun | "ended" | "lost">;
  /** Returns the agent to the queue, immediately or after a while. */
  release(run: Pick<OwnedRun, "agent" | "token">, delayMs?: number): Promise<void>;
  /** Stops a run that has not started, and marks one that has. */
  cancel(agent: string): Promise<void>;
  /** What a worker owns by the table. */
  ownedBy(worker: string): Promise<readonly OwnedRow[]>;
  /** Removes a worker that is dead or leaves, and returns its agents to the queue. */
  removeWorker(worker: string): Promise<void>;
}

export interface OwnedRow {
  readonly agent: string;
  readonly token: string;
  readonly is_cancelled: boolean;
}

/** Workers listen on `channel` for agents to claim; the notice goes out with the commit, so they see the row. */
export function createAgentTable(database: Database, place: Place, channel: string): AgentTable {
  return { ...createQueue(database, place, channel), ...createOwnership(database, place, channel) };
}

type Queue = Pick<AgentTable, "wake" | "wakeLater" | "claim">;

/** How agents get into the queue and out of it. */
function createQueue(database: Database, { schema, tenant }: Place, channel: string): Queue {
  const table = `${schema}.agent`;
  const wake = wakeStatement(table);
  // An agent keeps its place in the queue while it runs, so that those of a dead worker come before newer ones.
  const claim = `
    WITH self AS MATERIALIZED (
      SELECT id FROM ${schema}.worker WHERE tenant = $1 AND id = $2 FOR KEY SHARE
    ), next AS (
      SELECT agent FROM ${schema}.agent
      WHERE tenant = $1 AND active AND owner_token IS NULL AND due <= clock_timestamp() AND needs <@ $4::text[]
        AND EXISTS (SELECT 1 FROM self)
      ORDER BY priority, due LIMIT $5 FOR UPDATE SKIP LOCKED
    )
    UPDATE ${schema}.agent a SET run = run + 1, owner_worker = $2, owner_token = $3, updated = clock_timestamp()
    FROM next WHERE a.tenant = $1 AND a.agent = next.agent
    RETURNING a.agent, a.owner_token AS token, a.wakes`;

  const toWake = ({ agent, activationId, needs, priority }: WakeRequest): Statement => ({
    name: "agent-wake",
    text: wake,
    values: [
      tenant,
      channel,
      agent,
      needs === undefined ? null : normalizeNeeds(needs),
      priority ?? null,
      activationId,
    ],
  });
  const toClaim = ({ worker, token, has, free }: ClaimRequest): Statement => ({
    name: "agent-claim",
    text: claim,
    values: [tenant, worker, token, has, free],
  });

  return {
    async wake(request) {
      await database.query(toWake(request));
    },
    async wakeLater({ agent, activationId, needs, priority }, delayMs) {
      const text = `
        WITH added AS (
          INSERT INTO ${schema}.timer (tenant, agent, activation_id, needs, priority, due)
          VALUES ($1, $3, $4, $5, $6, clock_timestamp() + $7 * interval '1 ms') ON CONFLICT DO NOTHING RETURNING true
        ) SELECT pg_notify($2, 'null') FROM added`;
      const values = [tenant, channel, agent, activationId, needs ?? null, priority ?? null, delayMs];
      await database.query({ text, values });
    },
    async claim(request) {
      const [state] = await database.query<QueueState>({
        name: "queue-state",
        text: `
          SELECT (SELECT max_agents FROM ${schema}.tenant WHERE tenant = $1) AS max_agents,
            (extract(epoch FROM least(
              (SELECT min(due) FROM ${schema}.timer WHERE tenant = $1),
              (SELECT min(due) FROM ${table} WHERE tenant = $1 AND active AND owner_token IS NULL AND due > clock_timestamp())
            ) - clock_timestamp()) * 1000)::float8 AS due_ms`,
        values: [tenant],
      });
      const dueMs = state?.due_ms ?? undefined;
      if (dueMs !== undefined && dueMs <= 0) await fireTimers();
      const max = state?.max_agents ?? undefined;
      if (max === undefined) return { runs: await database.query<OwnedRun>(toClaim(request)), dueMs };
      // One worker at a time counts and claims, so that all together never run more than the limit.
      const runs = await database.transaction(async (client) => {
        await client.query("SELECT pg_advisory_xact_lock(hashtextextended($1, 1))", [`${schema}/${tenant}`]);
        const text = `SELECT count(*)::integer AS running FROM ${table} WHERE tenant = $1 AND owner_worker IS NOT NULL`;
        const { rows } = await client.query<{ running: number }>(text, [tenant]);
        const free = Math.min(request.free, max - (rows[0]?.running ?? 0));
        return free > 0 ? (await client.query<OwnedRun>(toClaim({ ...request, free }))).rows : [];
      });
      return { runs, dueMs };
    },
  };

  async function fireTimers(): Promise<void> {
    await database.transaction(async (client) => {
      const { rows } = await client.query<TimerRow>({
        name: "timers-fire",
        text: `
          DELETE FROM ${schema}.timer WHERE (tenant, agent, activation_id) IN (
            SELECT tenant, agent, activation_id FROM ${schema}.timer WHERE tenant = $1 AND due <= clock_timestamp()
            ORDER BY due LIMIT ${maxTimers} FOR UPDATE SKIP LOCKED)
          RETURNING agent, activation_id, needs, priority`,
        values: [tenant],
      });
      // In one order everywhere: two transactions that lock the same agents must not wait for each other.
      for (const row of rows.sort((a, b) => (a.agent < b.agent ? -1 : 1)))
        await client.query(
          toWake({
            agent: row.agent,
            activationId: row.activation_id,
            needs: row.needs ?? undefined,
            priority: row.priority ?? undefined,
          }),
        );
    });
  }
}

/** How a run is kept, ended and given up. */
function createOwnership(
  database: Database,
  { schema, tenant }: Place,
  channel: string,
): Omit<AgentTable, keyof Queue> {
  const table = `${schema}.agent`;
  /** An agent that was cancelled, and not woken since, rests when its owner gives it up. */
  const giveUp = `owner_worker = NULL, owner_token = NULL, updated = clock_timestamp(),
    active = (cancelled_run IS DISTINCT FROM run OR cancelled_wakes IS DISTINCT FROM wakes)`;
  return {
    async owns({ agent, token }) {
      const text = `SELECT true FROM ${table} WHERE tenant = $1 AND agent = $2 AND owner_token = $3`;
      return (await database.query({ name: "agent-owns", text, values: [tenant, agent, token] })).length > 0;
    },
    async end({ agent, token, wakes }) {
      const owned = "tenant = $1 AND agent = $2 AND owner_token = $3";
      const ended = await database.query({
        name: "agent-end",
        text: `UPDATE ${table} SET active = false, owner_worker = NULL, owner_token = NULL, updated = clock_timestamp()
          WHERE ${owned} AND (wakes = $4 OR (cancelled_run = run AND wakes = cancelled_wakes)) RETURNING true`,
        values: [tenant, agent, token, wakes],
      });
      if (ended.length > 0) return "ended";
      const [row] = await database.query<OwnedRun>({
        name: "agent-wakes",
        text: `UPDATE ${table} SET cancelled_run = NULL WHERE ${owned} RETURNING agent, owner_token AS token, wakes`,
        values: [tenant, agent, token],
      });
      return row ?? "lost";
    },
    async release({ agent, token }, delayMs = 0) {
      const text = `
        WITH released AS (
          UPDATE ${table} SET ${giveUp}, due = clock_timestamp() + $5 * interval '1 ms'
          WHERE tenant = $1 AND agent = $3 AND owner_token = $4 RETURNING active
        ) SELECT pg_notify($2, 'null') FROM released WHERE active`;
      await database.query({ name: "agent-release", text, values: [tenant, channel, agent, token, delayMs] });
    },
    async cancel(agent) {
      const text = `UPDATE ${table} SET cancelled_run = run, cancelled_wakes = wakes, active = owner_token IS NOT NULL, updated = clock_timestamp()
        WHERE tenant = $1 AND agent = $2 AND active`;
      await database.query({ text, values: [tenant, agent] });
    },
    ownedBy(worker) {
      const text = `SELECT agent, owner_token AS token, cancelled_run IS NOT DISTINCT FROM run AS is_cancelled
        FROM ${table} WHERE tenant = $1 AND owner_worker = $2`;
      return database.query({ name: "agents-owned", text, values: [tenant, worker] });
    },
    // A claim holds the row of its worker: one that came first is seen by the update, one that comes later finds no row.
    removeWorker: (worker) =>
      database.transaction(async (client) => {
        const values = [tenant, worker];
        await client.query(`DELETE FROM ${schema}.worker WHERE tenant = $1 AND id = $2`, values);
        await client.query(`UPDATE ${table} SET ${giveUp} WHERE tenant = $1 AND owner_worker = $2`, values);
        await client.query("SELECT pg_notify($1, 'null')", [channel]);
      }),
  };
}

interface QueueState {
  readonly max_agents: number | null;
  readonly due_ms: number | null;
}

interface TimerRow {
  readonly agent: string;
  readonly activation_id: string;
  readonly needs: readonly string[] | null;
  readonly priority: number | null;
}

function wakeStatement(table: string): string {
  return `
    WITH woken AS (
      INSERT INTO ${table} AS a (tenant, agent, needs, priority, wakes, activation_ids, active)
      VALUES ($1, $3, coalesce($4::text[], '{}'), coalesce($5::integer, 0), 1, ARRAY[$6::text], true)
      ON CONFLICT (tenant, agent) DO UPDATE SET
        needs = coalesce($4::text[], a.needs),
        priority = coalesce($5::integer, a.priority),
        wakes = a.wakes + 1,
        activation_ids = ($6::text || a.activation_ids)[1:${rememberedIds}],
        due = CASE WHEN a.active THEN a.due ELSE clock_timestamp() END,
        active = true,
        updated = clock_timestamp()
      WHERE NOT ($6::text = ANY (a.activation_ids))
      RETURNING owner_token IS NULL AS waits
    ) SELECT pg_notify($2, 'null') FROM woken WHERE waits`;
}
