import type { Diagnostic } from "../foundation/diagnostic.ts";
import { isRecord, type JsonRecord, shown } from "../foundation/json-record.ts";
import { matchesPattern } from "../foundation/match-pattern.ts";
import type { McpScope, McpTransport } from "../mcp/mcp-server.ts";
import { mcpServerPart } from "../mcp/mcp-tool-name.ts";
import type { MergedSettings } from "./settings-layer.ts";

type PolicyEntry =
  | { readonly type: "name"; readonly name: string }
  | { readonly type: "command"; readonly words: readonly string[] }
  | { readonly type: "url"; readonly pattern: string };

/** Which servers settings permit. */
export interface McpPolicy {
  /** Absent means no list; empty means none. */
  readonly allowed?: readonly PolicyEntry[];
  /** The list is the organisation's, so that its own servers must be on it too. */
  readonly allowedByOrganisation: boolean;
  readonly denied: readonly PolicyEntry[];
  readonly pluginsOnly: boolean;
}

export interface JudgedServer {
  readonly name: string;
  readonly scope: McpScope;
  /** As written, and with its variables expanded where that is known. */
  readonly forms: readonly McpTransport[];
}

export function readMcpPolicy({ plain, sources }: Pick<MergedSettings, "plain" | "sources">): {
  readonly policy: McpPolicy;
  readonly diagnostics: readonly Diagnostic[];
} {
  const diagnostics: Diagnostic[] = [];
  const read = (key: "allowedMcpServers" | "deniedMcpServers") =>
    (plain[key] ?? []).flatMap((entry) =>
      readEntry(entry, { key, file: sources.get(key)?.file, diagnostics }),
    );
  const allowedByOrganisation = sources.get("allowedMcpServers")?.scope === "managed";
  const managedOnly = plain.allowManagedMcpServersOnly === true;
  const hasList = plain.allowedMcpServers !== undefined && (allowedByOrganisation || !managedOnly);
  const only = plain.strictPluginOnlyCustomization;
  const policy: McpPolicy = {
    ...(hasList || managedOnly ? { allowed: hasList ? read("allowedMcpServers") : [] } : {}),
    allowedByOrganisation,
    denied: read("deniedMcpServers"),
    pluginsOnly: only === true || (Array.isArray(only) && only.includes("mcp")),
  };
  return { policy, diagnostics };
}

/** Why settings forbid a server, or undefined. A denial counts for every form of it, a permission for the last alone. */
export function refuseByPolicy(server: JudgedServer, policy: McpPolicy): string | undefined {
  return refuseByDenial(server, policy) ?? refuseUnlessAllowed(server, policy);
}

/** What can be said before variables have values. */
export function refuseByDenial(server: JudgedServer, policy: McpPolicy): string | undefined {
  if (policy.denied.some((entry) => speaksOf(entry, server, "deny"))) return "`deniedMcpServers` names it";
  const isFree = ["plugin", "managed", "program"].includes(server.scope);
  return policy.pluginsOnly && !isFree
    ? "`strictPluginOnlyCustomization` leaves servers to plugins"
    : undefined;
}

function refuseUnlessAllowed(server: JudgedServer, policy: McpPolicy): string | undefined {
  const { allowed } = policy;
  if (allowed === undefined || (server.scope === "managed" && !policy.allowedByOrganisation))
    return undefined;
  // Where the list says which programs or addresses are meant, a name alone is not enough: anybody can take a name.
  const kind = server.forms.some(({ type }) => type === "stdio") ? "command" : "url";
  const byKind = allowed.filter(({ type }) => type === kind);
  const counting = byKind.length > 0 ? byKind : allowed.filter(({ type }) => type === "name");
  return counting.some((entry) => speaksOf(entry, server, "allow"))
    ? undefined
    : "`allowedMcpServers` does not name it";
}

function speaksOf(entry: PolicyEntry, { name, forms }: JudgedServer, use: "allow" | "deny"): boolean {
  if (entry.type === "name")
    return use === "allow" ? entry.name === name : mcpServerPart(entry.name) === mcpServerPart(name);
  const matches = (form: McpTransport): boolean => {
    if (form.type === "sdk") return false;
    if (form.type === "stdio")
      return entry.type === "command" && sameWords(entry.words, [form.command, ...form.args]);
    return entry.type === "url" && matchesAddress(entry.pattern, form.url, use);
  };
  return use === "allow" ? forms.length > 0 && forms.slice(-1).every(matches) : forms.some(matches);
}

function sameWords(left: readonly string[], right: readonly string[]): boolean {
  return left.length === right.length && left.every((word, index) => word === right[index]);
}

/** A star in the host stays in the host: `https://*.example.com/*` is no word for `https://evil.org/.example.com/`. */
function matchesAddress(pattern: string, url: string, use: "allow" | "deny"): boolean {
  const wanted = /^([a-z*]+):\/\/([^/?#]*)(.*)$/is.exec(pattern);
  if (wanted === null || !URL.canParse(url)) return use === "deny" && matchesPattern(pattern, url);
  const [, scheme = "", host = "", path = ""] = wanted;
  const { protocol, hostname, port, pathname, search, username } = new URL(url);
  if (username !== "" && use === "allow") return false;
  const defaultPort = protocol === "https:" ? "443" : "80";
  const hosts = [
    `${hostname}:${port === "" ? defaultPort : port}`,
    ...(port === "" || use === "deny" ? [hostname] : []),
  ];
  const rest = `${pathname}${search}`;
  const isWholeHost = path === "" || path === "/";
  return (
    matchesPattern(scheme.toLowerCase(), protocol.slice(0, -1)) &&
    hosts.some((each) => matchesPattern(host.toLowerCase(), each)) &&
    (isWholeHost ? use === "deny" || rest === "/" : matchesPattern(path, rest))
  );
}

function readEntry(
  entry: JsonRecord,
  {
    key,
    file,
    diagnostics,
  }: { readonly key: string; readonly file: string | undefined; readonly diagnostics: Diagnostic[] },
): readonly PolicyEntry[] {
  const { serverName, serverCommand, serverUrl } = entry;
  if (typeof serverName === "string") return [{ type: "name", name: serverName }];
  if (typeof serverUrl === "string") return [{ type: "url", pattern: serverUrl }];
  const words = typeof serverCommand === "string" ? [serverCommand] : serverCommand;
  if (Array.isArray(words) && words.length > 0 && words.every((word) => typeof word === "string"))
    return [{ type: "command", words }];
  const keys = isRecord(entry)
    ? Object.keys(entry)
        .slice(0, 3)
        .map((name) => shown(name, 40))
        .join(", ")
    : "";
  diagnostics.push({
    severity: "error",
    code: "mcp-policy-entry",
    message: `An entry of "${key}" holds ${keys === "" ? "nothing" : keys}, and names no server; it has no effect.`,
    advice: 'Write {"serverName": "…"}, {"serverCommand": ["…"]} or {"serverUrl": "…"}.',
    ...(file === undefined ? {} : { file }),
  });
  return [];
}
