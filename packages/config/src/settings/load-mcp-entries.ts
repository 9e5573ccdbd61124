import { dirname, join, resolve } from "node:path";
import {
  type Diagnostic,
  type DocumentPath,
  type Locate,
  placeFindings,
} from "@retinue/base/foundation/diagnostic.ts";
import { isRecord, type JsonRecord, quote } from "@retinue/base/foundation/json-record.ts";
import { matchesPattern } from "@retinue/base/foundation/match-pattern.ts";
import { parseJsonDocument } from "@retinue/base/foundation/parse-json-document.ts";
import { type McpServerConfig, readMcpServers } from "../mcp/mcp-server-config.ts";
import { mcpServerPart } from "../mcp/mcp-tool-name.ts";
import type { McpScope, McpTransport } from "../mcp/mcp-transport.ts";
import { valueAt } from "./approve-mcp-servers.ts";
import { findForeignWriters, readBounded, unsafeManagedDiagnostic } from "./load-settings.ts";
import type { Paths } from "./paths.ts";
import type { SettingsScope } from "./settings.ts";
import { isFromRepository, type MergedSettings, type SettingsLayer } from "./settings-layer.ts";

/** One server with where it is, before anything is decided about it. */
export interface McpEntry {
  readonly config: McpServerConfig;
  readonly scope: McpScope;
  readonly file?: string;
  /** It came with the working folder, which may come from a stranger: it needs trust and a person's word. */
  readonly fromRepository: boolean;
  /** It is in a definition that came with the working folder: trust is enough, as for the definition's hooks. */
  readonly needsTrust?: boolean;
  /** Names that are expanded besides those of the environment, such as `CLAUDE_PLUGIN_ROOT`. */
  readonly variables?: ReadonlyMap<string, string>;
  /** Variables that the server's process gets before its own `env`. */
  readonly extraEnv?: Readonly<Record<string, string>>;
  readonly locate: Locate;
}

interface LoadMcpOptions {
  readonly paths: Paths;
  readonly layers: readonly SettingsLayer[];
  readonly sources?: readonly ("user" | "project" | "local")[];
  /** What `--mcp-config` was given: JSON texts and paths of files. */
  readonly mcpConfig?: readonly string[];
}

interface LoadedMcp {
  readonly entries: readonly McpEntry[];
  readonly diagnostics: readonly Diagnostic[];
  /** The first thing that keeps a `--mcp-config` from being used at all. */
  readonly brokenConfig?: Diagnostic;
  /** The organisation has a `managed-mcp.json`: nothing but what is there counts. */
  readonly isExclusive: boolean;
}

/** Reads every place of the machine that configures MCP servers, but for plugins. Never throws. */
export async function loadMcpEntries(options: LoadMcpOptions): Promise<LoadedMcp> {
  const { paths, layers, sources, mcpConfig = [] } = options;
  const wants = (scope: "user" | "project" | "local") => sources === undefined || sources.includes(scope);
  const managedFile = join(paths.managedDirectory, "managed-mcp.json");
  const fromProject = { scope: "project", fromRepository: true } as const;
  const projectOnes = wants("project") ? projectFiles(paths) : [];
  const [managed, flags, state, project] = await Promise.all([
    loadManaged(managedFile),
    Promise.all(mcpConfig.map((given) => loadGiven(given, paths.cwd))),
    loadState(paths, wants),
    Promise.all(projectOnes.map((file) => loadFile(file, fromProject))),
  ]);
  const readings = [managed, ...flags, state, ...project, ...layers.map(fromLayer)];
  const brokenConfig = flags
    .flatMap(({ diagnostics }) => diagnostics)
    .find(({ severity, code }) => severity === "error" || code === "mcp-no-servers");
  return {
    entries: readings.flatMap(({ entries }) => entries),
    diagnostics: readings.flatMap(({ diagnostics }) => diagnostics),
    brokenConfig,
    isExclusive: managed.isThere,
  };
}

