// @io
import { sleep } from "@retinue/base/foundation/abortable.ts";
import type { WorkerStatus } from "../store.ts";
import type { AgentTable } from "./agent-table.ts";
import { connectSession, type Database, isTransient, type Session } from "./database.ts";
import type { Place } from "./schema.ts";

/** How often a worker reports and looks at its peers. */
const lookMs = 250;
/** A peer whose session is gone is given this long to come back before it counts as dead. */
const confirmMs = 150;
/** A peer that has not reported for this long counts as frozen, although its connection is open. */
export const defaultFrozenMs = 4_500;
/** After the server or the own connection came back, peers get this long to report before they are judged. */
const graceMs = 3_000;
/** How long a worker that starts waits for a server that cannot be reached or cannot write. */
const entryMs = 60_000;

/** What a worker reports about itself when it joins. */
export type MemberDescription = Omit<WorkerStatus, "running" | "seenAt" | "ailment">;

export interface MembershipOptions {
  readonly database: Database;
  readonly place: Place;
  readonly agents: AgentTable;
  readonly self: MemberDescription;
  readonly frozenMs: number;
  readonly running: () => number;
  /** Why this worker takes no agents at present. */
  readonly ailment: () => string | undefined;
  /** Others believed this worker to be dead and have taken its agents. */
  readonly onTakenOver: () => void;
  /** Runs after each report. */
  readonly onReport: () => Promise<void>;
  readonly onError: (error: unknown) => void;
}

export interface Membership {
  /** When this worker last reported, on the clock of `performance.now`. */
  readonly reportedAt: number;
  leave(): Promise<void>;
}

/**
 * Distinguishes live workers from dead ones. A worker holds a session lock, which the server frees immediately when the process is killed,
 * and reports its life in a row, which distinguishes a frozen process from one that works. A worker that finds a dead peer takes its lock,
 * takes its agents from it and returns them to the queue.
 */
export async function joinMembership(options: MembershipOptions): Promise<Membership> {
  const leaving = new AbortController();
  const state: State = { options, session: undefined, judgeFrom: 0, suspects: new Map(), reportedAt: 0 };
  await enterWithRetry(state);
  const ended = keepReporting(state, leaving.signal);
  return {
    get reportedAt() {
      return state.reportedAt;
    },
    async leave() {
      leaving.abort();
      await ended;
      await options.agents.removeWorker(options.self.id);
      await state.session?.client.end().catch(() => undefined);
    },
  };
}

/** A worker that starts while the server cannot write waits for it, as one that runs does. */
async function enterWithRetry(state: State): Promise<void> {
  const end = performance.now() + entryMs;
  while (true) {
    try {
      return await enter(state, 0);
    } catch (error) {
      if (!isTransient(error) || performance.now() > end) throw error;
      await new Promise((resolve) => setTimeout(resolve, lookMs));
    }
  }
}

interface State {
  readonly options: MembershipOptions;
  session: Session | undefined;
  /** On the clock of `performance.now`. */
  judgeFrom: number;
  /** Peers without a session, and since when. */
  readonly suspects: Map<string, number>;
  reportedAt: number;
}

async function keepReporting(state: State, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    let isMember = false;
    try {
      isMember = await report(state);
      await state.options.onReport();
    } catch (error) {
      if (!isTransient(error) && !signal.aborted) state.options.onError(error);
    }
    if (!isMember) {
      await state.session?.client.end().catch(() => undefined);
      await reenter(state, signal);
    }
    const pause = state.suspects.size > 0 ? confirmMs : lookMs;
    await Promise.race([sleep(pause, signal), state.session?.ended]).catch(() => undefined);
  }
}

async function reenter(state: State, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      return await enter(state, graceMs);
    } catch (error) {
      if (!isTransient(error)) state.options.onError(error);
      await sleep(lookMs, signal).catch(() => undefined);
    }
  }
}

