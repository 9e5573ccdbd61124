import { mcpDefinitionHash } from "../../src/mcp/definition-hash.ts";
import { readServer } from "../../src/mcp/server-config.ts";
import { findSameSpelling, refuseServerName } from "../../src/mcp/server-name.ts";
import { refuseAddress } from "../../src/mcp/server-transport.ts";
import { chooseMcpServers } from "../../src/settings/choose-mcp-servers.ts";
import { readApprovalSettings } from "../../src/settings/mcp-approval.ts";
import type { McpEntry } from "../../src/settings/mcp-entry.ts";
import { readMcpPolicy } from "../../src/settings/mcp-policy.ts";
import { mergeSettings } from "../../src/settings/merge-settings.ts";
import { readSettings } from "../../src/settings/settings.ts";
import type { SettingsLayer } from "../../src/settings/settings-layer.ts";
import { fieldsOf, texts } from "./case-policy.ts";
import type { Answer, Fields, Roots, SecurityCase } from "./security-case.ts";

/** Whether a server may go by its name beside those there are. */
export function judgeMcpName({ context = {} }: SecurityCase): Answer {
  const name = String(context["name"]);
  const isTaken = findSameSpelling(name, texts(context["existing"])) !== undefined;
  return refuseServerName(name) !== undefined || isTaken ? "deny" : "allow";
}

/** Whether a server would be started, asked about, or left alone. */
export function judgeMcpServer(
  { context = {}, trusted = true, interactive = true }: SecurityCase,
  { P }: Roots,
): Answer {
  const { authorization_endpoint: endpoint } = fieldsOf(context["oauth"]);
  if (typeof endpoint === "string" && refuseAddress(endpoint) !== undefined) return "deny";
  const { approved } = context;
  const layer = repositoryLayer(context, P);
  const { policy } = readMcpPolicy(mergeSettings([layer], { trusted }));
  const { servers, asked } = chooseMcpServers([entryOf(context)], {
    trusted,
    attended: interactive,
    approvals: {
      ...readApprovalSettings([layer]),
      recorded: new Map(approved === undefined ? [] : [["server", mcpDefinitionHash(approved)]]),
    },
    policy,
    strict: false,
    exclusive: false,
    lookup: () => undefined,
  });
  if (servers.length > 0) return "allow";
  return asked.length > 0 ? "ask" : "deny";
}

function entryOf({ scope, server }: Fields): McpEntry {
  return {
    config: readServer("server", server ?? { command: "server" }, [], []),
    scope: scope === "project" || scope === "local" || scope === "user" ? scope : "agent",
    fromRepository: scope === "project",
    needsTrust: scope === "project-agent",
    locate: () => undefined,
  };
}

/** What the case says its repository's own settings hold. */
function repositoryLayer({ projectSettings }: Fields, anchor: string): SettingsLayer {
  const { settings } = readSettings(fieldsOf(projectSettings), { scope: "project" });
  return { source: { scope: "project", anchor }, settings };
}
