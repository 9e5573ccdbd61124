// @io
import { readFileSync } from "node:fs";
import { sleep } from "@retinue/base/foundation/abortable.ts";
import { fileError } from "@retinue/base/foundation/file-error.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { ClientBase, ClientConfig, Pool, PoolClient, QueryResultRow } from "pg";
import { isPassingState } from "../classify-failure.ts";
import { type ConnectionOptions, describeConnection, type TlsOptions } from "./connection-options.ts";

export interface DatabaseOptions {
  readonly connection: ConnectionOptions;
  readonly tls?: TlsOptions;
  /** What the server shows of these sessions; all sessions of one process have the same, so that a peer can end them. */
  readonly applicationName: string;
  readonly maxConnections: number;
  /** How long a query is tried again while the server cannot be reached. */
  readonly outageMs: number;
  /** The same until the first one has succeeded: an address that is wrong should be noticed sooner. */
  readonly connectMs?: number | undefined;
}

/** Connections to one database. Queries outlast a restart or a full disk of the server: they are tried again until it is back. */
export interface Database {
  readonly label: string;
  readonly pool: Pool;
  /** A session of its own, for locks and notifications. */
  readonly clientConfig: ClientConfig;
  /** For statements that may run twice: reads, and writes that recognize their own repetition. */
  query<Row extends QueryResultRow>(statement: Statement): Promise<readonly Row[]>;
  /** The work may run twice when the connection breaks, so it must recognize what it has already done. */
  transaction<Result>(work: (client: PoolClient) => Promise<Result>): Promise<Result>;
  close(): Promise<void>;
}

export interface Statement {
  /** A statement with a name is prepared once per connection. */
  readonly name?: string;
  readonly text: string;
  readonly values?: unknown[];
}

/** The PostgreSQL client, which is installed only where such a store is used. */
async function loadPg(): Promise<typeof import("pg")["default"]> {
  try {
    return (await import("pg")).default;
  } catch (cause) {
    throw new RetinueError(
      "package-missing",
      "A PostgreSQL store needs the package pg, which could not be loaded.",
      { advice: "Run: npm install pg", cause },
    );
  }
}

export async function openDatabase(options: DatabaseOptions): Promise<Database> {
  const pg = await loadPg();
  const clientConfig = toClientConfig(options);
  const pool = new pg.Pool({ ...clientConfig, max: options.maxConnections, idleTimeoutMillis: 30_000 });
  // A connection that breaks while it is idle is replaced by the next query.
  pool.on("error", () => undefined);
  const label = describeConnection(options.connection);
  const closing = new AbortController();
  let outageMs = options.connectMs ?? options.outageMs;
  const retrying = async <Result>(attempt: () => Promise<Result>): Promise<Result> => {
    const result = await retryWhileUnreachable(attempt, { label, outageMs, signal: closing.signal });
    outageMs = options.outageMs;
    return result;
  };
  return {
    label,
    pool,
    clientConfig,
    async query<Row extends QueryResultRow>(statement: Statement) {
      return retrying(async () => (await pool.query<Row>(statement)).rows);
    },
    transaction: (work) => retrying(() => runTransaction(pool, work)),
    async close() {
      closing.abort(new RetinueError("store-closed", "The store was closed."));
      await pool.end();
    },
  };
}

async function runTransaction<Result>(
  pool: Pool,
  work: (client: PoolClient) => Promise<Result>,
): Promise<Result> {
  const client = await pool.connect();
  let broken: Error | undefined;
  const onError = (error: Error): void => {
    broken = error;
  };
  client.on("error", onError);
  try {
    await client.query("BEGIN");
    const result = await work(client);
    await client.query("COMMIT");
    return result;
  } catch (error) {
    await client.query("ROLLBACK").catch((failure: Error) => {
      broken = failure;
    });
    throw error;
  } finally {
    client.off("error", onError);
    client.release(broken);
  }
}

function toClientConfig({ connection, tls, applicationName }: DatabaseOptions): ClientConfig {
  const { host, port, database, user, password } = connection;
  return {
    host,
    port,
    database,
    user,
    password,
    ssl: toSsl(connection, tls),
    application_name: applicationName,
    keepAlive: true,
    keepAliveInitialDelayMillis: 5_000,
    connectionTimeoutMillis: 5_000,
    // Nothing waits without a limit, and a process that freezes inside a transaction does not hold its locks for long.
    query_timeout: 30_000,
    lock_timeout: 10_000,
    idle_in_transaction_session_timeout: 15_000,
  };
}

