import type { Diagnostic } from "@retinue/base/foundation/diagnostic.ts";
import { quote } from "@retinue/base/foundation/json-record.ts";
import { isProviderKey } from "@retinue/gate/command-environment.ts";
import { expandTransport, type VariableLookup, variablesIn } from "../mcp/expand-variables.ts";
import { mcpDefinitionHash } from "../mcp/mcp-definition-hash.ts";
import type { McpScope, McpServer, McpTransport } from "../mcp/mcp-transport.ts";
import { readOauth } from "../mcp/read-oauth.ts";
import { isHeader, refuseAddress } from "../mcp/read-transport.ts";
import { findSameSpelling, refuseServerName } from "../mcp/refuse-server-name.ts";
import { type McpEntry, type McpPolicy, refuseByDenial, refuseByPolicy } from "./load-mcp-entries.ts";
import type { SettingsLayer } from "./settings-layer.ts";

export interface ChosenServers {
  readonly servers: readonly McpServer[];
  readonly held: readonly HeldServer[];
  readonly asked: readonly AskedServer[];
  readonly diagnostics: readonly Diagnostic[];
}

const ranks: readonly McpScope[] = [
  "managed",
  "flag",
  "agent",
  "local",
  "project",
  "user",
  "plugin",
  "program",
];

/** Decides which servers are connected. Of two with one name the higher rank wins, among those that may be connected. */
export function chooseMcpServers(entries: readonly McpEntry[], facts: McpFacts): ChosenServers {
  const servers = new Map<string, McpServer>();
  const held: HeldServer[] = [];
  const asked: AskedServer[] = [];
  const diagnostics: Diagnostic[] = [];
  const ownNames = entries.filter(({ scope }) => scope === "user" || scope === "plugin").map(nameOf);
  for (const entry of ranks.flatMap((scope) => entries.filter((each) => each.scope === scope))) {
    const { name } = entry.config;
    const replacesOwn = ownNames.includes(name) || findSameSpelling(name, ownNames) !== undefined;
    const verdict = judgeMcpEntry(entry, { facts, replacesOwn, taken: servers.keys() });
    diagnostics.push(...verdict.diagnostics);
    if (verdict.type === "server") servers.set(name, verdict.server);
    else if (verdict.type === "ask") asked.push(verdict.asked);
    else held.push(verdict.held);
  }
  return { servers: [...servers.values()], held, asked, diagnostics };
}

function nameOf({ config }: McpEntry): string {
  return config.name;
}

type HoldKind =
  | "untrusted"
  | "rejected"
  | "not-approved"
  | "changed"
  | "disabled"
  | "denied"
  | "unusable"
  | "name-refused"
  | "left-out"
  | "shadowed";

/** A server that is configured and not connected, and why. */
export interface HeldServer {
  readonly entry: McpEntry;
  readonly code: HoldKind;
  readonly reason: string;
  readonly advice?: string;
}

/** A server that waits for a person's word. */
export interface AskedServer {
  readonly entry: McpEntry;
  readonly hash: string;
  readonly reason: string;
}

export interface McpFacts extends ApprovalFacts {
  readonly policy: McpPolicy;
  /** Only what was given for this run counts. */
  readonly strict: boolean;
  /** The organisation's file is the only one that counts. */
  readonly exclusive: boolean;
  readonly lookup: VariableLookup;
  /** By hash, what the person answered in this session. */
  readonly answers?: ReadonlyMap<string, boolean>;
}

type EntryVerdict = { readonly diagnostics: readonly Diagnostic[] } & (
  | { readonly type: "server"; readonly server: McpServer }
  | { readonly type: "ask"; readonly asked: AskedServer }
  | { readonly type: "held"; readonly held: HeldServer }
);

interface EntryFacts {
  readonly facts: McpFacts;
  readonly replacesOwn: boolean;
  readonly taken: Iterable<string>;
}

