import { isRecord, type JsonRecord } from "../../foundation/json-record.ts";
import type { McpTransport } from "../../mcp/mcp-server.ts";
import { refused } from "./control-channel.ts";
import type { ControlHandler, ControlRequestOptions } from "./create-control-requests.ts";
import { serverScope, serverSource, serverStatus } from "./init-message.ts";
import type { OpenSdkSession } from "./open-sdk-session.ts";
import { type HostServerConfig, readServerConfig } from "./read-initialize.ts";

/** Requests about MCP servers. */
export function serverRequests(
  options: ControlRequestOptions,
): readonly (readonly [string, ControlHandler])[] {
  const { host } = options;
  return [
    ["mcp_status", async () => ({ mcpServers: describeServers(await host.ready()) })],
    ["mcp_set_servers", ({ servers }) => setServers(servers, options)],
    ["mcp_toggle", ({ serverName, enabled }) => toggleServer(serverName, enabled === true, options)],
    ["mcp_reconnect", ({ serverName }) => reconnectServer(serverName, options)],
    [
      "mcp_message",
      async ({ server_name: name, message }) => {
        (await host.ready()).receive(String(name), message);
        return {};
      },
    ],
  ];
}

function describeServers({ session }: OpenSdkSession): readonly JsonRecord[] {
  return session.mcpServers().map(({ name, scope, status, transport }) => ({
    name,
    status: serverStatus[status.type],
    scope: serverScope(scope),
    source: serverSource({ scope, ...(transport === undefined ? {} : { transport }) }),
    ...(transport === undefined ? {} : { transport: transport.type, ...configOf(transport) }),
    ...(status.type === "connected" ? { serverInfo: { name, version: status.version ?? "" } } : {}),
    ...("reason" in status ? { error: status.reason } : {}),
    tools: session.plan.tools
      .map((tool) => tool.name)
      .filter((tool) => tool.startsWith(`mcp__${name.replace(/[^A-Za-z0-9_-]/g, "_")}__`))
      .map((tool) => ({ name: tool.split("__").slice(2).join("__"), annotations: {} })),
  }));
}

/** How a server is reached; never the values of its variables and headers. */
function configOf(transport: McpTransport): JsonRecord {
  if (transport.type === "sdk") return {};
  const { type } = transport;
  return {
    config:
      type === "stdio"
        ? { type, command: transport.command, args: transport.args }
        : { type, url: transport.url },
  };
}

async function setServers(value: unknown, { host, choices }: ControlRequestOptions): Promise<JsonRecord> {
  if (!isRecord(value)) throw refused("`servers` must be an object");
  const before = [
    ...Object.keys(choices.servers.configured),
    ...choices.servers.inProcess.map(({ name }) => name),
  ];
  const entries = Object.entries(value);
  const isOwn = (config: unknown): boolean => isRecord(config) && config["type"] === "sdk";
  const inProcess: readonly HostServerConfig[] = entries
    .filter(([, config]) => isOwn(config))
    .map(([name, config]) => readServerConfig(name, config));
  const configured = Object.fromEntries(entries.filter(([, config]) => !isOwn(config)));
  choices.servers = { ...choices.servers, configured, inProcess };
  const opened = await host.reopen();
  const names = entries.map(([name]) => name);
  const states = opened.session.mcpServers().filter(({ name }) => names.includes(name));
  const errors = states.flatMap(({ name, status }) =>
    "reason" in status ? [[name, status.reason] as const] : [],
  );
  return {
    added: names.filter((name) => !before.includes(name)),
    removed: before.filter((name) => !names.includes(name)),
    errors: Object.fromEntries(errors),
  };
}

async function toggleServer(
  name: unknown,
  enabled: boolean,
  options: ControlRequestOptions,
): Promise<undefined> {
  const known = await serverNamed(name, options);
  const { choices } = options;
  const disabled = new Set(choices.servers.disabled);
  if (enabled) disabled.delete(known);
  else disabled.add(known);
  choices.servers = { ...choices.servers, disabled };
  await options.host.reopen();
}

async function reconnectServer(name: unknown, options: ControlRequestOptions): Promise<undefined> {
  const known = await serverNamed(name, options);
  const { session } = await options.host.reopen();
  const status = session.mcpServers().find((server) => server.name === known)?.status;
  if (status !== undefined && "reason" in status) throw refused(`${known}: ${status.reason}`);
}

async function serverNamed(name: unknown, { host, choices }: ControlRequestOptions): Promise<string> {
  const { session } = await host.ready();
  const names = [...session.mcpServers().map((server) => server.name), ...choices.servers.disabled];
  if (typeof name === "string" && names.includes(name)) return name;
  throw refused(`Server not found: ${String(name)}`);
}
