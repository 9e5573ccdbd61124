import { shown } from "../foundation/json-value.ts";
import type { Diagnostic } from "../foundation/diagnostic.ts";
import { expandTransport, type VariableLookup } from "../mcp/expand-variables.ts";
import type { McpTransport } from "../mcp/mcp-server.ts";
import { isHeader, refuseAddress } from "../mcp/server-transport.ts";
import type { McpEntry } from "./mcp-entry.ts";

export interface ExpandedEntry {
  readonly transport: McpTransport;
  readonly unusable?: string;
  readonly diagnostics: readonly Diagnostic[];
}

/** A server with its variables expanded, and what that shows to be wrong with it. */
export function expandMcpEntry(
  entry: McpEntry,
  written: McpTransport,
  lookup: VariableLookup,
): ExpandedEntry {
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

export function placeOf({ file, locate, config }: McpEntry): Partial<Diagnostic> {
  return { ...(file === undefined ? {} : { file }), ...locate(config.path) };
}