/** Decides about one server, given those that rank above it. */
function judgeMcpEntry(entry: McpEntry, { facts, replacesOwn, taken }: EntryFacts): EntryVerdict {
  const { config, scope } = entry;
  const hold = (code: HoldKind, reason: string, advice?: string, diagnostics: readonly Diagnostic[] = []) =>
    ({
      type: "held",
      held: { entry, code, reason, advice },
      diagnostics,
    }) as const;
  const refused = refuseBeforeAsking(entry, facts);
  if (refused !== undefined) return hold(...refused);
  const written = config.transport;
  if (written === undefined) return hold("unusable", config.unusable ?? "it cannot be used");
  const others = [...taken];
  if (others.includes(config.name)) return hold("shadowed", "another server of this name takes precedence");
  const same = findSameSpelling(config.name, others);
  if (same !== undefined) {
    const reason = `its tools would have the same names as those of ${quote(same)}`;
    return hold("name-refused", reason, "Rename one of them.", [nameDiagnostic(entry, reason)]);
  }
  if (entry.needsTrust === true && !facts.trusted)
    return hold("untrusted", untrusted.reason, untrusted.advice);
  const keys = [...new Set(variablesIn(JSON.stringify(config.written)))].filter(isProviderKey);
  if (entry.needsTrust === true && keys.length > 0)
    return hold(
      "not-approved",
      wantsKeys(keys),
      "Configure the server in your own settings, or in .mcp.json, where it can be approved.",
    );
  if (entry.fromRepository) {
    const hash = mcpDefinitionHash(config.written);
    const answer = facts.answers?.get(hash);
    if (answer === false) return hold("not-approved", "the user rejected it in this session");
    const verdict = decideProjectServer({ name: config.name, hash, replacesOwn, keys }, facts);
    if (verdict.type === "hold") return hold(verdict.code, verdict.reason, verdict.advice);
    if (verdict.type === "ask" && answer !== true)
      return { type: "ask", asked: { entry, hash, reason: verdict.reason }, diagnostics: [] };
  }
  const expanded = expandMcpEntry(entry, written, facts.lookup);
  if (expanded.unusable !== undefined)
    return hold("unusable", expanded.unusable, undefined, expanded.diagnostics);
  const { transport } = expanded;
  const denied = refuseByPolicy({ name: config.name, scope, forms: [written, transport] }, facts.policy);
  if (denied !== undefined) return hold("denied", denied, undefined, expanded.diagnostics);
  const server: McpServer = {
    name: config.name,
    transport,
    scope,
    file: entry.file,
    timeoutMs: config.timeoutMs,
    ...(config.alwaysLoad ? { alwaysLoad: true } : {}),
  };
  return { type: "server", server, diagnostics: expanded.diagnostics };
}

/** What can be decided without looking at trust, so that no question is asked about a server that will not run anyway. */
function refuseBeforeAsking(
  { config, scope }: McpEntry,
  { strict, exclusive, policy }: McpFacts,
): [HoldKind, string, string?] | undefined {
  if (exclusive && scope !== "managed")
    return ["left-out", "the organisation's managed-mcp.json allows no other servers"];
  if (strict && !["flag", "program"].includes(scope))
    return ["left-out", "--strict-mcp-config leaves it out"];
  const name = scope === "plugin" ? config.name.split(":").slice(2).join(":") : config.name;
  const reserved =
    scope !== "plugin" && /^plugin:/i.test(name)
      ? "names that begin with `plugin:` are reserved for plugins' servers"
      : undefined;
  const badName = reserved ?? refuseServerName(name);
  if (badName !== undefined)
    return ["name-refused", badName, "Give it a name of letters, digits and hyphens."];
  if (config.disabled)
    return ["disabled", "it is `disabled` in its configuration", "Remove `disabled` to use it."];
  if (config.transport === undefined) return ["unusable", config.unusable ?? "it cannot be used"];
  const denied = refuseByDenial({ name: config.name, scope, forms: [config.transport] }, policy);
  return denied === undefined ? undefined : ["denied", denied];
}

function nameDiagnostic(entry: McpEntry, reason: string): Diagnostic {
  return {
    severity: "warning",
    code: "mcp-name-refused",
    message: `The MCP server ${quote(entry.config.name)} is not used: ${reason}.`,
    advice: "Rename one of them.",
    ...placeOf(entry),
  };
}

interface ExpandedEntry {
  readonly transport: McpTransport;
  readonly unusable?: string;
  readonly diagnostics: readonly Diagnostic[];
}

/** A server with its variables expanded, and what that shows to be wrong with it. */
function expandMcpEntry(entry: McpEntry, written: McpTransport, lookup: VariableLookup): ExpandedEntry {
  const { value, missing } = expandTransport(written, (name) => entry.variables?.get(name) ?? lookup(name));
  const transport: McpTransport =
    value.type === "stdio" ? { ...value, env: { ...entry.extraEnv, ...value.env } } : value;
  const unusable = refuseExpanded(transport);
  return {
    transport,
    unusable,
    diagnostics: missing.length === 0 ? [] : [unsetDiagnostic(entry, missing)],
  };
}

function refuseExpanded(transport: McpTransport): string | undefined {
  if (transport.type === "sdk") return undefined;
  if (transport.type === "stdio") return transport.command.trim() === "" ? "its command is empty" : undefined;
  const bad = Object.entries(transport.headers).find(([name, value]) => !isHeader(name, value));
  if (bad !== undefined) return `the value of its header ${quote(bad[0], 40)} contains a line break`;
  if (transport.url.trim() === "") return "its URL is empty";
  const oauth = transport.oauth === undefined ? undefined : readOauth(transport.oauth);
  if (typeof oauth === "string") return oauth;
  if (Object.values(transport.oauth ?? {}).some((value) => String(value).includes("${")))
    return "its `oauth` contains a variable that is not set";
  return transport.url.includes("${")
    ? "its URL contains a variable that is not set"
    : refuseAddress(transport.url);
}

