import { isRecord } from "@retinue/base/foundation/json-record.ts";
import { ModelError } from "./model-error.ts";

/** What Node says of a connection whose other side cannot prove who it is; waiting changes nothing. */
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
        "Check the address and the clock of this machine. Where a proxy or a company signs certificates itself, name its file in NODE_EXTRA_CA_CERTS.",
      cause: error,
    },
  );
}
