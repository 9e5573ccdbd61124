import type { DocumentPath, Issue } from "../foundation/diagnostic.ts";
import type { AgentMcpServer } from "./agent-definition.ts";
import { isMapping } from "./read-frontmatter.ts";

interface ServersReport {
  readonly unreadable: (reason: string) => undefined;
  readonly issues: Issue[];
  readonly path: DocumentPath;
}

/** More come from a mistake or from repeated YAML aliases, never from a person. */
const maxServers = 1000;

/** Reads `mcpServers`: names, `{name: config}` entries, `{serverName, tools}` entries, or one mapping of all servers. */
export function readMcpServersField(
  value: unknown,
  to: ServersReport,
): readonly AgentMcpServer[] | undefined {
  if (value === null || value === undefined) return undefined;
  if (typeof value === "string") return value.split(",").flatMap((name) => reference(name));
  if (isMapping(value)) return fromMapping(value, to, []);
  if (!Array.isArray(value)) return to.unreadable("it is neither a list nor a mapping");
  if (value.length > maxServers) return to.unreadable(`it names more than ${maxServers} servers`);
  return value.flatMap((entry: unknown, index): readonly AgentMcpServer[] => {
    if (typeof entry === "string") return reference(entry);
    if (isMapping(entry)) return fromMapping(entry, to, [index]);
    to.issues.push(dropped([...to.path, index], "an entry is neither a name nor a `name: config` mapping"));
    return [];
  });
}

function fromMapping(
  entry: Record<string, unknown>,
  to: ServersReport,
  at: DocumentPath,
): readonly AgentMcpServer[] {
  if (typeof entry["serverName"] === "string") return narrowed(entry["serverName"], entry["tools"], to, at);
  const servers = Object.entries(entry);
  if (servers.length > maxServers) return to.unreadable(`it names more than ${maxServers} servers`) ?? [];
  return servers.flatMap(([name, config]): readonly AgentMcpServer[] => {
    if (config === null || config === true) return reference(name);
    if (isMapping(config)) return [{ type: "inline", name, config }];
    to.issues.push(dropped([...to.path, ...at, name], `the configuration of \`${name}\` is not a mapping`));
    return [];
  });
}

/** `tools` limits the server, so a value that cannot be read drops the server instead of opening all of it. */
function narrowed(
  name: string,
  tools: unknown,
  to: ServersReport,
  at: DocumentPath,
): readonly AgentMcpServer[] {
  if (tools === undefined || tools === null) return reference(name);
  const names = typeof tools === "string" ? tools.split(",").map((tool) => tool.trim()) : tools;
  if (Array.isArray(names) && names.every((tool) => typeof tool === "string")) {
    return [{ type: "reference", name, tools: names }];
  }
  to.issues.push(dropped([...to.path, ...at, "tools"], `\`tools\` of \`${name}\` is not a list of names`));
  return [];
}

function reference(name: string): readonly AgentMcpServer[] {
  return name.trim() === "" ? [] : [{ type: "reference", name: name.trim() }];
}

function dropped(path: DocumentPath, reason: string): Issue {
  return {
    severity: "warning",
    code: "mcp-server-dropped",
    message: `An MCP server was left out: ${reason}.`,
    advice: "Write the server's name, or `name:` with `command` or `url` below it.",
    path,
  };
}