/** Opens the session, takes the lock and makes the row; a row that is gone after the first time means it was taken over. */
async function enter(state: State, grace: number): Promise<void> {
  const { database, place, self, onTakenOver } = state.options;
  const { query_timeout: _, lock_timeout: __, ...config } = database.clientConfig;
  const session = await connectSession({ ...config, lock_timeout: 5_000, query_timeout: 6_000 });
  try {
    const { client } = session;
    // A host that vanishes without a word is noticed by the server after about ten seconds.
    await client.query(
      "SET tcp_keepalives_idle = 4; SET tcp_keepalives_interval = 2; SET tcp_keepalives_count = 3",
    );
    const key = `hashtextextended($1 || '/' || $2 || '/' || $3, 0)`;
    await client.query(`SELECT pg_advisory_lock(${key})`, [place.schema, place.tenant, self.id]);
    const { rowCount } = await client.query(
      `INSERT INTO ${place.schema}.worker (tenant, id, lock_key, machine, pid, version, slots, has)
       VALUES ($2, $3, ${key}, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING`,
      [place.schema, place.tenant, self.id, self.machine, self.pid, self.version, self.slots, self.has],
    );
    if (rowCount === 1 && state.session !== undefined) onTakenOver();
  } catch (error) {
    await session.client.end().catch(() => undefined);
    throw error;
  }
  state.session = session;
  state.suspects.clear();
  state.judgeFrom = performance.now() + grace;
}

interface Peer {
  readonly id: string;
  readonly lock_key: string;
  readonly is_locked: boolean;
  readonly is_frozen: boolean;
  readonly is_settled: boolean;
}

/** False when a peer has deleted the row of this worker, which it does after taking over. */
async function report(state: State): Promise<boolean> {
  const { place, self, running, ailment, frozenMs } = state.options;
  const { client } = sessionOf(state);
  const began = performance.now();
  const { rowCount } = await client.query({
    name: "worker-report",
    text: `UPDATE ${place.schema}.worker SET beat = clock_timestamp(), running = $3, ailment = $4
      WHERE tenant = $1 AND id = $2`,
    values: [place.tenant, self.id, running(), ailment()?.slice(0, 1_000) ?? null],
  });
  if (rowCount === 0) return false;
  state.reportedAt = began;
  const { rows } = await client.query<Peer>({
    name: "worker-peers",
    text: `
      SELECT w.id, w.lock_key, w.beat < clock_timestamp() - $3 * interval '1 ms' AS is_frozen,
        pg_postmaster_start_time() < clock_timestamp() - $4 * interval '1 ms' AS is_settled,
        EXISTS (SELECT 1 FROM pg_locks l WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
          AND ((l.classid::bigint << 32) | l.objid::bigint) = w.lock_key
          AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())) AS is_locked
      FROM ${place.schema}.worker w WHERE w.tenant = $1 AND w.id <> $2`,
    values: [place.tenant, self.id, frozenMs, graceMs],
  });
  const now = performance.now();
  const missing = new Set(rows.filter((peer) => !peer.is_locked).map(({ id }) => id));
  for (const id of state.suspects.keys()) if (!missing.has(id)) state.suspects.delete(id);
  for (const peer of rows) {
    if (now < state.judgeFrom || !peer.is_settled) continue;
    if (peer.is_locked && peer.is_frozen) {
      // A frozen process cannot give up its sessions, so they are ended for it, with all locks they hold.
      const text = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1";
      await sessionOf(state).client.query(text, [applicationNameOf(peer.id)]);
      await replacePeer(state, peer);
    }
    if (peer.is_locked) continue;
    const since = state.suspects.get(peer.id) ?? now;
    state.suspects.set(peer.id, since);
    if (now - since >= confirmMs - 20) await replacePeer(state, peer);
  }
  return true;
}

/** Only who holds the dead worker's lock may take its work; the worker itself, should it return, waits for the lock. */
async function replacePeer(state: State, peer: Peer): Promise<void> {
  const { client } = sessionOf(state);
  if (!(await tryLock(client, peer.lock_key))) return;
  try {
    await state.options.agents.removeWorker(peer.id);
    state.suspects.delete(peer.id);
  } finally {
    await client.query("SELECT pg_advisory_unlock($1::bigint)", [peer.lock_key]);
  }
}

/** The sessions of a frozen process end a moment after the request to. */
async function tryLock(client: Session["client"], key: string): Promise<boolean> {
  for (let attempt = 0; attempt < 10; attempt += 1) {
    const { rows } = await client.query<{ got: boolean }>("SELECT pg_try_advisory_lock($1::bigint) AS got", [
      key,
    ]);
    if (rows[0]?.got === true) return true;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return false;
}

function sessionOf({ session }: State): Session {
  if (session === undefined) throw new Error("Connection terminated: the worker has no session");
  return session;
}

/** At most 63 bytes, the server cuts off the rest. */
export function applicationNameOf(worker: string): string {
  return `retinue ${worker}`.slice(0, 63);
}
