import { randomBytes, randomUUID } from "node:crypto";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { version } from "@retinue/base/foundation/version.ts";
import { thisProcess } from "@retinue/base/storage/process-identity.ts";
import {
  checkName,
  type JsonValue,
  type Log,
  type LogEntry,
  type LogSummary,
  logConflict,
  type Store,
} from "../store.ts";
import { readConnectionString } from "./connection-options.ts";
import { createPostgresEngine } from "./create-postgres-engine.ts";
import { type Database, openDatabase } from "./database.ts";
import { applicationNameOf, defaultFrozenMs } from "./membership.ts";
import { createPostgresBus } from "./postgres-bus.ts";
import type { PostgresStoreOptions } from "./postgres-store-options.ts";
import { defaultTenant, type Place, placeOf, schemaVersion } from "./schema.ts";

/** A store in PostgreSQL, for any number of processes on any number of machines. The database must have been set up. */
export async function openPostgresStore(options: PostgresStoreOptions): Promise<Store> {
  const place = placeOf(options.schema, options.tenant);
  const { machine, pid } = thisProcess();
  const host = options.workerName ?? machine.split(" ")[0] ?? "";
  const id = `${host.replace(/[^\w.-]/g, "_").slice(0, 30)}-${pid}-${randomBytes(4).toString("hex")}`;
  const database = await openDatabase({
    connection: readConnectionString(options.url),
    tls: options.tls,
    applicationName: applicationNameOf(id),
    maxConnections: options.maxConnections ?? 10,
    outageMs: options.outageMs ?? 60_000,
    connectMs: options.connectMs,
  });
  try {
    await checkLayout(database, place);
  } catch (error) {
    await database.close();
    throw error;
  }
  const bus = createPostgresBus(database, place);
  const self = { id, machine: machine.split(" ")[0] ?? machine, pid, version };
  const engine = createPostgresEngine({
    database,
    place,
    bus,
    self,
    frozenMs: options.frozenMs ?? defaultFrozenMs,
  });
  let closed: Promise<void> | undefined;
  const close = (): Promise<void> => {
    closed ??= (async () => {
      await bus.close();
      await database.close();
    })();
    return closed;
  };
  const log = createPostgresLog(database, place);
  return { label: database.label, log, engine, bus, close, [Symbol.asyncDispose]: close };
}

async function checkLayout(database: Database, { schema, tenant }: Place): Promise<void> {
  const notSetUp = (): RetinueError =>
    new RetinueError(
      "store-not-set-up",
      `The database ${database.label} has no tables for Retinue in the schema ${schema}, for the tenant ${tenant}.`,
      {
        advice: `Set it up once with an account that may create tables: retinue store setup${tenant === defaultTenant ? "" : ` --tenant ${tenant}`} --store URL`,
      },
    );
  const [tables] = await database.query<{ found: boolean }>({
    text: "SELECT to_regclass($1) IS NOT NULL AS found",
    values: [`${schema}.layout`],
  });
  if (tables?.found !== true) throw notSetUp();
  const [layout] = await database.query<LayoutRow>({
    text: `SELECT (SELECT max(version) FROM ${schema}.layout) AS version,
      EXISTS (SELECT 1 FROM ${schema}.tenant WHERE tenant = $1) AS is_visible,
      EXISTS (SELECT 1 FROM ${schema}.tenant_role WHERE tenant = $1) AS has_role`,
    values: [tenant],
  });
  if ((layout?.version ?? 0) < schemaVersion)
    throw new RetinueError(
      "store-outdated",
      `The tables in ${database.label} have layout ${layout?.version}, and this version needs ${schemaVersion}.`,
      { advice: "Update them with an account that may create tables: retinue store setup --store URL" },
    );
  if (layout?.is_visible === true) return;
  if (layout?.has_role !== true) throw notSetUp();
  throw new RetinueError(
    "store-forbidden",
    `The account of ${database.label} may not use the tenant ${tenant}.`,
    {
      advice: `Have the owner of the tables grant it the rights that a worker needs: retinue store setup --tenant ${tenant} --role ROLE --store URL`,
    },
  );
}

interface LayoutRow {
  readonly version: number | null;
  /** Row-level security shows a role its own tenants only. */
  readonly is_visible: boolean;
  readonly has_role: boolean;
}

/** Logs as rows of one table. */
export function createPostgresLog(database: Database, place: Place): Log {
  return { ...createReading(database, place), append: createAppend(database, place) };
}

function createAppend(database: Database, { schema, tenant }: Place): Log["append"] {
  const table = `${schema}.log`;
  const lastSeq = `(SELECT coalesce(max(seq), 0) FROM ${table} WHERE tenant = $1 AND name = $2)`;
  const statements = appendStatements(table, lastSeq);

  /** After a broken connection it is not known whether the append had happened, except by its id. */
  const findAppend = async (name: string, id: string): Promise<number | undefined> => {
    const text = `SELECT max(seq) AS seq FROM ${table} WHERE tenant = $1 AND name = $2 AND append_id = $3`;
    const [row] = await database.query<{ seq: number | null }>({ text, values: [tenant, name, id] });
    return row?.seq ?? undefined;
  };

  const insert = async (
    name: string,
    id: string,
    { texts, expect, relaxed = false }: Insertion,
  ): Promise<number | undefined> => {
    try {
      const values: unknown[] = [tenant, name, id, texts];
      if (expect !== undefined) values.push(expect);
      const kind = expect === undefined ? "following" : "expected";
      const rows = await database.query<{ seq: number }>({ ...statements[kind](relaxed), values });
      if (rows.length > 0) return Math.max(...rows.map(({ seq }) => seq));
    } catch (error) {
      if (!isUniqueViolation(error)) throw error;
    }
    return findAppend(name, id);
  };

  return async (name, records, expect, { relaxed } = {}) => {
    checkName("a log", name);
    if (records.length === 0) return checkLast(database, { lastSeq, values: [tenant, name], name, expect });
    const id = randomUUID();
    const texts = records.map((record) => JSON.stringify(record));
    while (true) {
      const seq = await insert(name, id, { texts, expect, relaxed });
      if (seq !== undefined) return seq;
      if (expect !== undefined) throw logConflict(name, expect);
      // Another writer took the number; the next attempt takes the one after it.
    }
  };
}

