import type { Diagnostic } from "../foundation/diagnostic.ts";
import { shown } from "../foundation/json-record.ts";
import { expandTransport, type VariableLookup } from "../mcp/expand-variables.ts";
import { mcpDefinitionHash } from "../mcp/mcp-definition-hash.ts";
import type { McpServer, McpTransport } from "../mcp/mcp-server.ts";
import { isHeader, refuseAddress } from "../mcp/read-transport.ts";
import { findSameSpelling, refuseServerName } from "../mcp/refuse-server-name.ts";
import { type ApprovalFacts, decideProjectServer, untrusted } from "./mcp-approval.ts";
import type { McpEntry } from "./mcp-entry.ts";
import { type McpPolicy, refuseByDenial, refuseByPolicy } from "./mcp-policy.ts";

export type HoldKind =
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
export function judgeMcpEntry(entry: McpEntry, { facts, replacesOwn, taken }: EntryFacts): EntryVerdict {
  const { config, scope } = entry;
  const hold = (code: HoldKind, reason: string, advice?: string, diagnostics: readonly Diagnostic[] = []) =>
    ({
      type: "held",
      held: { entry, code, reason, ...(advice === undefined ? {} : { advice }) },
      diagnostics,
    }) as const;
  const refused = refuseBeforeAsking(entry, facts);
  if (refused !== undefined) return hold(...refused);
  const written = config.transport;
  if (written === undefined) return hold("unusable", config.unusable ?? "it cannot be used");
  const others = [...taken];
  if (others.includes(config.name)) return hold("shadowed", "another of this name ranks above it");
  const same = findSameSpelling(config.name, others);
  if (same !== undefined) {
    const reason = `its tools would have the same names as those of ${shown(same)}`;
    return hold("name-refused", reason, "Give one of them another name.", [nameDiagnostic(entry, reason)]);
  }
  if (entry.needsTrust === true && !facts.trusted)
    return hold("untrusted", untrusted.reason, untrusted.advice);
  if (entry.fromRepository) {
    const hash = mcpDefinitionHash(config.written);
    const answer = facts.answers?.get(hash);
    if (answer === false) return hold("not-approved", "the person refused it in this session");
    const verdict = decideProjectServer({ name: config.name, hash, replacesOwn }, facts);
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
    ...(entry.file === undefined ? {} : { file: entry.file }),
    ...(config.timeoutMs === undefined ? {} : { timeoutMs: config.timeoutMs }),
  };
  return { type: "server", server, diagnostics: expanded.diagnostics };
}

/** What can be said without looking at trust, so that no one is asked about a server that will not run anyway. */
function refuseBeforeAsking(
  { config, scope }: McpEntry,
  { strict, exclusive, policy }: McpFacts,
): [HoldKind, string, string?] | undefined {
  if (exclusive && scope !== "managed")
    return ["left-out", "the organisation's managed-mcp.json leaves no room for others"];
  if (strict && !["flag", "program"].includes(scope))
    return ["left-out", "--strict-mcp-config leaves it out"];
  const name = scope === "plugin" ? config.name.split(":").slice(2).join(":") : config.name;
  const reserved =
    scope !== "plugin" && /^plugin:/i.test(name)
      ? "`plugin:` begins the names of plugins' servers"
      : undefined;
  const badName = reserved ?? refuseServerName(name);
  if (badName !== undefined)
    return ["name-refused", badName, "Give it a name of letters, digits and hyphens."];
  if (config.disabled)
    return ["disabled", "its configuration says `disabled`", "Remove `disabled` to use it."];
  if (config.transport === undefined) return ["unusable", config.unusable ?? "it cannot be used"];
  const denied = refuseByDenial({ name: config.name, scope, forms: [config.transport] }, policy);
  return denied === undefined ? undefined : ["denied", denied];
}

function nameDiagnostic(entry: McpEntry, reason: string): Diagnostic {
  return {
    severity: "warning",
    code: "mcp-name-refused",
    message: `The MCP server ${shown(entry.config.name)} is not used: ${reason}.`,
    advice: "Give one of them another name.",
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
    ...(unusable === undefined ? {} : { unusable }),
    diagnostics: missing.length === 0 ? [] : [unsetDiagnostic(entry, missing)],
  };
}

function refuseExpanded(transport: McpTransport): string | undefined {
  if (transport.type === "sdk") return undefined;
  if (transport.type === "stdio") return transport.command.trim() === "" ? "its command is empty" : undefined;
  const bad = Object.entries(transport.headers).find(([name, value]) => !isHeader(name, value));
  if (bad !== undefined) return `the value of its header ${shown(bad[0], 40)} holds a line break`;
  if (transport.url.trim() === "") return "its URL is empty";
  return transport.url.includes("${")
    ? "its URL holds a variable that is not set"
    : refuseAddress(transport.url);
}

function unsetDiagnostic(entry: McpEntry, names: readonly string[]): Diagnostic {
  const list = names.map((name) => `\${${name}}`).join(", ");
  return {
    severity: "warning",
    code: "mcp-variable-unset",
    message: `The MCP server ${shown(entry.config.name)} asks for ${list}, which is not set; it stays as it is written.`,
    advice: `Set it, or write a default: \${${names[0]}:-…}.`,
    ...placeOf(entry),
  };
}

function placeOf({ file, locate, config }: McpEntry): Partial<Diagnostic> {
  return { ...(file === undefined ? {} : { file }), ...locate(config.path) };
}
