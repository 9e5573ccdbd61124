import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";

/** The layout below. A newer one only adds, so that workers of the version before can go on while a deployment rolls. */
export const schemaVersion = 2;

export const defaultSchema = "retinue";
export const defaultTenant = "default";

/** Where one tenant's data is: its own rows in shared tables, and a schema of its own for the scheduler. */
export interface Place {
  readonly schema: string;
  readonly dbosSchema: string;
  readonly tenant: string;
}

export function placeOf(schema: string = defaultSchema, tenant: string = defaultTenant): Place {
  // Both become part of identifiers, so they are limited to what needs no quoting.
  if (!/^[a-z_][a-z0-9_]{0,30}$/.test(schema)) throw invalidWord("schema", schema);
  if (!/^[a-z0-9_]{1,20}$/.test(tenant)) throw invalidWord("tenant", tenant);
  const dbosSchema = tenant === defaultTenant ? `${schema}_dbos` : `${schema}_dbos_${tenant}`;
  return { schema, dbosSchema, tenant };
}

function invalidWord(kind: string, word: string): RetinueError {
  return new RetinueError(
    "invalid-store-name",
    `${JSON.stringify(word.slice(0, 80))} cannot be the name of a ${kind}.`,
    {
      advice: "Use lower-case letters, digits and underscores.",
    },
  );
}

/** Makes what is missing; may be run again at any time, also by several processes at the same time. */
export function createTables({ schema }: Place): string {
  return `
    CREATE SCHEMA IF NOT EXISTS ${schema};

    CREATE TABLE IF NOT EXISTS ${schema}.layout (
      version integer PRIMARY KEY,
      at timestamptz NOT NULL DEFAULT now()
    );

    -- The primary key is the fence: two writers cannot both take the same sequence number. Records are text because jsonb
    -- refuses the NUL character and changes the order of keys. append_id shows a writer whose connection broke whether its
    -- append had happened.
    CREATE TABLE IF NOT EXISTS ${schema}.log (
      tenant text NOT NULL,
      name text COLLATE "C" NOT NULL,
      seq integer NOT NULL,
      at timestamptz NOT NULL DEFAULT clock_timestamp(),
      append_id text NOT NULL,
      record text NOT NULL,
      PRIMARY KEY (tenant, name, seq)
    );

    -- One row per agent. While active, exactly one scheduled workflow, "<agent>@<run>", belongs to it.
    CREATE TABLE IF NOT EXISTS ${schema}.agent (
      tenant text NOT NULL,
      agent text NOT NULL,
      queue text NOT NULL,
      priority integer NOT NULL DEFAULT 0,
      wakes bigint NOT NULL DEFAULT 0,
      activation_ids text[] NOT NULL DEFAULT '{}',
      active boolean NOT NULL DEFAULT false,
      run bigint NOT NULL DEFAULT 0,
      run_wake bigint NOT NULL DEFAULT 0,
      cancelled_run bigint,
      cancelled_wakes bigint,
      owner_worker text,
      owner_token text,
      updated timestamptz NOT NULL DEFAULT clock_timestamp(),
      PRIMARY KEY (tenant, agent)
    );
    CREATE INDEX IF NOT EXISTS agent_active ON ${schema}.agent (tenant, updated) WHERE active;
    CREATE INDEX IF NOT EXISTS agent_owner ON ${schema}.agent (tenant, owner_worker) WHERE owner_worker IS NOT NULL;

    ${workerTables(schema)}

    ${["log", "agent", "queue", "worker", "tenant"].map((table) => protect(schema, table)).join("\n")}

    INSERT INTO ${schema}.layout (version) VALUES (${schemaVersion}) ON CONFLICT DO NOTHING;
  `;
}

function workerTables(schema: string): string {
  return `
    CREATE TABLE IF NOT EXISTS ${schema}.queue (
      tenant text NOT NULL,
      name text NOT NULL,
      needs text[] NOT NULL,
      PRIMARY KEY (tenant, name)
    );

    CREATE TABLE IF NOT EXISTS ${schema}.worker (
      tenant text NOT NULL,
      id text NOT NULL,
      lock_key bigint NOT NULL,
      machine text NOT NULL,
      pid integer NOT NULL,
      version text NOT NULL,
      slots integer NOT NULL,
      running integer NOT NULL DEFAULT 0,
      has text[] NOT NULL,
      started timestamptz NOT NULL DEFAULT clock_timestamp(),
      beat timestamptz NOT NULL DEFAULT clock_timestamp(),
      PRIMARY KEY (tenant, id)
    ) WITH (fillfactor = 50);
    -- Layout 2: why a worker takes nothing.
    ALTER TABLE ${schema}.worker ADD COLUMN IF NOT EXISTS ailment text;

    CREATE TABLE IF NOT EXISTS ${schema}.tenant (
      tenant text PRIMARY KEY,
      max_agents integer
    );

    -- Which SQL role may see which tenant. The owner of the tables sees all.
    CREATE TABLE IF NOT EXISTS ${schema}.tenant_role (
      role text NOT NULL,
      tenant text NOT NULL,
      PRIMARY KEY (role, tenant)
    );
  `;
}

/** Row-level security: a role sees and writes only the rows of the tenants that it was given. */
function protect(schema: string, table: string): string {
  const own = `tenant IN (SELECT r.tenant FROM ${schema}.tenant_role r WHERE r.role = current_user)`;
  return `
    ALTER TABLE ${schema}.${table} ENABLE ROW LEVEL SECURITY;
    DROP POLICY IF EXISTS own_tenant ON ${schema}.${table};
    CREATE POLICY own_tenant ON ${schema}.${table} USING (${own}) WITH CHECK (${own});`;
}

/**
 * What a worker's role may do: append to logs but never change or delete a record, schedule, and report. It owns nothing,
 * so it can alter no table and switch off no protection.
 */
export function grantWorker({ schema, dbosSchema, tenant }: Place, role: string): readonly string[] {
  const who = quoteIdentifier(role);
  return [
    `GRANT USAGE ON SCHEMA ${schema}, ${dbosSchema} TO ${who}`,
    `REVOKE ALL ON ALL TABLES IN SCHEMA ${schema} FROM ${who}`,
    `GRANT SELECT ON ${schema}.layout, ${schema}.tenant_role TO ${who}`,
    `GRANT SELECT, INSERT ON ${schema}.log TO ${who}`,
    `GRANT SELECT, INSERT, UPDATE ON ${schema}.agent, ${schema}.tenant TO ${who}`,
    `GRANT SELECT, INSERT ON ${schema}.queue TO ${who}`,
    `GRANT SELECT, INSERT, UPDATE, DELETE ON ${schema}.worker TO ${who}`,
    `GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${dbosSchema} TO ${who}`,
    `GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA ${dbosSchema} TO ${who}`,
    `GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA ${dbosSchema} TO ${who}`,
    `INSERT INTO ${schema}.tenant_role (role, tenant) VALUES (${quoteText(role)}, '${tenant}') ON CONFLICT DO NOTHING`,
  ];
}

function quoteIdentifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

function quoteText(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
