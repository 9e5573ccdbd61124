import type { TlsOptions } from "./connection-options.ts";

// Apart from what uses them: programs without a store compile against these without the types of its client.

export interface PostgresStoreOptions {
  /** `postgres://user:password@host:port/database?sslmode=verify-full` */
  readonly url: string;
  /** Whose agents these are; tenants do not see each other. */
  readonly tenant?: string | undefined;
  /** The schema that holds the tables; several installations can share one database. */
  readonly schema?: string | undefined;
  readonly tls?: TlsOptions | undefined;
  /** Connections of this process besides one that listens and, in a worker, one that holds its lock. */
  readonly maxConnections?: number | undefined;
  /** How long calls wait for a server that cannot be reached before they fail. */
  readonly outageMs?: number | undefined;
  /** The same while the store is being opened; `outageMs` when absent. */
  readonly connectMs?: number | undefined;
  /** After how long without a report a worker counts as frozen and is replaced; the same for all workers; 4500 when absent. */
  readonly frozenMs?: number | undefined;
  /** Names this process among the workers, for people; made unique by the store. */
  readonly workerName?: string | undefined;
}

export interface SetUpOptions extends Pick<PostgresStoreOptions, "url" | "schema" | "tenant" | "tls"> {
  /** An existing SQL role that workers and clients connect as. Without one, only the owner of the tables can use them. */
  readonly role?: string | undefined;
}
