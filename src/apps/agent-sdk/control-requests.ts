import { open } from "node:fs/promises";
import { resolve } from "node:path";
import { isRecord, type JsonRecord } from "../../foundation/json-record.ts";
import { RetinueError } from "../../foundation/retinue-error.ts";
import type { PermissionMode } from "../../permissions/permission-mode.ts";
import { hasEnded } from "../../tasks/task-state.ts";
import type { FileCheckpoints } from "./file-checkpoints.ts";
import {
  describeAgents,
  describeCommands,
  describeModels,
  followedVersion,
  serverStatus,
} from "./init-message.ts";
import type { LivePolicy } from "./live-policy.ts";
import type { PromptQueue } from "./prompt-queue.ts";
import { type HostServerConfig, readServerConfig } from "./read-initialize.ts";
import type { SdkHost } from "./sdk-host.ts";
import type { HostServers, OpenSdkSession } from "./session-adapter.ts";

/** What a host may change of the running session; read by whoever opens and drives it. */
export interface Choices {
  model: string | undefined;
  effort: string | number | undefined;
  servers: HostServers;
  perTaskStopAffordance: boolean;
}

export interface ControlRequestOptions {
  readonly host: SdkHost;
  readonly queue: PromptQueue;
  readonly policy: LivePolicy;
  readonly choices: Choices;
  /** Absent where the host did not ask for file checkpoints. */
  readonly checkpoints: FileCheckpoints | undefined;
  readonly startedAt: number;
}

type Handler = (
  request: JsonRecord,
  signal: AbortSignal,
) => Promise<JsonRecord | undefined> | JsonRecord | undefined;

/** The requests of a host besides `initialize`, by subtype. What is not in the table gets an error answer. */
export function createControlRequests(options: ControlRequestOptions): ReadonlyMap<string, Handler> {
  const { host, queue, policy, choices } = options;
  const session = (): Promise<OpenSdkSession> => host.ready();
  return new Map<string, Handler>([
    ["interrupt", (request) => interrupt(request, options)],
    ["set_permission_mode", ({ mode }) => ({ mode: policy.setMode(mode) })],
    ["set_model", ({ model }) => setModel(model, options)],
    ["set_max_thinking_tokens", ({ max_thinking_tokens: tokens }) => setThinking(tokens, choices)],
    ["stop_task", ({ task_id: id }) => stopTask(id, options)],
    ["background_tasks", ({ tool_use_id: id }) => moveToBackground(id, options)],
    ["mcp_status", async () => ({ mcpServers: describeServers(await session()) })],
    ["mcp_set_servers", ({ servers }) => setServers(servers, options)],
    ["mcp_toggle", ({ serverName, enabled }) => toggleServer(serverName, enabled === true, options)],
    ["mcp_reconnect", ({ serverName }) => reconnectServer(serverName, options)],
    [
      "mcp_message",
      async ({ server_name: name, message }) => {
        (await session()).receive(String(name), message);
        return {};
      },
    ],
    ["get_context_usage", async () => contextUsage(await session(), options)],
    [
      "get_usage",
      () => ({
        session: usage(options),
        subscription_type: null,
        rate_limits_available: false,
        rate_limits: null,
        behaviors: null,
      }),
    ],
    ["get_session_cost", () => ({ total_cost_usd: host.totals.cost() })],
    ["get_binary_version", () => ({ version: followedVersion })],
    ["list_models", async () => ({ models: describeModels((await session()).session) })],
    ["reload_skills", async () => ({ skills: describeCommands((await host.reopen()).session.skills) })],
    ["reload_plugins", async () => describePlugins(await host.reopen())],
    ["reload_output_styles", () => ({ available_output_styles: ["default"] })],
    ["read_file", (request) => readFile(request, options)],
    [
      "cancel_async_message",
      ({ message_uuid: id }) => ({ cancelled: typeof id === "string" && queue.cancel(id) }),
    ],
    ["rewind_files", (request) => rewind(request, options)],
    ["apply_flag_settings", ({ settings }) => applySettings(settings, options)],
    ["set_has_subscribers", () => ({})],
  ]);
}

async function interrupt(
  { cancel_queued: cancels }: JsonRecord,
  { host, queue, choices }: ControlRequestOptions,
) {
  const cancelled = cancels === true ? queue.clear() : undefined;
  const receipt = { still_queued: queue.ids(), ...(cancelled === undefined ? {} : { cancelled }) };
  await host.interrupt(!choices.perTaskStopAffordance);
  return receipt;
}

function setModel(model: unknown, { choices }: ControlRequestOptions): JsonRecord {
  if (model !== undefined && model !== null && typeof model !== "string")
    throw refused("the model must be a text");
  choices.model = typeof model === "string" && model !== "default" ? model : undefined;
  return { model: choices.model ?? "default" };
}

function setThinking(tokens: unknown, choices: Choices): undefined {
  if (tokens === undefined || tokens === null) choices.effort = undefined;
  else if (typeof tokens === "number" && Number.isFinite(tokens) && tokens >= 0) choices.effort = tokens;
  else throw refused("max_thinking_tokens must be a number");
}

async function stopTask(id: unknown, { host }: ControlRequestOptions): Promise<JsonRecord> {
  const tasks = (await host.ready()).session.tasks;
  const task = typeof id === "string" ? tasks.get(id) : undefined;
  if (task === undefined) throw refused(`there is no task ${JSON.stringify(id)}`);
  if (hasEnded(task)) throw refused(`the task ${task.id} has ended already`);
  await tasks.stop(task.id, "user");
  return {};
}

