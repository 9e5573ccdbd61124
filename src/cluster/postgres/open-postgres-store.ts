import { randomBytes } from "node:crypto";
import { RetinueError } from "../../foundation/retinue-error.ts";
import { version } from "../../foundation/version.ts";
import { thisProcess } from "../../storage/process-identity.ts";
import type { Store } from "../store.ts";
import { readConnectionString, type TlsOptions } from "./connection-options.ts";
import { createPostgresLog } from "./create-postgres-log.ts";
import { type Database, openDatabase } from "./database.ts";
import { applicationNameOf, defaultFrozenMs } from "./membership.ts";
import { createPostgresBus } from "./postgres-bus.ts";
import { createPostgresEngine } from "./postgres-engine.ts";
import { defaultTenant, type Place, placeOf, schemaVersion } from "./schema.ts";

export interface PostgresStoreOptions {
  /** `postgres://user:password@host:port/database?sslmode=verify-full` */
  readonly url: string;
  /** Whose agents these are; tenants do not see each other. */
  readonly tenant?: string;
  /** The schema that holds the tables; several installations can share one database. */
  readonly schema?: string;
  readonly tls?: TlsOptions;
  /** Connections of this process besides one that listens and, in a worker, one that holds its lock. */
  readonly maxConnections?: number;
  /** How long calls wait for a server that cannot be reached before they fail. */
  readonly outageMs?: number;
  /** The same while the store is being opened; `outageMs` when absent. */
  readonly connectMs?: number;
  /** After how long without a report a worker counts as frozen and is replaced; the same for all workers; 4500 when absent. */
  readonly frozenMs?: number;
  /** Names this process among the workers, for people; made unique by the store. */
  readonly workerName?: string;
}

/** A store in PostgreSQL, for any number of processes on any number of machines. The database must have been set up. */
export async function openPostgresStore(options: PostgresStoreOptions): Promise<Store> {
  const place = placeOf(options.schema, options.tenant);
  const { machine, pid } = thisProcess();
  const host = options.workerName ?? machine.split(" ")[0] ?? "";
  const id = `${host.replace(/[^\w.-]/g, "_").slice(0, 30)}-${pid}-${randomBytes(4).toString("hex")}`;
  const database = await openDatabase({
    connection: readConnectionString(options.url),
    ...(options.tls === undefined ? {} : { tls: options.tls }),
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
      await engine.close();
      await database.close();
    })();
    return closed;
  };
  const log = createPostgresLog(database, place);
  return { label: database.label, log, engine, bus, close, [Symbol.asyncDispose]: close };
}

async function checkLayout(database: Database, { schema, dbosSchema, tenant }: Place): Promise<void> {
  const text = "SELECT to_regclass($1) IS NOT NULL AND to_regclass($2) IS NOT NULL AS found";
  const [row] = await database.query<{ found: boolean }>({
    text,
    values: [`${schema}.layout`, `${dbosSchema}.workflow_status`],
  });
  if (row?.found !== true)
    throw new RetinueError(
      "store-not-set-up",
      `The database ${database.label} has no tables for Retinue in the schema ${schema}, for the tenant ${tenant}.`,
      {
        advice: `Set it up once with an account that may create tables: retinue store setup${tenant === defaultTenant ? "" : ` --tenant ${tenant}`} --store URL`,
      },
    );
  const [layout] = await database.query<{ version: number }>({
    text: `SELECT max(version) AS version FROM ${schema}.layout`,
  });
  if ((layout?.version ?? 0) < schemaVersion)
    throw new RetinueError(
      "store-outdated",
      `The tables in ${database.label} have layout ${layout?.version}, and this version needs ${schemaVersion}.`,
      { advice: "Update them with an account that may create tables: retinue store setup --store URL" },
    );
}
