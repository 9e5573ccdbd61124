import { mcpDefinitionHash } from "@retinue/config/mcp/mcp-definition-hash.ts";
import { readServer } from "@retinue/config/mcp/mcp-server-config.ts";
import type { McpScope } from "@retinue/config/mcp/mcp-transport.ts";
import { refuseAddress } from "@retinue/config/mcp/read-transport.ts";
import { findSameSpelling, refuseServerName } from "@retinue/config/mcp/refuse-server-name.ts";
import { chooseMcpServers, readApprovalSettings } from "@retinue/config/settings/choose-mcp-servers.ts";
import { type McpEntry, readMcpPolicy } from "@retinue/config/settings/load-mcp-entries.ts";
import { mergeSettings } from "@retinue/config/settings/settings-layer.ts";
import { caseFiles, fieldsOf, isTrusted, layerOf, texts } from "./case-settings.ts";
import { type Answer, type Fields, NotHonoured, type Roots, type SecurityCase } from "./security-case.ts";

/** Whether a server may go by its name beside those there are. */
export function judgeMcpName({ context = {} }: SecurityCase): Answer {
  const { name } = context;
  if (typeof name !== "string") throw new NotHonoured("the case names no server");
  const isTaken = findSameSpelling(name, texts(context["existing"])) !== undefined;
  return refuseServerName(name) !== undefined || isTaken ? "deny" : "allow";
}

/** Whether a server would be started, asked about, or left alone. */
export async function judgeMcpServer(testCase: SecurityCase, roots: Roots): Promise<Answer> {
  const { context = {}, interactive = true } = testCase;
  const endpoints = Object.values(fieldsOf(context["oauth"])).filter((value) => typeof value === "string");
  if (endpoints.some((endpoint) => refuseAddress(endpoint) !== undefined)) return "deny";
  const { approved, rejected } = context;
  const entry = entryOf(context);
  const layers = caseFiles(testCase).map((file) => layerOf(file, roots));
  const trusted = await isTrusted(testCase, roots);
  const { policy } = readMcpPolicy(mergeSettings(layers, { trusted }));
  const hash = mcpDefinitionHash(entry.config.written);
  const { servers, asked } = chooseMcpServers([entry], {
    trusted,
    attended: interactive,
    approvals: {
      ...readApprovalSettings(layers),
      recorded: new Map(approved === undefined ? [] : [[entry.config.name, mcpDefinitionHash(approved)]]),
    },
    policy,
    strict: context["strict"] === true,
    exclusive: false,
    lookup: () => undefined,
    ...(rejected === true ? { answers: new Map([[hash, false]]) } : {}),
  });
  if (servers.length > 0) return "allow";
  return asked.length > 0 ? "ask" : "deny";
}

/** Where a server of a case is, and what that needs. */
const places: Readonly<Record<string, Pick<McpEntry, "scope" | "fromRepository" | "needsTrust">>> = {
  managed: { scope: "managed", fromRepository: false },
  user: { scope: "user", fromRepository: false },
  local: { scope: "local", fromRepository: false },
  project: { scope: "project", fromRepository: true },
  plugin: { scope: "plugin", fromRepository: false },
  flag: { scope: "flag", fromRepository: false },
  agent: { scope: "agent", fromRepository: false },
  "user-agent": { scope: "agent", fromRepository: false },
  "project-agent": { scope: "agent", fromRepository: false, needsTrust: true },
} satisfies Readonly<Record<string, { readonly scope: McpScope } & Partial<McpEntry>>>;

function entryOf({ scope = "user", server, name }: Fields): McpEntry {
  const place = places[String(scope)];
  if (place === undefined) throw new NotHonoured(`no MCP server is in the scope ${String(scope)}`);
  const written = typeof name === "string" ? name : "server";
  const own = place.scope === "plugin" && !written.startsWith("plugin:") ? `plugin:p:${written}` : written;
  return {
    ...place,
    config: readServer(own, server ?? { command: "server" }, [], []),
    locate: () => undefined,
  };
}
