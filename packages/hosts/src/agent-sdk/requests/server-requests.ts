import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { ruleOfServer } from "@retinue/core/kernel/live/live-policy.ts";
import type { SessionServer } from "@retinue/core/kernel/servers/session-servers.ts";
import { refused } from "../control-channel.ts";
import { serverScope, serverSource, serverStatus } from "../init-message.ts";
import type { OpenSdkSession } from "../open-sdk-session.ts";
import { type HostServerConfig, readServerConfig } from "../read-initialize.ts";
import type { ControlHandler, ControlRequestOptions } from "./create-control-requests.ts";

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
    ["mcp_read_resource", (request, signal) => readResource(request, options, signal)],
    ["mcp_call", (request, signal) => callTool(request, options, signal)],
    ["set_mcp_permission_mode_override", (request) => overrideMode(request, options)],
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
    status: serverStatus(status),
    scope: serverScope(scope),
    source: serverSource({ scope, transport }),
    ...(transport === undefined ? {} : { transport: transport.type, ...configOf(transport) }),
    ...(status.type === "connected" ? { serverInfo: { name, version: status.version ?? "" } } : {}),
    ...("reason" in status ? { error: status.reason } : {}),
    tools: session.plan.tools
      .map((tool) => tool.name)
      .filter((tool) => tool.startsWith(`${ruleOfServer(name)}__`))
      .map((tool) => ({ name: tool.split("__").slice(2).join("__"), annotations: {} })),
  }));
}

/** How a server is reached; never the values of its variables and headers. */
function configOf(transport: NonNullable<SessionServer["transport"]>): JsonRecord {
  if (transport.type === "sdk") return {};
  const { type } = transport;
  return {
    config:
      type === "stdio"
        ? { type, command: transport.command, args: transport.args }
        : { type, url: transport.url },
  };
}

/** A page that a server offers for its tools; everything else is read by the agent, under its permissions. */
async function readResource(
  { serverName: name, uri }: JsonRecord,
  options: ControlRequestOptions,
  signal: AbortSignal,
): Promise<JsonRecord> {
  if (typeof name !== "string") throw refused("mcp_read_resource: serverName must be a string");
  if (typeof uri !== "string" || !uri.startsWith("ui://"))
    throw refused("mcp_read_resource: uri must use the ui:// scheme");
  const result = await ask({ name, method: "resources/read", parameters: { uri } }, options, signal);
  return { contents: isRecord(result) && Array.isArray(result["contents"]) ? result["contents"] : [] };
}

/** A call of the host itself, without a model and without asking anyone. */
async function callTool(request: JsonRecord, options: ControlRequestOptions, signal: AbortSignal) {
  const { tool, arguments: given } = request;
  const [server, name] = typeof tool === "string" ? await toolNamed(tool, options) : [];
  if (server === undefined || name === undefined)
    throw refused(`Not a fully-qualified MCP tool name: ${String(tool)}`);
  const known = ["subtype", "tool", "arguments"];
  const other = Object.keys(request).find((key) => !known.includes(key));
  if (other !== undefined) throw refused(`mcp_call: ${other} is not supported`);
  const parameters = { name, arguments: isRecord(given) ? given : {} };
  const result = await ask({ name: server, method: "tools/call", parameters }, options, signal);
  return isRecord(result) ? result : {};
}

/** The server and the tool's own name behind `mcp__server__tool`. */
async function toolNamed(tool: string, { host }: ControlRequestOptions): Promise<readonly string[]> {
  const { session } = await host.ready();
  const server = session.mcpServers().find(({ name }) => tool.startsWith(`${ruleOfServer(name)}__`));
  return server === undefined ? [] : [server.name, tool.slice(`${ruleOfServer(server.name)}__`.length)];
}

async function ask(
  {
    name,
    method,
    parameters,
  }: { readonly name: string; readonly method: string; readonly parameters: JsonRecord },
  options: ControlRequestOptions,
  signal: AbortSignal,
): Promise<unknown> {
  const server = await serverNamed(name, options);
  const { session } = await options.host.ready();
  if (session.mcpServers().find((each) => each.name === server)?.transport?.type === "sdk")
    throw refused(`${server} is in your own process; call it there`);
  const end = await options.mcp?.request(server, method, parameters, { signal });
  if (end?.type === "answered") return end.result;
  throw refused(end?.reason ?? `MCP server not connected: ${server}`);
}

/** A server may be held to being asked about, whatever the mode of the session allows; never the other way. */
async function overrideMode(
  { serverName: name, mode }: JsonRecord,
  options: ControlRequestOptions,
): Promise<JsonRecord> {
  if (typeof name !== "string")
    throw refused("set_mcp_permission_mode_override: serverName must be a string");
  if (mode !== null && mode !== "default")
    throw refused(
      `an override can only tighten the mode ("default") or be taken back (null), not ${JSON.stringify(mode)}`,
    );
  const server = await serverNamed(name, options);
  const rules = [{ toolName: ruleOfServer(server) }];
  const type = mode === null ? "removeRules" : "addRules";
  await options.policy.update({ type, behavior: "ask", rules, destination: "session" });
  return {};
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
