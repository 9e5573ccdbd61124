import { isRecord } from "@retinue/base/foundation/json-record.ts";
import type { McpTransport } from "@retinue/config/mcp/mcp-transport.ts";

/** Shorter ones would also be found in words that are no secrets. */
const shortest = 6;

/** Takes the keys of a server's configuration out of what it or the network reports about a failure: models read that. */
export function hideSecrets(text: string, transport: McpTransport, more: readonly string[] = []): string {
  const secrets = [...secretsOf(transport), ...more]
    .filter((secret) => secret.length >= shortest)
    .sort((one, other) => other.length - one.length);
  return secrets.reduce((left, secret) => left.replaceAll(secret, "…"), text);
}

/** A server's answer without the tokens that it was sent: some repeat what they get, and answers are written down. */
export function hideInAnswer(value: unknown, secrets: readonly string[]): unknown {
  if (secrets.length === 0) return value;
  const written = JSON.stringify(value) ?? "";
  const found = secrets
    .filter((secret) => secret.length >= shortest)
    .flatMap((secret) => [secret, encodeURIComponent(secret)])
    .filter((form) => written.includes(JSON.stringify(form).slice(1, -1)));
  return found.length === 0 ? value : replaceTexts(value, found);
}

function replaceTexts(value: unknown, secrets: readonly string[]): unknown {
  if (typeof value === "string") return secrets.reduce((left, secret) => left.replaceAll(secret, "…"), value);
  if (Array.isArray(value)) return value.map((item) => replaceTexts(item, secrets));
  if (!isRecord(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [
      String(replaceTexts(key, secrets)),
      replaceTexts(item, secrets),
    ]),
  );
}

/** An address without what only its owner may see. */
export function hideInAddress(written: string): string {
  return written.replace(/\/\/[^/?#@]*@/, "//…@").replace(/([?&][^=&#]*=)(?!\$\{)[^&#]*/g, "$1…");
}

function secretsOf(transport: McpTransport): readonly string[] {
  switch (transport.type) {
    case "sdk":
      return [];
    case "stdio":
      return Object.entries(transport.env)
        .filter(([name]) => /key|token|secret|passw|auth|credential/i.test(name))
        .map(([, value]) => value);
    case "http":
    case "sse":
      return [
        ...Object.values(transport.headers).flatMap((value) => [value, ...value.split(" ").slice(1)]),
        ...addressSecrets(transport.url),
        ...(transport.oauth?.clientSecret === undefined ? [] : [transport.oauth.clientSecret]),
      ];
  }
}

function addressSecrets(address: string): readonly string[] {
  if (!URL.canParse(address)) return [];
  const { username, password, searchParams } = new URL(address);
  const values = [...searchParams.values()];
  return [username, password, ...values, ...values.map(encodeURIComponent)];
}
