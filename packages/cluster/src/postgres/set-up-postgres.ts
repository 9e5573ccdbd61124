import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { PoolClient } from "pg";
import { readConnectionString } from "./connection-options.ts";
import { openDatabase } from "./database.ts";
import type { SetUpOptions } from "./postgres-store-options.ts";
import {
  createTables,
  grantWorker,
  moveTimers,
  type Place,
  placeOf,
  schemaVersion,
  upgradeAgents,
} from "./schema.ts";

const minServerVersion = 140_000;

/**
 * Makes or updates the tables and gives a role what a worker needs, no more. Safe to run again, and while workers run, unless they are of a
 * layout that the update changes.
 */
export async function setUpPostgres(options: SetUpOptions): Promise<void> {
  const place = placeOf(options.schema, options.tenant);
  const { schema, tenant } = place;
  const database = await openDatabase({
    connection: readConnectionString(options.url),
    tls: options.tls,
    applicationName: "retinue setup",
    maxConnections: 3,
    outageMs: 5_000,
  });
  try {
    const [server] = await database.query<{ version: number; has_role: boolean }>({
      text: `SELECT current_setting('server_version_num')::integer AS version,
        EXISTS (SELECT 1 FROM pg_roles WHERE rolname = $1) AS has_role`,
      values: [options.role ?? ""],
    });
    if ((server?.version ?? 0) < minServerVersion)
      throw new RetinueError(
        "store-outdated",
        `The server of ${database.label} is older than PostgreSQL 14.`,
      );
    if (options.role !== undefined && server?.has_role !== true)
      throw new RetinueError(
        "no-such-role",
        `There is no SQL role ${JSON.stringify(options.role)} in ${database.label}.`,
        { advice: `Create it first: CREATE ROLE ${options.role} LOGIN;` },
      );
    await database.transaction(async (client) => {
      await client.query("SELECT pg_advisory_xact_lock(hashtextextended($1, 2))", [schema]);
      const isOld = ((await readLayout(client, schema)) ?? schemaVersion) < schemaVersion;
      if (isOld) {
        await refuseLiveWorkers(client, schema);
        await client.query(upgradeAgents(schema));
      }
      await client.query(createTables(place));
      await client.query(`INSERT INTO ${schema}.tenant (tenant) VALUES ($1) ON CONFLICT DO NOTHING`, [
        tenant,
      ]);
      if (options.role !== undefined) await grant(client, { role: options.role, place });
      if (!isOld) return;
      const tenants = await client.query<{ tenant: string }>(`SELECT tenant FROM ${schema}.tenant`);
      for (const row of tenants.rows) await client.query(moveTimers({ schema, tenant: row.tenant }));
      // Roles that could use the tables before can use the new one.
      const roles = await client.query<{ role: string; tenant: string }>(
        `SELECT role, tenant FROM ${schema}.tenant_role JOIN pg_roles ON rolname = role`,
      );
      for (const row of roles.rows)
        await grant(client, { role: row.role, place: { schema, tenant: row.tenant } });
    });
  } finally {
    await database.close();
  }
}

async function grant(
  client: PoolClient,
  { role, place }: { readonly role: string; readonly place: Place },
): Promise<void> {
  for (const statement of grantWorker(place, role)) await client.query(statement);
}

/** Undefined where there are no tables yet. */
async function readLayout(client: PoolClient, schema: string): Promise<number | undefined> {
  const { rows } = await client.query<{ found: boolean }>("SELECT to_regclass($1) IS NOT NULL AS found", [
    `${schema}.layout`,
  ]);
  if (rows[0]?.found !== true) return undefined;
  const layout = await client.query<{ version: number | null }>(
    `SELECT max(version) AS version FROM ${schema}.layout`,
  );
  return layout.rows[0]?.version ?? undefined;
}

/** Workers of an earlier layout could neither claim nor hand over anything after the update. */
async function refuseLiveWorkers(client: PoolClient, schema: string): Promise<void> {
  const { rows } = await client.query<{ id: string }>(
    `SELECT id FROM ${schema}.worker WHERE beat > clock_timestamp() - interval '15 s' ORDER BY id`,
  );
  if (rows.length === 0) return;
  throw new RetinueError(
    "store-in-use",
    `Workers of an earlier version still run: ${rows.map(({ id }) => id).join(", ")}.`,
    {
      advice:
        "Stop them with SIGTERM so that they hand over their agents, then set up the store and start workers of this version.",
    },
  );
}
