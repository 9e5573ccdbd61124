import type { PoolClient } from "pg";
import type { Database } from "./database.ts";
import { loadDbos } from "./load-packages.ts";
import type { Place } from "./schema.ts";

/** DBOS gives work only to workers of the same version, and by default derives it from the code; ours must not change. */
export const applicationVersion = "1";
export const applicationName = "retinue";
/** Connections come from our pool; the address is only checked for its form, and must not carry a password into logs. */
export const systemDatabaseUrl = "postgresql://retinue@store/retinue";

export interface Job {
  /** Scheduling the same id again does nothing. */
  readonly id: string;
  readonly kind: string;
  readonly queue: string;
  readonly input: readonly string[];
  readonly priority?: number;
  readonly delayMs?: number;
}

/** Puts jobs into queues; needs no worker. */
export interface JobQueue {
  enqueue(client: PoolClient, job: Job): Promise<void>;
  /** Deletes the records of jobs that ended before this time. */
  prune(before: number): Promise<number>;
  close(): Promise<void>;
}

export async function openJobQueue(database: Database, place: Place): Promise<JobQueue> {
  const { DBOSClient } = await loadDbos();
  const client = await DBOSClient.create({
    systemDatabaseUrl,
    systemDatabasePool: database.pool,
    systemDatabaseSchemaName: place.dbosSchema,
    applicationName,
    logger: silentLogger,
  });
  return {
    async enqueue(transaction, { id, kind, queue, input, priority = 0, delayMs = 0 }) {
      const delay = delayMs > 0 ? { delaySeconds: delayMs / 1000 } : {};
      const options = {
        workflowName: kind,
        queueName: queue,
        workflowID: id,
        appVersion: applicationVersion,
        priority,
        ...delay,
      };
      await client.enqueueInTransaction(transaction, options, ...input);
    },
    async prune(before) {
      const text = `SELECT workflow_uuid AS id FROM ${place.dbosSchema}.workflow_status
        WHERE status NOT IN ('ENQUEUED', 'PENDING', 'DELAYED') AND updated_at < $1 LIMIT 1000`;
      let count = 0;
      while (true) {
        const rows = await database.query<{ id: string }>({ text, values: [Math.floor(before)] });
        if (rows.length === 0) return count;
        await client.deleteWorkflows(rows.map(({ id }) => id));
        count += rows.length;
      }
    },
    close: () => client.destroy(),
  };
}

/** Makes or updates the tables of DBOS. */
export async function migrateScheduler(database: Database, place: Place): Promise<void> {
  const { systemDatabase } = await loadDbos();
  // The logger of DBOS is a class; these are the methods it is used for.
  const logger = silentLogger as unknown as Parameters<typeof systemDatabase.ensureSystemDatabase>[1];
  await systemDatabase.ensureSystemDatabase(
    systemDatabaseUrl,
    logger,
    database.pool,
    place.dbosSchema,
    false,
  );
}

export const silentLogger = {
  info: () => undefined,
  debug: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};