function unsetDiagnostic(entry: McpEntry, names: readonly string[]): Diagnostic {
  const list = names.map((name) => `\${${name}}`).join(", ");
  return {
    severity: "warning",
    code: "mcp-variable-unset",
    message: `The MCP server ${quote(entry.config.name)} asks for ${list}, which is not set; the placeholder was left as written.`,
    advice: `Set it, or write a default: \${${names[0]}:-…}.`,
    ...placeOf(entry),
  };
}

function placeOf({ file, locate, config }: McpEntry): Partial<Diagnostic> {
  return { file, ...locate(config.path) };
}

/** What people have said about the servers of a project. */
interface McpApprovals {
  /** By name, from places that a repository does not bring along. */
  readonly enabled: ReadonlySet<string>;
  readonly allEnabled: boolean;
  readonly disabled: ReadonlySet<string>;
  /** The hash of each definition that was approved here; "unreadable" means that it is not known. */
  readonly recorded: ReadonlyMap<string, string> | "unreadable";
}

interface ProjectServer {
  readonly name: string;
  readonly hash: string;
  /** It would take the place of a server of the person's own. */
  readonly replacesOwn: boolean;
  /** Variables it asks for that hold keys of the person's model providers. */
  readonly keys?: readonly string[];
}

export interface ApprovalFacts {
  readonly trusted: boolean;
  /** A person can be asked. */
  readonly attended: boolean;
  readonly approvals: McpApprovals;
}

type ApprovalVerdict =
  | { readonly type: "connect" }
  | { readonly type: "ask"; readonly reason: string }
  | {
      readonly type: "hold";
      readonly code: "untrusted" | "rejected" | "not-approved" | "changed";
      readonly reason: string;
      readonly advice: string;
    };

const untrusted = {
  reason: "the folder is not trusted",
  advice: "`retinue trust` shows what the folder would run, and asks; --trust counts for one run.",
} as const;

function wantsKeys(keys: readonly string[]): string {
  return `it asks for ${keys.join(", ")}, which has not been approved`;
}

/** Whether a server that came with a project may be started. */
export function decideProjectServer(
  { name, hash, replacesOwn, keys = [] }: ProjectServer,
  { trusted, attended, approvals }: ApprovalFacts,
): ApprovalVerdict {
  if (!trusted) return { type: "hold", code: "untrusted", ...untrusted };
  const advice = `Look at it with \`retinue mcp get ${name}\`, then \`retinue mcp approve ${name}\`.`;
  if (approvals.disabled.has(name)) {
    return { type: "hold", code: "rejected", reason: "`disabledMcpjsonServers` names it", advice };
  }
  const { recorded } = approvals;
  const approved = recorded === "unreadable" ? "" : recorded.get(name);
  if (approved === hash) return { type: "connect" };
  if (approved !== undefined) {
    const reason =
      recorded === "unreadable"
        ? "the record of what was approved cannot be read"
        : "its definition has changed since it was approved";
    return attended ? { type: "ask", reason } : { type: "hold", code: "changed", reason, advice };
  }
  // A person who approved a name, or all of them, was not informed that a key goes with it.
  if (keys.length > 0)
    return attended
      ? { type: "ask", reason: wantsKeys(keys) }
      : { type: "hold", code: "not-approved", reason: wantsKeys(keys), advice };
  if (approvals.allEnabled || approvals.enabled.has(name)) return { type: "connect" };
  if (attended) return { type: "ask", reason: "it came with the project and has not been approved" };
  if (!replacesOwn) return { type: "connect" };
  const reason = "it would replace your own server of this name, and that has not been approved";
  return { type: "hold", code: "not-approved", reason, advice };
}

/** The committed settings of a project reject servers but never approve them, or a repository would approve itself. */
export function readApprovalSettings(layers: readonly SettingsLayer[]): Omit<McpApprovals, "recorded"> {
  const approving = layers
    .filter(({ source }) => source.scope !== "project")
    .map(({ settings }) => settings.plain);
  return {
    enabled: new Set(approving.flatMap(({ enabledMcpjsonServers }) => enabledMcpjsonServers ?? [])),
    allEnabled: approving.some(({ enableAllProjectMcpServers }) => enableAllProjectMcpServers === true),
    disabled: new Set(layers.flatMap(({ settings }) => settings.plain.disabledMcpjsonServers ?? [])),
  };
}
