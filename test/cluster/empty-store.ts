import pg from "pg";

/** Deletes all rows, which is faster than setting up a database for each test. */
export async function emptyStore(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const kept = ["layout", "tenant_role", "dbos_migrations", "application_versions"];
    const { rows } = await client.query<{ table: string }>(
      `SELECT format('%I.%I', schemaname, tablename) AS table FROM pg_tables
       WHERE schemaname LIKE 'retinue%' AND NOT tablename = ANY ($1)`,
      [kept],
    );
    await client.query(`TRUNCATE ${rows.map(({ table }) => table).join(", ")} CASCADE`);
  } finally {
    await client.end();
  }
}
