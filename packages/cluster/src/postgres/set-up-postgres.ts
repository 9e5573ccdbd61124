import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { readConnectionString } from "./connection-options.ts";
import { type Database, openDatabase } from "./database.ts";
import { migrateScheduler } from "./job-queue.ts";
import type { SetUpOptions } from "./postgres-store-options.ts";
import { createTables, grantWorker, placeOf } from "./schema.ts";

const minServerVersion = 140_000;

/** Makes or updates the tables and gives a role what a worker needs, no more. Safe to run again, and while workers run. */
export async function setUpPostgres(options: SetUpOptions): Promise<void> {
  const place = placeOf(options.schema, options.tenant);
  const database = await openDatabase({
    connection: readConnectionString(options.url),
    ...(options.tls === undefined ? {} : { tls: options.tls }),
    applicationName: "retinue setup",
    maxConnections: 3,
    outageMs: 5_000,
  });
  try {
    const [server] = await database.query<{ version: number }>({
      text: "SELECT current_setting('server_version_num')::integer AS version",
    });
    if ((server?.version ?? 0) < minServerVersion)
      throw new RetinueError(
        "store-outdated",
        `The server of ${database.label} is older than PostgreSQL 14.`,
      );
    await refuseMissingRole(database, options.role);
    await database.transaction(async (client) => {
      await client.query("SELECT pg_advisory_xact_lock(hashtextextended($1, 2))", [place.schema]);
      await client.query(createTables(place));
      await client.query(`INSERT INTO ${place.schema}.tenant (tenant) VALUES ($1) ON CONFLICT DO NOTHING`, [
        place.tenant,
      ]);
    });
    await migrateScheduler(database, place);
    const { role } = options;
    if (role !== undefined)
      await database.transaction(async (client) => {
        for (const statement of grantWorker(place, role)) await client.query(statement);
      });
  } finally {
    await database.close();
  }
}

async function refuseMissingRole(database: Database, role: string | undefined): Promise<void> {
  if (role === undefined) return;
  const text = "SELECT 1 FROM pg_roles WHERE rolname = $1";
  if ((await database.query({ text, values: [role] })).length > 0) return;
  throw new RetinueError(
    "no-such-role",
    `There is no SQL role ${JSON.stringify(role)} in ${database.label}.`,
    {
      advice: `Create it first: CREATE ROLE ${role} LOGIN;`,
    },
  );
}