function toSsl(connection: ConnectionOptions, tls: TlsOptions = {}): ClientConfig["ssl"] {
  if (connection.tls === "disable") return false;
  const ca = tls.ca ?? readPem(connection.caFile);
  const cert = tls.cert ?? readPem(connection.certFile);
  const key = tls.key ?? readPem(connection.keyFile);
  return {
    rejectUnauthorized: connection.tls !== "require",
    ca,
    cert,
    key,
    // The authority must be right, the name need not be.
    ...(connection.tls === "verify-ca" ? { checkServerIdentity: () => undefined } : {}),
  };
}

function readPem(file: string | undefined): string | undefined {
  if (file === undefined) return undefined;
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    throw fileError("read the certificate or key", file, error);
  }
}

interface RetryOptions {
  readonly label: string;
  readonly outageMs: number;
  readonly signal: AbortSignal;
}

const minPauseMs = 25;
const maxPauseMs = 400;

async function retryWhileUnreachable<Result>(
  attempt: () => Promise<Result>,
  { label, outageMs, signal }: RetryOptions,
): Promise<Result> {
  const end = performance.now() + outageMs;
  for (let pause = minPauseMs; ; pause = Math.min(pause * 2, maxPauseMs)) {
    try {
      return await attempt();
    } catch (error) {
      if (!isTransient(error)) throw refusedConnection(label, error) ?? error;
      if (performance.now() + pause >= end) throw unreachable(label, outageMs, error);
    }
    await sleep(pause, signal);
  }
}

const transientCodes: ReadonlySet<string> = new Set(
  `ECONNREFUSED ECONNRESET ECONNABORTED EPIPE ETIMEDOUT ENOTFOUND EAI_AGAIN EHOSTUNREACH ENETUNREACH ENETDOWN EADDRNOTAVAIL
  EMFILE ENFILE ENOBUFS ENOMEM EAGAIN`.split(/\s+/),
);
/** The client reports a connection that broke in the middle of a query by these sentences alone. */
const transientMessages =
  /^Connection terminated|timeout exceeded when trying to connect|Client has encountered a connection error|Query read timeout|is not currently accepting connections$/;

export function isTransient(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = "code" in error && typeof error.code === "string" ? error.code : "";
  return transientCodes.has(code) || isPassingState(code) || transientMessages.test(error.message);
}

/** Node's codes for a certificate that it does not accept. */
const certificateCodes = /^(SELF_SIGNED|DEPTH_ZERO|UNABLE_TO|CERT_|ERR_TLS_|HOSTNAME_MISMATCH)/;

/** What is wrong with the address, the account or the protection of the connection, for people. */
function refusedConnection(label: string, cause: unknown): RetinueError | undefined {
  if (!(cause instanceof Error)) return undefined;
  const code = "code" in cause ? String(cause.code) : "";
  const detail = cause.message;
  if (code === "3D000")
    return new RetinueError("store-missing", `The database of ${label} does not exist.`, {
      advice: "Create it first (CREATE DATABASE …), then run: retinue store setup --store URL",
      cause,
    });
  if (code === "42501")
    return new RetinueError("store-forbidden", `The account of ${label} may not do this: ${detail}.`, {
      advice:
        "Use the account that owns the tables, or have the owner grant this one the rights that a worker needs: retinue store setup --role ROLE --store URL",
      cause,
    });
  if (detail === "The server does not support SSL connections")
    return new RetinueError("store-insecure", `The server of ${label} offers no TLS.`, {
      advice: "Enable TLS on the server; where the network itself is protected, add ?sslmode=disable.",
      cause,
    });
  if (certificateCodes.test(code))
    return new RetinueError("store-insecure", `The certificate of ${label} is not accepted: ${detail}.`, {
      advice:
        "Pass the certificate of the authority that signed it with ?sslrootcert=FILE, and use the host name that the certificate is for.",
      cause,
    });
  if (!code.startsWith("28")) return undefined;
  return new RetinueError("store-forbidden", `The server of ${label} refused the account: ${detail}.`, {
    advice: "Check the user and the password in the address of the store.",
    cause,
  });
}

function unreachable(label: string, outageMs: number, cause: unknown): RetinueError {
  const detail = cause instanceof Error ? cause.message : String(cause);
  return new RetinueError(
    "store-unreachable",
    `The store ${label} could not be reached for ${Math.round(outageMs / 1000)} s: ${detail}.`,
    {
      advice: "Check that the server runs, that the address is right and that this machine may connect.",
      cause,
    },
  );
}

/** A connection of its own, for sessions that hold locks or listen. */
export async function connectSession(config: ClientConfig): Promise<Session> {
  const pg = await loadPg();
  const client = new pg.Client(config);
  const ended = Promise.withResolvers<void>();
  client.on("error", () => ended.resolve());
  client.on("end", () => ended.resolve());
  await client.connect();
  return { client, ended: ended.promise };
}

export interface Session {
  readonly client: ClientBase & { end(): Promise<void> };
  /** Resolves when the connection is gone, for whatever reason. */
  readonly ended: Promise<void>;
}