function createReading(database: Database, { schema, tenant }: Place): Pick<Log, "read" | "list" | "remove"> {
  const table = `${schema}.log`;
  return {
    async read(name, from = 0, limit) {
      const rows = await database.query<Row>(readStatement(table, [tenant, name], { from, limit }));
      return (from < 0 ? [...rows].reverse() : rows).slice(0, limit).map(toEntry);
    },
    async list(prefix, { last = false } = {}) {
      const rows = await database.query<Row & { readonly name: string }>({
        text: listStatement(table, last ? "record" : "NULL"),
        values: [tenant, prefix],
      });
      return rows.map((row): LogSummary => {
        const { name, seq, at } = row;
        return { name, lastSeq: seq, lastAt: Number(at), ...(last ? { last: toEntry(row) } : {}) };
      });
    },
    async remove(name, upTo) {
      const limit = upTo === undefined ? "" : " AND seq <= $3";
      const values = upTo === undefined ? [tenant, name] : [tenant, name, upTo];
      await database.query({ text: `DELETE FROM ${table} WHERE tenant = $1 AND name = $2${limit}`, values });
    },
  };
}

/** From the end where `from` is negative. */
function readStatement(
  table: string,
  key: readonly [tenant: string, name: string],
  { from, limit }: { readonly from: number; readonly limit: number | undefined },
) {
  const columns = "seq, extract(epoch from at) * 1000 AS at, record";
  const rows = `SELECT ${columns} FROM ${table} WHERE tenant = $1 AND name = $2`;
  return from < 0
    ? { name: "log-tail", text: `${rows} ORDER BY seq DESC LIMIT $3`, values: [...key, -from] }
    : {
        name: "log-read",
        text: `${rows} AND seq > $3 ORDER BY seq LIMIT $4`,
        values: [...key, from, limit ?? null],
      };
}

/** From name to name by the index, without reading the records between. */
function listStatement(table: string, record: "record" | "NULL"): string {
  return `
    WITH RECURSIVE names AS (
      (SELECT name FROM ${table} WHERE tenant = $1 AND name >= $2 ORDER BY name LIMIT 1)
      UNION ALL
      SELECT (SELECT name FROM ${table} WHERE tenant = $1 AND name > names.name ORDER BY name LIMIT 1)
      FROM names WHERE starts_with(names.name, $2)
    )
    SELECT names.name, last.seq, extract(epoch from last.at) * 1000 AS at, last.record FROM names
    CROSS JOIN LATERAL (
      SELECT seq, at, ${record} AS record FROM ${table} l WHERE l.tenant = $1 AND l.name = names.name ORDER BY seq DESC LIMIT 1
    ) AS last
    WHERE starts_with(names.name, $2)`;
}

interface Insertion {
  readonly texts: readonly string[];
  readonly expect: number | undefined;
  readonly relaxed: boolean | undefined;
}

/** Each kind of append is one statement, and so one round trip, with its own commit. */
function appendStatements(table: string, lastSeq: string) {
  // The setting ends with the statement. It is taken at the commit, which then does not wait for the disk.
  const relax = "WITH relax AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true) AS value)";
  const statement = (name: string, first: string) => (relaxed: boolean) => ({
    name: relaxed ? `${name}-relaxed` : name,
    text: `${relaxed ? relax : ""}
      INSERT INTO ${table} (tenant, name, seq, append_id, record)
      SELECT $1, $2, first.seq + r.place, $3, r.record
      FROM unnest($4::text[]) WITH ORDINALITY AS r(record, place), (${first}) AS first
      ${relaxed ? "WHERE (SELECT value FROM relax) = 'off'" : ""}
      RETURNING seq`,
  });
  return {
    following: statement("log-append", `SELECT ${lastSeq} AS seq`),
    // The given number must also be the last one: without this check, a number beyond the end would leave a gap.
    expected: statement("log-append-expect", `SELECT $5::integer AS seq WHERE ${lastSeq} = $5::integer`),
  };
}

interface Row {
  readonly seq: number;
  /** The client gives numerics as text. */
  readonly at: string;
  readonly record: string;
}

function toEntry({ seq, at, record }: Row): LogEntry {
  // It was written by JSON.stringify.
  return { seq, at: Number(at), record: JSON.parse(record) as JsonValue };
}

interface LastCheck {
  readonly lastSeq: string;
  readonly values: unknown[];
  readonly name: string;
  readonly expect: number | undefined;
}

/** Nothing to append is still a question whether the log ends where the caller thinks. */
async function checkLast(database: Database, { lastSeq, values, name, expect }: LastCheck): Promise<number> {
  const [row] = await database.query<{ seq: number }>({ text: `SELECT ${lastSeq} AS seq`, values });
  const last = row?.seq ?? 0;
  if (expect !== undefined && expect !== last) throw logConflict(name, expect);
  return last;
}

function isUniqueViolation(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "23505";
}
