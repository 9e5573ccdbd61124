import { checkArgument, checks } from "@retinue/base/foundation/check-arguments.ts";
import type { DocumentPath, Issue } from "@retinue/base/foundation/diagnostic.ts";
import {
  isRecord,
  isUnreasonablyLarge,
  type JsonRecord,
  kindOf,
  quote,
} from "@retinue/base/foundation/json-record.ts";
import type { McpKind, McpTransport } from "./mcp-transport.ts";
import { readTransport } from "./read-transport.ts";

/** One server as a file has it: nothing expanded, no question asked yet. */
export interface McpServerConfig {
  readonly name: string;
  /** Absent where neither a type nor a command nor a URL says it. */
  readonly kind?: McpKind;
  /** As written; present exactly when the server can be used. */
  readonly transport?: McpTransport;
  /** Why it cannot be used. */
  readonly unusable?: string;
  /** Switched off in the file itself. */
  readonly disabled: boolean;
  readonly timeoutMs?: number;
  readonly alwaysLoad: boolean;
  /** The value that is in the file, for reporting whether it changed. */
  readonly written: unknown;
  readonly path: DocumentPath;
}

export interface McpServersReading {
  /** Undefined where the value is no mapping at all. */
  readonly servers: readonly McpServerConfig[] | undefined;
  readonly issues: readonly Issue[];
}

/** More come from a mistake, never from a person. */
const maxServers = 1000;

/** Reads `{ "mcpServers": { name: config } }`, or the inner mapping alone as people paste it. Never throws. */
export function readMcpServers(value: unknown, path: DocumentPath = []): McpServersReading {
  checkArgument("The second argument of readMcpServers()", checks.list, path);
  if (!isRecord(value)) return unreadable(path, `it must be an object, but here it is ${kindOf(value)}`);
  if (isUnreasonablyLarge(value)) return unreadable(path, "it is nested too deeply or has too many entries");
  const issues: Issue[] = [];
  const outer = ["mcpServers", "servers"].find((key) => Object.hasOwn(value, key) && !isServer(value[key]));
  if (outer === undefined) return { servers: readBare(value, path, issues), issues };
  const inner = value[outer];
  const at = [...path, outer];
  if (inner === null) return { servers: [], issues };
  if (!isRecord(inner)) return unreadable(at, `it must be an object of servers, but it is ${kindOf(inner)}`);
  if (Object.keys(inner).length > maxServers)
    return unreadable(at, `it names more than ${maxServers} servers`);
  const servers = Object.entries(inner).map(([name, config]) =>
    readServer(name, config, [...at, name], issues),
  );
  return { servers, issues };
}

/** Reads one server; what is wrong with it is also a finding. */
export function readServer(
  name: string,
  written: unknown,
  path: DocumentPath,
  issues: Issue[],
): McpServerConfig {
  const common = { name, written, path, disabled: false, alwaysLoad: false };
  if (!isRecord(written)) {
    const unusable = `its configuration must be an object, but it is ${kindOf(written)}`;
    issues.push(unusableServer(name, unusable, path));
    return { ...common, unusable };
  }
  const { kind, transport, unusable, at } = readTransport(written, { name, path, issues });
  if (unusable !== undefined && kind !== "sdk") issues.push(unusableServer(name, unusable, path, at));
  const timeoutMs = readTimeout(written, { name, path, issues });
  return {
    ...common,
    kind,
    transport,
    unusable,
    timeoutMs,
    // `enabled: false` is how other clients say it.
    disabled: own(written, "disabled") === true || own(written, "enabled") === false,
    alwaysLoad: own(written, "alwaysLoad") === true,
  };
}

/** Without the outer key, only what looks like a server is one; `$schema` and the like are passed over. */
function readBare(value: JsonRecord, path: DocumentPath, issues: Issue[]): readonly McpServerConfig[] {
  const entries = Object.entries(value).filter(([, config]) => isServer(config));
  if (entries.length > 0)
    return entries
      .slice(0, maxServers)
      .map(([name, config]) => readServer(name, config, [...path, name], issues));
  const others = Object.keys(value).filter((key) => !key.startsWith("$"));
  if (others.length > 0) {
    issues.push({
      severity: "warning",
      code: "mcp-no-servers",
      message: `There is no "mcpServers" here, only ${others
        .slice(0, 3)
        .map((key) => quote(key, 40))
        .join(", ")}.`,
      advice: 'Write {"mcpServers": {"name": {"command": "…", "args": []}}}.',
      path,
    });
  }
  return [];
}

function isServer(value: unknown): boolean {
  return isRecord(value) && serverKeys.some((key) => Object.hasOwn(value, key) && !isRecord(value[key]));
}

export const serverKeys = ["command", "url", "serverUrl", "httpUrl", "type", "transport", "args"] as const;

function readTimeout(
  written: JsonRecord,
  { name, path, issues }: { readonly name: string; readonly path: DocumentPath; readonly issues: Issue[] },
): number | undefined {
  const value = own(written, "timeout");
  if (value === undefined || value === null) return undefined;
  const number = typeof value === "string" && /^\d+$/.test(value.trim()) ? Number(value) : value;
  if (typeof number === "number" && Number.isFinite(number) && number > 0) return Math.ceil(number);
  issues.push({
    severity: "warning",
    code: "mcp-field-ignored",
    message: `\`timeout\` of the MCP server ${quote(name)} must be milliseconds above 0, but it is ${quote(value)}; the default is used.`,
    advice: "Write a number such as 60000, or remove it.",
    path: [...path, "timeout"],
  });
  return undefined;
}

function own(record: JsonRecord, key: string): unknown {
  return Object.hasOwn(record, key) ? record[key] : undefined;
}

function unusableServer(name: string, why: string, path: DocumentPath, at?: "oauth"): Issue {
  return {
    severity: "warning",
    code: "mcp-server-unusable",
    message: `The MCP server ${quote(name)} cannot be used: ${why}.`,
    ...(at === undefined
      ? {
          advice: 'Write "command" with "args" for a program, or "type": "http" with "url" for an address.',
          path,
        }
      : { advice: `Correct "${at}", or remove it to log in as the server says.`, path: [...path, at] }),
  };
}

function unreadable(path: DocumentPath, why: string): McpServersReading {
  return {
    servers: undefined,
    issues: [
      {
        severity: "error",
        code: "mcp-servers-unreadable",
        message: `The MCP servers cannot be read: ${why}.`,
        advice: 'Write {"mcpServers": {"name": {"command": "…", "args": []}}}.',
        path,
      },
    ],
  };
}
