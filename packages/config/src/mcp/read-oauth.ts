import { isRecord, kindOf, quote } from "@retinue/base/foundation/json-record.ts";
import { type JsonSchema, schemas } from "@retinue/base/foundation/json-schema.ts";
import type { McpOauth } from "./mcp-transport.ts";

/** Reads `oauth` of a server; a text says why it cannot be used. What is not known is refused, as it may have been meant to limit. */
export function readOauth(value: unknown): McpOauth | string | undefined {
  if (value === undefined || value === null) return undefined;
  if (!isRecord(value)) return `its \`oauth\` must be an object, but it is ${kindOf(value)}`;
  const unknown = Object.keys(value).find((key) => !known.has(key));
  if (unknown !== undefined)
    return `its \`oauth\` has ${quote(unknown, 40)}, which is not known; there are ${[...known].join(", ")}`;
  const wrong = texts.find((key) => value[key] !== undefined && !isText(value[key]));
  if (wrong !== undefined) return `\`oauth.${wrong}\` must be a string`;
  const { grant = "authorization_code", callbackPort, clientId, clientSecret } = value;
  if (grant !== "authorization_code" && grant !== "client_credentials")
    return `\`oauth.grant\` must be authorization_code or client_credentials, but it is ${quote(grant, 40)}`;
  if (grant === "client_credentials" && (clientId === undefined || clientSecret === undefined))
    return "`oauth.grant` client_credentials needs `clientId` and `clientSecret`";
  if (callbackPort !== undefined && !isPort(callbackPort))
    return `\`oauth.callbackPort\` must be a port from 1 to 65535, but it is ${quote(callbackPort, 40)}`;
  for (const key of ["authServerMetadataUrl", "clientMetadataUrl"]) {
    const why = refuseMetadataAddress(value[key]);
    if (why !== undefined) return `\`oauth.${key}\` ${why}`;
  }
  const given = texts.flatMap((key) => (isText(value[key]) ? [[key, value[key]] as const] : []));
  return {
    grant,
    ...Object.fromEntries(given),
    ...(isPort(callbackPort) ? { callbackPort } : {}),
  };
}

const texts = ["clientId", "clientSecret", "clientMetadataUrl", "scopes", "authServerMetadataUrl"] as const;
const grants = ["authorization_code", "client_credentials"];
const known: ReadonlySet<string> = new Set(["grant", "callbackPort", ...texts]);

/** What `readOauth` takes. */
export function oauthSchema(): JsonSchema {
  return {
    type: "object",
    properties: {
      grant: { description: "client_credentials where no person logs in.", enum: grants },
      callbackPort: {
        description: "The port that the browser comes back to.",
        type: "integer",
        minimum: 1,
        maximum: 65_535,
      },
      ...Object.fromEntries(texts.map((key) => [key, key.endsWith("Url") ? httpsAddress : schemas.text])),
    },
    additionalProperties: false,
    if: { properties: { grant: { const: "client_credentials" } }, required: ["grant"] },
    // biome-ignore lint/suspicious/noThenProperty: the word of JSON Schema.
    then: { required: ["clientId", "clientSecret"] },
  };
}

const httpsAddress: JsonSchema = {
  type: "string",
  pattern:
    "\\$\\{|^[hH][tT][tT][pP][sS]:|^[hH][tT][tT][pP]://(?:localhost|127(?:\\.\\d+){3}|\\[::1\\])(?:[:/?#]|$)",
};

function isText(value: unknown): value is string {
  return typeof value === "string" && value.trim() !== "";
}

function isPort(value: unknown): value is number {
  return typeof value === "number" && Number.isInteger(value) && value > 0 && value < 65_536;
}

/** Secrets are sent to what this address names, so it is https, but for this machine itself. */
function refuseMetadataAddress(value: unknown): string | undefined {
  if (typeof value !== "string" || value.includes("${")) return undefined;
  const url = URL.canParse(value) ? new URL(value) : undefined;
  return url !== undefined && isSecureAddress(url)
    ? undefined
    : `must be an https address, but it is ${quote(value)}`;
}

/** Whether what is sent there cannot be read on the way. */
export function isSecureAddress({ protocol, hostname }: URL): boolean {
  return (
    protocol === "https:" ||
    (protocol === "http:" && /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(hostname))
  );
}