/** `.mcp.json` from the working folder up to the root of the project; the nearer one wins a shared name. */
export function projectFiles({ cwd, projectRoot }: Pick<Paths, "cwd" | "projectRoot">): readonly string[] {
  const folders = [cwd];
  for (let at = cwd; at !== projectRoot && dirname(at) !== at; ) {
    at = dirname(at);
    folders.push(at);
  }
  const inside = folders.includes(projectRoot) ? folders : [cwd];
  return inside.map((folder) => join(folder, ".mcp.json"));
}

/** Where a person's own entries for one project are in their state file. */
function localServerPaths({ cwd, projectRoot }: Pick<Paths, "cwd" | "projectRoot">): readonly string[][] {
  return [...new Set([cwd, projectRoot])].map((folder) => ["projects", folder, "mcpServers"]);
}

interface Reading {
  readonly entries: readonly McpEntry[];
  readonly diagnostics: readonly Diagnostic[];
  readonly isThere: boolean;
}

type Origin = Pick<McpEntry, "scope"> & Partial<Pick<McpEntry, "file" | "fromRepository">>;

/** State files hold histories and grow; settings and server lists do not. */
const largestState = 64 * 1024 * 1024;

async function loadState(paths: Paths, wants: (scope: "user" | "local") => boolean): Promise<Reading> {
  const file = paths.stateFile;
  const content = await readBounded(file, largestState);
  if (content.type === "missing") return nothing;
  if (content.type === "unreadable") return failed(file, content.reason);
  if (content.text.trim() === "") return { ...nothing, isThere: true };
  const { value, diagnostic, locate } = parseJsonDocument(content.text, file);
  if (diagnostic !== undefined) return { entries: [], diagnostics: [diagnostic], isThere: true };
  const places: readonly (readonly [McpScope, readonly string[]])[] = [
    ...(wants("local") ? localServerPaths(paths).map((path) => ["local", path] as const) : []),
    ...(wants("user") ? [["user", ["mcpServers"]] as const] : []),
  ];
  const readings = places
    .map(([scope, path]) => ({ scope, path, servers: valueAt(value, path) }))
    .filter(({ servers }) => servers !== undefined && servers !== null)
    .map(({ scope, path, servers }) => readInner(servers, { scope, file }, { path, locate }));
  return {
    entries: readings.flatMap(({ entries }) => entries),
    diagnostics: readings.flatMap(({ diagnostics }) => diagnostics),
    isThere: true,
  };
}

/** Where others can write the organisation's file none of its servers is used; it still leaves no room for others. */
async function loadManaged(file: string): Promise<Reading> {
  const reading = await loadFile(file, { scope: "managed" });
  const why = reading.isThere ? await findForeignWriters(file) : undefined;
  if (why === undefined) return reading;
  return { ...reading, entries: [], diagnostics: [unsafeManagedDiagnostic(file, why, "is not used")] };
}

async function loadFile(file: string, origin: Origin): Promise<Reading> {
  const content = await readBounded(file);
  if (content.type === "missing") return nothing;
  if (content.type === "unreadable") return failed(file, content.reason);
  return readText(content.text, { ...origin, file });
}