/** Frees whoever waits for children in the foreground. */
async function moveToBackground(id: unknown, { host }: ControlRequestOptions): Promise<JsonRecord> {
  const { tasks } = (await host.ready()).session;
  const waiting = tasks.list().filter((task) => !task.background && !hasEnded(task));
  for (const task of waiting) if (id === undefined || task.callId === id) tasks.detach(task.id);
  return {};
}

function describeServers({ session }: OpenSdkSession): readonly JsonRecord[] {
  return session.mcpServers().map(({ name, scope, status }) => ({
    name,
    status: serverStatus[status.type],
    scope: scope === "program" ? "sdk" : scope,
    source: scope === "program" ? "sdk" : scope,
    ...(status.type === "connected" ? { serverInfo: { name, version: status.version ?? "" } } : {}),
    ...("reason" in status ? { error: status.reason } : {}),
    tools: session.plan.tools
      .map((tool) => tool.name)
      .filter((tool) => tool.startsWith(`mcp__${name.replace(/[^A-Za-z0-9_-]/g, "_")}__`))
      .map((tool) => ({ name: tool.split("__").slice(2).join("__"), annotations: {} })),
  }));
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

async function contextUsage(
  { session }: OpenSdkSession,
  { choices }: ControlRequestOptions,
): Promise<JsonRecord> {
  const { plan, model } = session;
  const tokens = (value: unknown): number => Math.ceil(JSON.stringify(value).length / 4);
  const system = tokens(plan.system);
  const messages = session.messages().length === 0 ? 0 : tokens(session.messages());
  const total = system + messages;
  const category = (id: string, name: string, count: number, kind: string): JsonRecord => ({
    id,
    name,
    tokens: count,
    color: "inactive",
    kind,
  });
  return {
    categories: [
      category("system_prompt", "System prompt", system, "used"),
      category("messages", "Messages", messages, "used"),
      category("free_space", "Free space", Math.max(0, model.contextWindow - total), "free"),
    ],
    totalTokens: total,
    maxTokens: model.contextWindow,
    rawMaxTokens: model.contextWindow,
    percentage: Math.round((total / model.contextWindow) * 100),
    gridRows: [],
    model: choices.model ?? plan.model.value,
    memoryFiles: [],
    mcpTools: [],
    agents: [],
    isAutoCompactEnabled: true,
    apiUsage: null,
  };
}

function usage({ host, startedAt }: ControlRequestOptions): JsonRecord {
  return {
    total_cost_usd: host.totals.cost(),
    total_api_duration_ms: host.apiDurationMs(),
    total_duration_ms: Date.now() - startedAt,
    total_lines_added: 0,
    total_lines_removed: 0,
    model_usage: host.totals.modelUsage(),
  };
}

const appliedSettings: ReadonlySet<string> = new Set(["model", "effortLevel", "permissions"]);

/** Settings that can change while a session runs; an unknown one is refused before any is applied. */
async function applySettings(value: unknown, options: ControlRequestOptions): Promise<undefined> {
  if (!isRecord(value)) throw refused("`settings` must be an object");
  const unknown = Object.keys(value).find((key) => !appliedSettings.has(key));
  if (unknown !== undefined)
    throw refused(`the setting ${JSON.stringify(unknown)} cannot change while a session runs`);
  const { model, effortLevel, permissions } = value;
  const { policy, choices } = options;
  if (isRecord(permissions)) {
    for (const behavior of ["allow", "ask", "deny"]) {
      const rules = permissions[behavior];
      if (Array.isArray(rules))
        await policy.update({
          type: "addRules",
          behavior,
          rules: rules.map((rule) => ({ toolName: String(rule) })),
        });
    }
    if (permissions["defaultMode"] !== undefined) policy.setMode(permissions["defaultMode"]);
  }
  if (model !== undefined) setModel(model, options);
  if (effortLevel !== undefined) choices.effort = typeof effortLevel === "string" ? effortLevel : undefined;
}

async function rewind(
  { user_message_id: id, dry_run: dryRun }: JsonRecord,
  { checkpoints }: ControlRequestOptions,
): Promise<JsonRecord> {
  if (checkpoints === undefined) return { canRewind: false, error: "File checkpointing is not enabled." };
  return checkpoints.rewind(String(id), dryRun === true);
}

function describePlugins({ session }: OpenSdkSession): JsonRecord {
  const plugins = session.discovered.plugins.filter(({ enabled }) => enabled);
  return {
    commands: describeCommands(session.skills),
    agents: describeAgents(session),
    plugins: plugins.map(({ name, root }) => ({ name, path: root })),
    mcpServers: session.mcpServers().map(({ name, status }) => ({ name, status: serverStatus[status.type] })),
    error_count: 0,
  };
}

const defaultBytes = 256 * 1024;

async function readFile(
  { path, max_bytes: limit, encoding }: JsonRecord,
  { host }: ControlRequestOptions,
): Promise<JsonRecord> {
  if (typeof path !== "string" || path === "") throw refused("read_file needs a path");
  const { session } = await host.ready();
  const file = resolve(session.plan.directory, path);
  const max = typeof limit === "number" && limit > 0 ? Math.floor(limit) : defaultBytes;
  await using handle = await open(file, "r");
  const buffer = Buffer.alloc(max + 1);
  const { bytesRead } = await handle.read(buffer, 0, max + 1, 0);
  const bytes = buffer.subarray(0, Math.min(bytesRead, max));
  return {
    contents: bytes.toString(encoding === "base64" ? "base64" : "utf8"),
    absPath: file,
    ...(bytesRead > max ? { truncated: true } : {}),
  };
}

export function modeStatus(mode: PermissionMode): JsonRecord {
  return { type: "system", subtype: "status", status: null, permissionMode: mode };
}

function refused(reason: string): RetinueError {
  return new RetinueError("control-refused", reason);
}
