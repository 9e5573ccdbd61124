import type { DocumentPath, Issue } from "@retinue/base/foundation/diagnostic.ts";
import { isRecord, type JsonRecord, kindOf, quote } from "@retinue/base/foundation/json-record.ts";
import type { McpKind, McpTransport } from "./mcp-transport.ts";
import { readOauth } from "./read-oauth.ts";

interface TransportReading {
  readonly kind?: McpKind;
  readonly transport?: McpTransport;
  readonly unusable?: string;
  /** The field that makes it unusable, where it is one. */
  readonly at?: "oauth";
}

interface Report {
  readonly name: string;
  readonly path: DocumentPath;
  readonly issues: Issue[];
}

/** How one server is reached, as written. */
export function readTransport(written: JsonRecord, to: Report): TransportReading {
  const kind = readKind(written);
  if (kind === undefined) return { unusable: "it has neither a command nor a URL" };
  if (kind === "unknown") {
    const type = own(written, "type") ?? own(written, "transport");
    return { unusable: `its type ${quote(type, 40)} is not one of stdio, http and sse` };
  }
  if (kind === "ws") return { kind, unusable: "WebSocket servers are not supported" };
  if (kind === "sdk") return { kind, unusable: "it runs inside another program" };
  return kind === "stdio" ? readProcess(written, to) : readAddress(kind, written, to);
}

/** The words for each kind of transport, as products write them. */
export const transportWords: ReadonlyMap<string, McpKind> = new Map([
  ["stdio", "stdio"],
  ["local", "stdio"],
  ["http", "http"],
  ["streamable-http", "http"],
  ["streamablehttp", "http"],
  ["streamable_http", "http"],
  ["http-stream", "http"],
  ["remote", "http"],
  ["sse", "sse"],
  ["ws", "ws"],
  ["websocket", "ws"],
  ["sdk", "sdk"],
]);

/** Without a type, a command means a program and a URL an address; the address itself may say more. */
function readKind(written: JsonRecord): McpKind | "unknown" | undefined {
  const type = own(written, "type") ?? own(written, "transport");
  if (typeof type === "string" && type.trim() !== "") {
    return transportWords.get(type.trim().toLowerCase()) ?? "unknown";
  }
  if (own(written, "command") !== undefined) return "stdio";
  const url = addressOf(written);
  if (url === undefined) return undefined;
  return typeof url === "string" && /^wss?:/i.test(url.trim()) ? "ws" : "http";
}

function readProcess(written: JsonRecord, to: Report): TransportReading {
  const kind = "stdio";
  const words = commandWords(written, to);
  const [command, ...first] = words ?? [];
  if (command === undefined || command.trim() === "") return { kind, unusable: "its command is missing" };
  if (words?.some((word) => word.includes("\0")))
    return { kind, unusable: "its command contains a NUL character" };
  const args = readArguments(own(written, "args"), to);
  if (args === undefined) return { kind, unusable: "its arguments must be a list of strings" };
  const cwd = own(written, "cwd");
  const env = readTexts(written, "env", to);
  return {
    kind,
    transport: {
      type: "stdio",
      command,
      args: [...first, ...args],
      env,
      ...(typeof cwd === "string" && cwd !== "" ? { cwd } : {}),
    },
  };
}

/** People paste a whole line into `command`; a program whose path holds a blank is not taken apart. */
function commandWords(written: JsonRecord, to: Report): readonly string[] | undefined {
  const command = own(written, "command");
  if (Array.isArray(command)) return command.every((word) => typeof word === "string") ? command : undefined;
  if (typeof command !== "string") return undefined;
  const line = command.trim();
  const isLine = own(written, "args") === undefined && /^[\w@.+-]+(?:\s+[^\s"'`$\\]+)+$/.test(line);
  if (!isLine) return [line];
  to.issues.push({
    severity: "warning",
    code: "mcp-command-line",
    message: `\`command\` of the MCP server ${quote(to.name)} contains a whole command line; it was split at the spaces.`,
    advice: 'Write the program in "command" and each argument in "args".',
    path: [...to.path, "command"],
  });
  return line.split(/\s+/);
}

function readArguments(value: unknown, to: Report): readonly string[] | undefined {
  if (value === undefined || value === null) return [];
  if (typeof value === "string") return value === "" ? [] : [value];
  if (!Array.isArray(value)) return undefined;
  const words = value.map((word: unknown) => asText(word));
  if (words.some((word) => word === undefined || word.includes("\0"))) {
    to.issues.push(ignored(to, "args", "a list of strings", value));
    return undefined;
  }
  return words.flatMap((word) => word ?? []);
}

function readAddress(kind: "http" | "sse", written: JsonRecord, to: Report): TransportReading {
  const url = addressOf(written);
  if (typeof url !== "string" || url.trim() === "") return { kind, unusable: "its URL is missing" };
  const why = refuseAddress(url.trim());
  if (why !== undefined) return { kind, unusable: why };
  const helper = own(written, "headersHelper");
  const oauth = readOauth(own(written, "oauth"));
  // Without its entries about logging in, a person might log in elsewhere or as another user.
  if (typeof oauth === "string") return { kind, unusable: oauth, at: "oauth" };
  return {
    kind,
    transport: {
      type: kind,
      url: url.trim(),
      headers: readTexts(written, "headers", to),
      ...(typeof helper === "string" && helper.trim() !== "" ? { headersHelper: helper } : {}),
      oauth,
    },
  };
}

/** Why an address cannot be called; one that holds variables is judged again when they have values. */
export function refuseAddress(url: string): string | undefined {
  if (url.includes("${")) return undefined;
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (parsed === undefined) return `${quote(url)} is not a URL`;
  return ["http:", "https:"].includes(parsed.protocol)
    ? undefined
    : `${quote(url)} is not an http or https address`;
}

/** `serverUrl` and `httpUrl` are what other clients call it. */
function addressOf(written: JsonRecord): unknown {
  return own(written, "url") ?? own(written, "serverUrl") ?? own(written, "httpUrl");
}

/** A mapping of texts; numbers and flags are taken as texts, anything else is left out. */
function readTexts(written: JsonRecord, key: string, to: Report): Readonly<Record<string, string>> {
  const value = own(written, key);
  if (value === undefined || value === null) return {};
  if (!isRecord(value)) {
    to.issues.push(ignored(to, key, "an object of strings", value));
    return {};
  }
  const entries = Object.entries(value).flatMap(([name, item]): [string, string][] => {
    const text = asText(item);
    const isGood =
      text !== undefined &&
      (key === "env" ? /^[^=\0]+$/.test(name) && !text.includes("\0") : isHeader(name, text));
    if (isGood) return [[name, text]];
    to.issues.push(ignored({ ...to, path: [...to.path, key] }, name, "a string", item));
    return [];
  });
  return Object.fromEntries(entries);
}

/** A line break would begin another header. */
export function isHeader(name: string, text: string): boolean {
  return /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name) && !/[\r\n\0]/.test(text);
}

function asText(value: unknown): string | undefined {
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  return typeof value === "string" ? value : undefined;
}

function ignored({ name, path }: Report, key: string, expected: string, value: unknown): Issue {
  return {
    severity: "warning",
    code: "mcp-field-ignored",
    message: `${quote(key)} of the MCP server ${quote(name)} must be ${expected}, but it is ${kindOf(value)} or contains something it must not; it was not used.`,
    advice: `Write ${expected}, or remove it.`,
    path: [...path, key],
  };
}

function own(record: JsonRecord, key: string): unknown {
  return Object.hasOwn(record, key) ? record[key] : undefined;
}