async function loadGiven(given: string, cwd: string): Promise<Reading> {
  if (/^\s*[{["]/.test(given)) return readText(given, { scope: "flag" });
  const file = resolve(cwd, given);
  const content = await readBounded(file);
  if (content.type === "text") return readText(content.text, { scope: "flag", file });
  return failed(file, content.type === "missing" ? "there is no such file" : content.reason);
}

function readText(text: string, origin: Origin): Reading {
  const { value, diagnostic, locate } = parseJsonDocument(text, origin.file);
  if (diagnostic !== undefined) return { entries: [], diagnostics: [diagnostic], isThere: true };
  const { servers, issues } = readMcpServers(value);
  return {
    entries: (servers ?? []).map((config) => ({ fromRepository: false, ...origin, config, locate })),
    diagnostics: placeFindings(issues, origin.file, locate),
    isThere: true,
  };
}

/** The inside of `mcpServers`, read as such even where a server is called `servers`. */
function readInner(
  servers: unknown,
  origin: Origin,
  { path, locate }: { readonly path: DocumentPath; readonly locate: Locate },
): Reading {
  const reading = readMcpServers({ mcpServers: servers }, path.slice(0, -1));
  return {
    entries: (reading.servers ?? []).map((config) => ({ fromRepository: false, ...origin, config, locate })),
    diagnostics: placeFindings(reading.issues, origin.file, locate),
    isThere: true,
  };
}

const layerScopes: Readonly<Record<SettingsScope, McpScope>> = {
  user: "user",
  project: "project",
  local: "local",
  flags: "flag",
  managed: "managed",
};

/** Settings have no places for their parts any more, so these servers are placed by their file alone. */
function fromLayer({ source, settings }: SettingsLayer): Reading {
  const { mcpServers, managedMcpServers } = settings.plain;
  const origin = {
    scope: layerScopes[source.scope],
    fromRepository: isFromRepository(source.scope),
    file: source.file,
  };
  const readings = [mcpServers, managedMcpServers]
    .filter((servers) => isRecord(servers))
    .map((servers) => readInner(servers, origin, { path: ["mcpServers"], locate: () => undefined }));
  return {
    entries: readings.flatMap(({ entries }) => entries),
    diagnostics: readings.flatMap(({ diagnostics }) => diagnostics),
    isThere: true,
  };
}

const nothing: Reading = { entries: [], diagnostics: [], isThere: false };

function failed(file: string, reason: string): Reading {
  const diagnostic: Diagnostic = {
    severity: "error",
    code: "mcp-file-unreadable",
    message: `The MCP servers of ${quote(file, 300)} cannot be read: ${reason}.`,
    advice: "Check the path, and that it is a JSON file you may read.",
    file,
  };
  return { entries: [], diagnostics: [diagnostic], isThere: true };
}

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

interface JudgedServer {
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

/** What can be decided before variables have values. */
export function refuseByDenial(server: JudgedServer, policy: McpPolicy): string | undefined {
  if (policy.denied.some((entry) => matchesServer(entry, server, "deny")))
    return "`deniedMcpServers` names it";
  const isFree = ["plugin", "managed", "program"].includes(server.scope);
  return policy.pluginsOnly && !isFree
    ? "`strictPluginOnlyCustomization` leaves servers to plugins"
    : undefined;
}

function refuseUnlessAllowed(server: JudgedServer, policy: McpPolicy): string | undefined {
  const { allowed } = policy;
  if (allowed === undefined || (server.scope === "managed" && !policy.allowedByOrganisation))
    return undefined;
  // Where the list specifies which programs or addresses are meant, a name alone is not enough: anyone can take a name.
  const kind = server.forms.some(({ type }) => type === "stdio") ? "command" : "url";
  const byKind = allowed.filter(({ type }) => type === kind);
  const counting = byKind.length > 0 ? byKind : allowed.filter(({ type }) => type === "name");
  return counting.some((entry) => matchesServer(entry, server, "allow"))
    ? undefined
    : "`allowedMcpServers` does not name it";
}

function matchesServer(entry: PolicyEntry, { name, forms }: JudgedServer, use: "allow" | "deny"): boolean {
  if (entry.type === "name")
    return use === "allow"
      ? entry.name === name
      : mcpServerPart(entry.name).toLowerCase() === mcpServerPart(name).toLowerCase();
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
        .map((name) => quote(name, 40))
        .join(", ")
    : "";
  diagnostics.push({
    severity: "error",
    code: "mcp-policy-entry",
    message: `An entry of "${key}" holds ${keys === "" ? "nothing" : keys}, and names no server; it has no effect.`,
    advice: 'Write {"serverName": "…"}, {"serverCommand": ["…"]} or {"serverUrl": "…"}.',
    file,
  });
  return [];
}
