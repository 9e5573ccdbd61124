import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";

/** The layout below. A newer one only adds unless there is no other way, so that workers of the version before can keep running. */
export const schemaVersion = 3;

export const defaultSchema = "retinue";
export const defaultTenant = "default";

/** Where one tenant's data is: its own rows in shared tables. */
export interface Place {
  readonly schema: string;
  readonly tenant: string;
}

export function placeOf(schema: string = defaultSchema, tenant: string = defaultTenant): Place {
  // Both become part of identifiers, so they are limited to what needs no quoting.
  if (!/^[a-z_][a-z0-9_]{0,30}$/.test(schema)) throw invalidWord("schema", schema);
  if (!/^[a-z0-9_]{1,20}$/.test(tenant)) throw invalidWord("tenant", tenant);
  return { schema, tenant };
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

    -- One row per agent. It is in the queue while it is active and has no owner; due says from when on, and orders it there.
    CREATE TABLE IF NOT EXISTS ${schema}.agent (
      tenant text NOT NULL,
      agent text NOT NULL,
      needs text[] NOT NULL DEFAULT '{}',
      priority integer NOT NULL DEFAULT 0,
      wakes bigint NOT NULL DEFAULT 0,
      activation_ids text[] NOT NULL DEFAULT '{}',
      active boolean NOT NULL DEFAULT false,
      due timestamptz NOT NULL DEFAULT clock_timestamp(),
      run bigint NOT NULL DEFAULT 0,
      cancelled_run bigint,
      cancelled_wakes bigint,
      owner_worker text,
      owner_token text,
      updated timestamptz NOT NULL DEFAULT clock_timestamp(),
      PRIMARY KEY (tenant, agent)
    );
    CREATE INDEX IF NOT EXISTS agent_owner ON ${schema}.agent (tenant, owner_worker) WHERE owner_worker IS NOT NULL;
    CREATE INDEX IF NOT EXISTS agent_queue ON ${schema}.agent (tenant, priority, due) WHERE active AND owner_token IS NULL;
    CREATE INDEX IF NOT EXISTS agent_due ON ${schema}.agent (tenant, due) WHERE active AND owner_token IS NULL;

    -- Wakes that are delayed.
    CREATE TABLE IF NOT EXISTS ${schema}.timer (
      tenant text NOT NULL,
      agent text NOT NULL,
      activation_id text NOT NULL,
      needs text[],
      priority integer,
      due timestamptz NOT NULL,
      PRIMARY KEY (tenant, agent, activation_id)
    );
    CREATE INDEX IF NOT EXISTS timer_due ON ${schema}.timer (tenant, due);

    ${workerTables(schema)}

    ${["log", "agent", "timer", "worker", "tenant"].map((table) => protect(schema, table)).join("\n")}

    INSERT INTO ${schema}.layout (version) VALUES (${schemaVersion}) ON CONFLICT DO NOTHING;
  `;
}

function workerTables(schema: string): string {
  return `
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

/**
 * Until layout 2, the package DBOS scheduled agents, with tables in a schema for each tenant. What waited there is in the rows of the
 * agents as well, except for delayed wakes.
 */
export function upgradeAgents(schema: string): string {
  return `
    ALTER TABLE ${schema}.agent ADD COLUMN needs text[] NOT NULL DEFAULT '{}',
      ADD COLUMN due timestamptz NOT NULL DEFAULT clock_timestamp();
    UPDATE ${schema}.agent a SET due = a.updated, owner_worker = NULL, owner_token = NULL,
      needs = coalesce((SELECT q.needs FROM ${schema}.queue q WHERE q.tenant = a.tenant AND q.name = a.queue), '{}');
    ALTER TABLE ${schema}.agent DROP COLUMN queue, DROP COLUMN run_wake;
    DROP TABLE ${schema}.queue;
    DELETE FROM ${schema}.worker;`;
}

/** Takes over the delayed wakes of a tenant from DBOS, whose ids name agent and activation, and removes its schema. */
export function moveTimers({ schema, tenant }: Place): string {
  const scheduler = tenant === defaultTenant ? `${schema}_dbos` : `${schema}_dbos_${tenant}`;
  return `
    DO $$ BEGIN
      IF to_regclass('${scheduler}.workflow_status') IS NOT NULL THEN
        INSERT INTO ${schema}.timer (tenant, agent, activation_id, due)
          SELECT '${tenant}', substring(workflow_uuid from '^(.*)~[^~]*$'), substring(workflow_uuid from '[^~]*$'),
            to_timestamp(coalesce(delay_until_epoch_ms, 0) / 1000.0)
          FROM ${scheduler}.workflow_status
          WHERE name = 'wake-agent' AND status IN ('DELAYED', 'ENQUEUED', 'PENDING') ON CONFLICT DO NOTHING;
      END IF;
    END $$;
    DROP SCHEMA IF EXISTS ${scheduler} CASCADE;`;
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
export function grantWorker({ schema, tenant }: Place, role: string): readonly string[] {
  const who = `"${role.replaceAll('"', '""')}"`;
  return [
    `GRANT USAGE ON SCHEMA ${schema} TO ${who}`,
    `REVOKE ALL ON ALL TABLES IN SCHEMA ${schema} FROM ${who}`,
    `GRANT SELECT ON ${schema}.layout, ${schema}.tenant_role TO ${who}`,
    `GRANT SELECT, INSERT ON ${schema}.log TO ${who}`,
    `GRANT SELECT, INSERT, UPDATE ON ${schema}.agent, ${schema}.tenant TO ${who}`,
    `GRANT SELECT, INSERT, UPDATE, DELETE ON ${schema}.worker, ${schema}.timer TO ${who}`,
    `INSERT INTO ${schema}.tenant_role (role, tenant) VALUES (${quoteText(role)}, '${tenant}') ON CONFLICT DO NOTHING`,
  ];
}

function quoteText(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
