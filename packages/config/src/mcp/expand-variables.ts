import type { McpOauth, McpTransport } from "./mcp-transport.ts";

/** The value of a variable, or undefined where it is not set. */
export type VariableLookup = (name: string) => string | undefined;

export interface Expansion<T> {
  readonly value: T;
  /** Variables that are not set and have no default; they stay in the text as they are written. */
  readonly missing: readonly string[];
}

const variable = /\$\{([A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z0-9_-]+)?)(?::-([^}]*))?\}/g;

/** Puts values in the place of `${VAR}` and `${VAR:-default}`. What a value holds is not expanded again. */
export function expandVariables(text: string, lookup: VariableLookup): Expansion<string> {
  const missing: string[] = [];
  const value = text.replace(variable, (written: string, name: string, fallback: string | undefined) => {
    const found = lookup(name) ?? fallback;
    if (found === undefined) missing.push(name);
    return found ?? written;
  });
  return { value, missing };
}

/** The names of all variables that a text asks for, those with a default included. */
export function variablesIn(text: string): readonly string[] {
  return [...text.matchAll(variable)].map(([, name = ""]) => name);
}

/** Expands command, arguments, folder and environment, or address and headers. */
export function expandTransport(transport: McpTransport, lookup: VariableLookup): Expansion<McpTransport> {
  const missing = new Set<string>();
  const expand = (text: string): string => {
    const expansion = expandVariables(text, lookup);
    for (const name of expansion.missing) missing.add(name);
    return expansion.value;
  };
  const value = expandParts(transport, expand);
  return { value, missing: [...missing] };
}

type Expand = (text: string) => string;

function expandParts(transport: McpTransport, expand: Expand): McpTransport {
  switch (transport.type) {
    case "stdio":
      return expandProcess(transport, expand);
    case "http":
    case "sse":
      return expandAddress(transport, expand);
    case "sdk":
      return transport;
  }
}

function expandProcess(
  { cwd, ...transport }: Extract<McpTransport, { type: "stdio" }>,
  expand: Expand,
): McpTransport {
  return {
    ...transport,
    command: expand(transport.command),
    args: transport.args.map(expand),
    env: Object.fromEntries(Object.entries(transport.env).map(([name, text]) => [name, expand(text)])),
    cwd: cwd && expand(cwd),
  };
}

function expandOauth(oauth: McpOauth, expand: Expand): McpOauth {
  const texts = Object.entries(oauth).map(([key, value]) => [
    key,
    typeof value === "string" ? expand(value) : value,
  ]);
  // The same members with the same kinds of values.
  return Object.fromEntries(texts) as McpOauth;
}

/** A header that comes out empty, as with `${TOKEN:-}`, is left out: servers take an empty one for a wrong one. */
function expandAddress(
  { headersHelper, oauth, ...transport }: Extract<McpTransport, { type: "http" | "sse" }>,
  expand: Expand,
): McpTransport {
  const headers = Object.entries(transport.headers)
    .map(([name, text]) => [name, expand(text), text] as const)
    .filter(([, value, written]) => value !== "" || written === "");
  return {
    ...transport,
    url: expand(transport.url),
    headers: Object.fromEntries(headers.map(([name, value]) => [name, value])),
    headersHelper: headersHelper && expand(headersHelper),
    oauth: oauth && expandOauth(oauth, expand),
  };
}
