// @io
import { isIP } from "node:net";
import { nearestName } from "@retinue/base/foundation/nearest-name.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";

/** How the connection is protected; the words are those of PostgreSQL. */
export const tlsModes = ["disable", "require", "verify-ca", "verify-full"] as const;
export type TlsMode = (typeof tlsModes)[number];

export interface TlsOptions {
  /** Certificates of the authorities that may have signed the server's, as PEM text. */
  readonly ca?: string | undefined;
  /** The client's own certificate and key, as PEM text. */
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
}

/** A connection string taken apart. Files are named here and read when connecting. */
export interface ConnectionOptions {
  readonly host: string;
  readonly port: number;
  readonly database: string;
  readonly user?: string;
  readonly password?: string;
  readonly tls: TlsMode;
  readonly caFile?: string;
  readonly certFile?: string;
  readonly keyFile?: string;
}

const parameters = ["sslmode", "sslrootcert", "sslcert", "sslkey", "host"];

/**
 * Reads `postgres://user:password@host:port/database?sslmode=…`. A server on this machine needs no TLS; for every other one
 * the certificate is verified unless the string says otherwise.
 */
export function readConnectionString(text: string): ConnectionOptions {
  const url = parseUrl(text);
  for (const key of url.searchParams.keys()) if (!parameters.includes(key)) throw unknownParameter(key);
  const host = url.searchParams.get("host") ?? (decodeURIComponent(url.hostname) || "localhost");
  const database = decodeURIComponent(url.pathname.slice(1));
  if (database === "" || database.includes("/"))
    throw invalid("it names no database", "Write postgres://user@host:5432/database.");
  const optional = (name: string, value: string | null): object =>
    value === null || value === "" ? {} : { [name]: value };
  return {
    host,
    port: url.port === "" ? 5432 : Number(url.port),
    database,
    ...optional("user", decodeURIComponent(url.username)),
    ...optional("password", decodeURIComponent(url.password)),
    tls: readTlsMode(url.searchParams.get("sslmode"), host),
    ...optional("caFile", url.searchParams.get("sslrootcert")),
    ...optional("certFile", url.searchParams.get("sslcert")),
    ...optional("keyFile", url.searchParams.get("sslkey")),
  };
}

/** For messages: where the database is, without the password. */
export function describeConnection({ user, host, port, database }: ConnectionOptions): string {
  const who = user === undefined ? "" : `${user}@`;
  return `postgres://${who}${isIP(host) === 6 ? `[${host}]` : host}:${port}/${database}`;
}

function parseUrl(text: string): URL {
  let url: URL;
  try {
    url = new URL(text);
    // Escapes that decode to nothing would only be noticed later, as a wrong password.
    for (const part of [url.username, url.password, url.pathname, url.hostname]) decodeURIComponent(part);
  } catch {
    throw invalid(
      "it is not a URL",
      "Write postgres://user@host:5432/database, with %40 for an @ in the password.",
    );
  }
  if (url.protocol !== "postgres:" && url.protocol !== "postgresql:")
    throw invalid(`it begins with ${url.protocol}`, "Start it with postgres://.");
  return url;
}

function readTlsMode(value: string | null, host: string): TlsMode {
  if (value === null) return isLocal(host) ? "disable" : "verify-full";
  const mode = tlsModes.find((known) => known === value);
  if (mode !== undefined) return mode;
  throw invalid(`its sslmode is ${JSON.stringify(value)}`, `Use one of ${tlsModes.join(", ")}.`);
}

function isLocal(host: string): boolean {
  return (
    host.startsWith("/") || host === "localhost" || host === "[::1]" || host === "::1" || /^127\./.test(host)
  );
}

function unknownParameter(key: string): RetinueError {
  const nearest = nearestName(key, parameters);
  const meant = nearest === undefined ? "" : ` Did you mean ${nearest}?`;
  return invalid(
    `it has the parameter ${JSON.stringify(key)}, which is not supported`,
    `Supported are ${parameters.join(", ")}.${meant}`,
  );
}

function invalid(reason: string, advice: string): RetinueError {
  return new RetinueError(
    "invalid-store-url",
    `The connection string of the store cannot be used: ${reason}.`,
    {
      advice,
    },
  );
}
