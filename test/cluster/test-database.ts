import pg from "pg";
import type { SharedPostgres } from "./shared-postgres.ts";

/** A database of its own for a test file, with the tables of a store. */
export interface TestDatabase {
  readonly url: string;
  /** Deletes all rows, which is faster than another database. */
  empty(): Promise<void>;
}

export async function createTestDatabase({ url }: SharedPostgres, name: string): Promise<TestDatabase> {
  const own = new URL(url);
  own.pathname = `/${name}`;
  const admin = new URL(url);
  admin.pathname = "/postgres";
  await query(admin.href, `CREATE DATABASE ${name} TEMPLATE retinue`);
  return { url: own.href, empty: () => emptyStore(own.href) };
}

/** What is not a row of a test. */
const keptTables = ["layout", "tenant", "tenant_role"];

export async function emptyStore(url: string): Promise<void> {
  const tables = `SELECT schemaname, tablename FROM pg_tables
    WHERE schemaname LIKE 'retinue%' AND tablename NOT IN ('${keptTables.join("', '")}')`;
  await query(
    url,
    `SET session_replication_role = replica;
     DO $$ DECLARE found record; BEGIN
       FOR found IN ${tables} LOOP EXECUTE format('DELETE FROM %I.%I', found.schemaname, found.tablename); END LOOP;
     END $$`,
  );
}

export async function query(url: string, text: string): Promise<readonly Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}
