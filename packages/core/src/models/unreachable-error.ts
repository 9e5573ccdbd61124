import { isRecord } from "@retinue/base/foundation/json-record.ts";
import { ModelError } from "./model-error.ts";

/** A server on this machine that refuses the connection is not running; it gets a moment to be restarted, and no more. */
const localAttempts = 3;

/** Without a network, or with a wrong address, it fails within some seconds; a client that was connected gets all attempts. */
const unreachedAttempts = 5;

const noWayThere: ReadonlySet<string> = new Set([
  "ENOTFOUND",
  "EAI_AGAIN",
  "ENETUNREACH",
  "EHOSTUNREACH",
  "ECONNREFUSED",
]);

/** The error for a provider to which there is no connection: its host and the cause, in words that fit a line. */
export function unreachableError(error: unknown, address: string, hint: string): ModelError {
  const cause = deepestCause(error);
  const code = codeOf(cause);
  const url = URL.canParse(address) ? new URL(address) : undefined;
  const isLocal = url !== undefined && isThisMachine(url.hostname);
  // The port distinguishes servers on one machine; elsewhere the name is enough.
  const host = isLocal ? url.host : (url?.hostname ?? address);
  const isRefusedHere = isLocal && code === "ECONNREFUSED";
  return new ModelError("connection-failed", `Cannot reach ${host} (${code ?? messageOf(cause)}).`, {
    advice: isRefusedHere
      ? `Nothing is listening on ${host}: start the server, or choose another model.`
      : adviceFor(code, hint),
    cause: error,
    ...(isRefusedHere ? { maxAttempts: localAttempts } : {}),
    ...(noWayThere.has(code ?? "") ? { maxAttemptsUnreached: unreachedAttempts } : {}),
  });
}

function adviceFor(code: string | undefined, hint: string): string {
  if (code === "ENOTFOUND" || code === "EAI_AGAIN")
    return `The name could not be resolved: check the network, the proxy (HTTPS_PROXY) and ${hint}.`;
  return `Check the network, the proxy (HTTPS_PROXY) and ${hint}.`;
}

/** Transports wrap what went wrong, some more than once; a name with several addresses has one error for each. */
export function deepestCause(error: unknown): unknown {
  let cause = error;
  for (let depth = 0; depth < 5; depth += 1) {
    const inner: unknown = fieldOf(cause, "cause") ?? firstOf(fieldOf(cause, "errors"));
    if (inner === undefined) break;
    cause = inner;
  }
  return cause;
}

function firstOf(value: unknown): unknown {
  return Array.isArray(value) ? value[0] : undefined;
}

function codeOf(error: unknown): string | undefined {
  const code = fieldOf(error, "code");
  // Codes of the system are known words; those of Node itself say less than their message.
  return typeof code === "string" && /^E(?!RR_)[A-Z]/.test(code) ? code : undefined;
}

/** What an error reports about itself; its code where it has no message. */
export function messageOf(error: unknown): string {
  const message = fieldOf(error, "message");
  return typeof message === "string" && message !== "" ? message : (codeOf(error) ?? String(error));
}

function fieldOf(value: unknown, key: string): unknown {
  // Errors are objects with inherited fields, so this asks any object.
  return isRecord(value) || value instanceof Error ? Reflect.get(value, key) : undefined;
}

function isThisMachine(hostname: string): boolean {
  return hostname === "localhost" || hostname === "[::1]" || /^127\.\d+\.\d+\.\d+$/.test(hostname);
}

/** Node's codes for a connection whose other side cannot prove who it is; waiting changes nothing. */
const certificateCodes =
  /^(CERT_|ERR_TLS_CERT_|DEPTH_ZERO_SELF_SIGNED_CERT$|SELF_SIGNED_CERT_IN_CHAIN$|UNABLE_TO_(GET|VERIFY|DECRYPT|DECODE)_|HOSTNAME_MISMATCH$|INVALID_CA$|INVALID_PURPOSE$)/;

/** The error for a certificate that is not trusted; undefined for every other error. */
export function certificateError(error: unknown, place: string): ModelError | undefined {
  // Errors are objects with inherited fields, so this asks any object.
  const code = isRecord(error) || error instanceof Error ? Reflect.get(error, "code") : undefined;
  if (typeof code !== "string" || !certificateCodes.test(code)) return undefined;
  const message = error instanceof Error ? error.message : code;
  return new ModelError(
    "untrusted-certificate",
    `The connection to ${place} is not trusted: ${message} (${code})`,
    {
      advice:
        "Check the address and the clock of this machine. If a proxy or your company signs its own certificates, set NODE_EXTRA_CA_CERTS to its certificate file.",
      cause: error,
    },
  );
}
