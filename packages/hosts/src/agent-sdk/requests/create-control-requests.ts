import { randomUUID } from "node:crypto";
import { realpath, stat } from "node:fs/promises";
import { resolve } from "node:path";
import { fuzzyFilter } from "@earendil-works/pi-tui/dist/fuzzy.js";
import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { type Message, textOf } from "@retinue/core/conversation/message.ts";
import { type ListedHook, listHooks } from "@retinue/core/kernel/hooks/list-hooks.ts";
import { findSeenFile } from "@retinue/core/kernel/live/find-seen-file.ts";
import { ruleOfServer, updateSettingsFile } from "@retinue/core/kernel/live/live-policy.ts";
import { findProjectFiles } from "@retinue/core/kernel/project/find-project-files.ts";
import type { SessionServer } from "@retinue/core/kernel/servers/session-servers.ts";
import { hasEnded } from "@retinue/core/protocol/agent-state.ts";
import { createPrintRuntime, openPrintSession } from "../../shared/open-print-session.ts";
import { stripControlCharacters } from "../../shared/strip-control-characters.ts";
import { type Asked, refused } from "../control-channel.ts";
import { serverScope, serverSource, serverStatus } from "../init-message.ts";
import { isBlocking, specificOf } from "../observed-hooks.ts";
import type { OpenSdkSession } from "../open-sdk-session.ts";
import { announcePrompt } from "../queued-prompt.ts";
import { type HostServerConfig, readServerConfig } from "../read-initialize.ts";
import type { Choices, SdkConnection } from "../sdk-connection.ts";
import { commandOutput } from "../sdk-messages.ts";
import { reportRequests } from "./report-requests.ts";

export type ControlHandler = (
  request: JsonRecord,
  signal: AbortSignal,
  id: string,
) => Promise<JsonRecord | undefined> | JsonRecord | undefined;

/** The requests of a host besides `initialize`, by subtype. What is not in the table gets an error answer. */
export function createControlRequests(options: SdkConnection): ReadonlyMap<string, ControlHandler> {
  const { host, policy, choices } = options;
  return new Map<string, ControlHandler>([
    ["interrupt", (request) => interrupt(request, options)],
    ["set_permission_mode", ({ mode }) => ({ mode: policy.setMode(mode) })],
    ["set_model", ({ model }, signal) => switchModel(model, options, signal)],
    ["set_max_thinking_tokens", ({ max_thinking_tokens: tokens }) => setThinking(tokens, choices)],
    ["stop_task", ({ task_id: id }) => stopTask(id, options)],
    ["background_tasks", ({ tool_use_id: id }) => moveToBackground(id, options)],
    [
      "cancel_async_message",
      ({ message_uuid: id }) => {
        const cancelled = typeof id === "string" && host.cancel(id).length > 0;
        if (cancelled) announcePrompt(options, id, "cancelled");
        return { cancelled };
      },
    ],
    ["rewind_files", (request) => rewind(request, options)],
    ["apply_flag_settings", ({ settings }) => applySettings(settings, options)],
    ["set_has_subscribers", () => ({})],
    ["seed_read_state", (request) => seedReadState(request, options)],
    ["update_settings", (request, signal) => updateSettings(request, options, signal)],
    ["rename_session", (request) => renameSession(request, options)],
    ...sessionRequests(options),
    ...serverRequests(options),
    ...reportRequests(options),
    ...workspaceRequests(options),
  ]);
}

async function interrupt({ cancel_queued: cancels }: JsonRecord, options: SdkConnection) {
  const { host, choices } = options;
  const cancelled = cancels === true ? host.cancel() : undefined;
  for (const id of cancelled ?? []) announcePrompt(options, id, "cancelled");
  const receipt = { still_queued: host.queuedIds(), cancelled };
  await host.interrupt(!choices.perTaskStopAffordance);
  return receipt;
}

/** Callbacks may refuse the switch before it happens, and are notified afterwards. */
async function switchModel(model: unknown, options: SdkConnection, signal: AbortSignal): Promise<JsonRecord> {
  const { choices, observed, host } = options;
  const planned = host.current()?.session.plan.model.value ?? "default";
  const before = choices.model ?? planned;
  const wanted = typeof model === "string" && model !== "default" ? model : planned;
  const fields = { from_model: before, to_model: wanted, requested_model: model ?? null, source: "sdk" };
  const outputs = await observed().fire("PreModelSwitch", { fields, signal, subject: wanted });
  const denial = outputs.find(
    (output) => isBlocking(output) || specificOf(output)["permissionDecision"] === "deny",
  );
  if (denial !== undefined) {
    const reason = specificOf(denial)["permissionDecisionReason"] ?? denial["reason"];
    throw refused(`a hook refused the model ${wanted}${typeof reason === "string" ? `: ${reason}` : ""}`);
  }
  const switched = setModel(model, options);
  reportModel(options);
  // The answer does not wait for those that are only notified.
  void observed()
    .fire("PostModelSwitch", { fields, signal, subject: wanted })
    .catch(() => undefined);
  return switched;
}

function reportModel({ choices, host }: SdkConnection): void {
  const { plan } = host.current()?.session ?? {};
  const model = choices.model ?? plan?.model.value ?? "default";
  host.emit(commandOutput(`Set model to \`${model}\``, plan?.sessionId ?? ""));
}

function setModel(model: unknown, { choices }: SdkConnection): JsonRecord {
  if (model !== undefined && model !== null && typeof model !== "string")
    throw refused("the model must be a string");
  choices.model = typeof model === "string" && model !== "default" ? model : undefined;
  return { model: choices.model ?? "default" };
}

function setThinking(tokens: unknown, choices: Choices): undefined {
  if (tokens === undefined || tokens === null) choices.effort = undefined;
  else if (typeof tokens === "number" && Number.isFinite(tokens) && tokens >= 0) choices.effort = tokens;
  else throw refused("max_thinking_tokens must be a number");
}

async function stopTask(id: unknown, { host, commands }: SdkConnection): Promise<JsonRecord> {
  if (typeof id === "string" && (await commands.stop(id))) return {};
  const { tree, session } = await host.ready();
  const run = typeof id === "string" ? session.workflows?.runs.find(id) : undefined;
  if (run !== undefined) {
    await run.stop();
    return {};
  }
  const task = tree.list().find((each) => each.id === id);
  if (task === undefined) throw refused(`there is no task ${JSON.stringify(id)}`);
  if (!hasEnded(task)) await tree.main.submit({ type: "stop", agent: task.id });
  return {};
}

/** Frees the one that waits for children or commands in the foreground. */
async function moveToBackground(id: unknown, { host, longCommands }: SdkConnection): Promise<JsonRecord> {
  const { main, ...tree } = (await host.ready()).tree;
  if (id === undefined) await main.submit({ type: "background" });
  for (const { id: agent, callId } of tree.list())
    if (id !== undefined && callId === id) await main.submit({ type: "background", agent });
  if (typeof id === "string" && longCommands.isRunning(id))
    await main.submit({ type: "background", commandsOnly: true });
  return {};
}

/** Settings that take effect with the next call; all others are read again, for which the session is opened anew. */
const liveSettings: ReadonlySet<string> = new Set(["model", "effortLevel", "permissions"]);

async function applySettings(value: unknown, options: SdkConnection): Promise<undefined> {
  if (!isRecord(value)) throw refused("`settings` must be an object");
  const { model, effortLevel, permissions } = value;
  const { policy, choices, host } = options;
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
  if (model !== undefined) {
    setModel(model, options);
    reportModel(options);
  }
  if (effortLevel !== undefined) choices.effort = typeof effortLevel === "string" ? effortLevel : undefined;
  const others = Object.entries(value).filter(([key]) => !liveSettings.has(key));
  if (others.length === 0) return;
  const before = choices.settings;
  const kept = Object.entries(before).filter(([key]) => !others.some(([other]) => other === key));
  choices.settings = Object.fromEntries([...kept, ...others.filter(([, each]) => each !== null)]);
  try {
    await host.reopen();
  } catch (error) {
    choices.settings = before;
    await host.reopen();
    throw error;
  }
}

async function rewind(
  { user_message_id: id, dry_run: dryRun }: JsonRecord,
  { checkpoints }: SdkConnection,
): Promise<JsonRecord> {
  const disabled = { canRewind: false, error: "File checkpointing is not enabled." };
  const outcome =
    checkpoints === undefined ? disabled : await checkpoints.rewind(String(id), dryRun === true);
  if (outcome["canRewind"] === false && dryRun !== true) throw refused(String(outcome["error"]));
  return outcome;
}

/** The host has shown the file to the model; it counts as read where it is still as old as the host says. */
async function seedReadState(
  { path, mtime }: JsonRecord,
  { host, seenFiles, context }: SdkConnection,
): Promise<undefined> {
  if (typeof path !== "string" || typeof mtime !== "number") throw refused("it needs a path and an mtime");
  const directory = host.current()?.session.plan.directory ?? context.host.cwd;
  const seen = await findSeenFile(resolve(directory, path), mtime);
  if (seen !== undefined) seenFiles.set(seen.path, seen.file);
}

/** What a host may write for good: how a model is asked, and how things look. Nothing that runs, allows or reaches something. */
const hostSettings: ReadonlySet<string> = new Set([
  "alwaysThinkingEnabled",
  "attribution",
  "cleanupPeriodDays",
  "effortLevel",
  "includeCoAuthoredBy",
  "language",
  "model",
  "outputStyle",
  "spinnerTipsEnabled",
  "theme",
  "viewMode",
]);

/** Writes top-level keys to a settings file of the person; `null` removes a key. */
async function updateSettings(
  { source, settings }: JsonRecord,
  { host, observed }: SdkConnection,
  signal: AbortSignal,
): Promise<undefined> {
  if (!isRecord(settings)) throw refused("`settings` must be an object");
  const { paths } = (await host.ready()).session.discovered;
  if (source !== "localSettings" && source !== "userSettings")
    throw refused("`source` must be localSettings or userSettings");
  const stray = Object.keys(settings).filter((key) => !hostSettings.has(key));
  if (stray.length > 0) throw refused(`update_settings does not write ${stray.join(", ")}`);
  const outcome = await updateSettingsFile(paths, source, settings);
  if (outcome.type === "refused") throw refused(outcome.why);
  const [file_path] = outcome.files;
  const subject = source === "userSettings" ? "user_settings" : "local_settings";
  await observed().fire("ConfigChange", { fields: { source: subject, file_path }, signal, subject });
}

async function renameSession(
  { title, session_id: id }: JsonRecord,
  options: SdkConnection,
): Promise<JsonRecord> {
  const { host } = options;
  const { session, tree } = await host.ready();
  if (typeof title !== "string" || title.trim() === "") throw refused("it needs a title");
  if (id !== undefined && id !== session.plan.sessionId) throw refused("only this session can be renamed");
  await tree.main.submit({ type: "rename", title: title.trim() });
  options.title = title.trim();
  host.emit({
    type: "system",
    subtype: "session_title_changed",
    title: title.trim(),
    session_id: session.plan.sessionId,
    uuid: randomUUID(),
  });
  return {};
}

/** Requests about MCP servers. */
function serverRequests(options: SdkConnection): readonly (readonly [string, ControlHandler])[] {
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
  options: SdkConnection,
  signal: AbortSignal,
): Promise<JsonRecord> {
  if (typeof name !== "string") throw refused("mcp_read_resource: serverName must be a string");
  if (typeof uri !== "string" || !uri.startsWith("ui://"))
    throw refused("mcp_read_resource: uri must use the ui:// scheme");
  const result = await ask({ name, method: "resources/read", parameters: { uri } }, options, signal);
  return { contents: isRecord(result) && Array.isArray(result["contents"]) ? result["contents"] : [] };
}

/** A call of the host itself, without a model and without asking anyone. */
async function callTool(request: JsonRecord, options: SdkConnection, signal: AbortSignal) {
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
async function toolNamed(tool: string, { host }: SdkConnection): Promise<readonly string[]> {
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
  options: SdkConnection,
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
  options: SdkConnection,
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

async function setServers(value: unknown, { host, choices }: SdkConnection): Promise<JsonRecord> {
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

async function toggleServer(name: unknown, enabled: boolean, options: SdkConnection): Promise<undefined> {
  const known = await serverNamed(name, options);
  const { choices } = options;
  const disabled = new Set(choices.servers.disabled);
  if (enabled) disabled.delete(known);
  else disabled.add(known);
  choices.servers = { ...choices.servers, disabled };
  await options.host.reopen();
}

async function reconnectServer(name: unknown, options: SdkConnection): Promise<undefined> {
  const known = await serverNamed(name, options);
  const { session } = await options.host.reopen();
  const status = session.mcpServers().find((server) => server.name === known)?.status;
  if (status !== undefined && "reason" in status) throw refused(`${known}: ${status.reason}`);
}

async function serverNamed(name: unknown, { host, choices }: SdkConnection): Promise<string> {
  const { session } = await host.ready();
  const names = [...session.mcpServers().map((server) => server.name), ...choices.servers.disabled];
  if (typeof name === "string" && names.includes(name)) return name;
  throw refused(`Server not found: ${String(name)}`);
}

/** Requests about the session as a whole: its title, its plan, its text, its folder and its end. */
function sessionRequests(options: SdkConnection): readonly (readonly [string, ControlHandler])[] {
  return [
    ["generate_session_title", (request) => makeTitle(request, options)],
    ["side_question", (request, signal, id) => answerAside(request, options, { id, signal })],
    ["get_plan", async () => describePlan((await options.host.ready()).session.messages())],
    ["export_conversation", async () => exportText((await options.host.ready()).session.messages())],
    ["set_cwd", (request) => moveTo(request, options)],
    ["end_session", () => end(options)],
  ];
}

const titleLength = 60;

/** From the words of the description; a model of its own for that would be a paid request. */
async function makeTitle({ description, persist }: JsonRecord, options: SdkConnection): Promise<JsonRecord> {
  if (typeof description !== "string" || description.trim() === "") throw refused("it needs a description");
  const [line = ""] = description.trim().split("\n");
  const title = cutAtWord(line.trim(), titleLength);
  if (persist === true) {
    const { tree } = await options.host.ready();
    await tree.main.submit({ type: "rename", title });
    options.title = title;
  }
  return { title };
}

function cutAtWord(text: string, length: number): string {
  if (text.length <= length) return text;
  const cut = text.slice(0, length);
  return cut.includes(" ") ? cut.slice(0, cut.lastIndexOf(" ")) : cut;
}

/** A copy of the conversation answers, without tools, hooks and servers; the conversation itself does not learn of it. */
async function answerAside(
  { question }: JsonRecord,
  { host, context, choices }: SdkConnection,
  { id, signal }: Asked,
): Promise<JsonRecord> {
  if (typeof question !== "string" || question.trim() === "") throw refused("it needs a question");
  const { session } = await host.ready();
  host.emit({
    type: "system",
    subtype: "control_request_progress",
    request_id: id,
    status: "started",
    uuid: randomUUID(),
    session_id: session.plan.sessionId,
  });
  const alone = { ...context, session: { settingSources: [], strictMcpConfig: true } };
  await using runtime = createPrintRuntime(alone, { sessionPersistence: false });
  const copy =
    session.messages().length === 0 ? {} : { resume: session.plan.sessionId, forkSession: true as const };
  const model = choices.model ?? session.plan.model.value;
  await using aside = await openPrintSession(runtime, { ...copy, model, tools: [], maxTurns: 1 }, signal);
  const ending = await aside.run(question, { signal }).result;
  if (ending.status === "failed") throw refused(ending.error ?? "the model gave no answer");
  return { response: ending.text, synthetic: false };
}

/** The plan that the main agent showed last. */
function describePlan(messages: readonly Message[]): JsonRecord {
  const plans = messages.flatMap(({ role, content }) =>
    role === "assistant" && typeof content !== "string"
      ? content.flatMap((block) =>
          block.type === "tool_use" && block.name === "ExitPlanMode" ? [block] : [],
        )
      : [],
  );
  const input = plans.at(-1)?.input;
  const plan = isRecord(input) ? input["plan"] : undefined;
  return typeof plan === "string" && plan !== "" ? { exists: true, plan } : { exists: false };
}

/** The conversation as people read it: what was asked, what was answered, and which tools were called. */
function exportText(messages: readonly Message[]): JsonRecord {
  const parts = messages.flatMap((message) => {
    const text = textOf(message).trim();
    const textLines = text === "" ? [] : [message.role === "user" ? `> ${text}` : text];
    const calls =
      message.role === "assistant" && typeof message.content !== "string"
        ? message.content.flatMap((block) => (block.type === "tool_use" ? [`[${block.name}]`] : []))
        : [];
    return [...textLines, ...calls];
  });
  const first = messages.map((message) => textOf(message).trim()).find((text) => text !== "") ?? "";
  const words = first.toLowerCase().match(/[a-z0-9]+/g) ?? ["conversation"];
  const time = new Date().toISOString().replace(/[-:]/g, "").replace("T", "-").slice(0, 15);
  return {
    text: parts.join("\n\n"),
    default_filename: `${time}-${words.slice(0, 6).join("-")}.txt`,
  };
}

/** Opens the session in another folder; a conversation that has started stays where its transcript is. */
async function moveTo({ path }: JsonRecord, { host, choices }: SdkConnection): Promise<JsonRecord> {
  if (typeof path !== "string" || path === "") throw refused("set_cwd needs a path");
  const { session } = await host.ready();
  const { directory } = session.plan;
  const folder = await realpath(resolve(directory, path)).catch(() => undefined);
  const found = folder === undefined ? undefined : await stat(folder);
  if (folder === undefined || found?.isDirectory() !== true)
    throw refused(`there is no folder ${JSON.stringify(path)}`);
  if (folder === directory) return { status: "ok", cwd: folder, changed: false, transcript_relocated: false };
  if (session.messages().length > 0)
    throw refused(
      "the conversation has started, and its transcript belongs to its folder; start another one there",
    );
  const before = choices.directory;
  choices.directory = folder;
  try {
    await host.reopen();
  } catch (error) {
    choices.directory = before;
    await host.reopen();
    throw error;
  }
  return { status: "ok", cwd: folder, changed: true, transcript_relocated: false };
}

/** What runs is stopped and what waits is dropped; the process ends as if its input had. */
async function end({ host }: SdkConnection): Promise<undefined> {
  host.cancel();
  await host.interrupt(true);
  host.inputEnded();
}

/** Requests about the folders of a session and what is configured in them. */
function workspaceRequests(options: SdkConnection): readonly (readonly [string, ControlHandler])[] {
  return [
    ["file_suggestions", ({ query }, signal) => suggestFiles(query, options, signal)],
    ["register_repo_root", (request, signal) => registerFolder(request, options, signal)],
    ["get_hooks_listing", () => describeHooks(options)],
    [
      "set_color",
      () => {
        throw refused("there is no accent colour here, because nothing is painted under a host");
      },
    ],
  ];
}

const maxSuggestions = 50;

/** The files that `@` and these letters may mean, the best first, as the terminal offers them. */
async function suggestFiles(
  query: unknown,
  { host }: SdkConnection,
  signal: AbortSignal,
): Promise<JsonRecord> {
  if (typeof query !== "string") throw refused("file_suggestions needs a query");
  const { session } = await host.ready();
  const files = await findProjectFiles(session.plan.directory, signal);
  const found = fuzzyFilter([...files], query.replace(/^@/, ""), (path) => path);
  return { suggestions: found.slice(0, maxSuggestions).map((path) => ({ path })) };
}

const reloads = ["reload_claude_md", "reload_skills", "reload_plugins"] as const;

/** Adds a folder below the session's own as a working directory; where a reload is asked for, what it brings is read. */
async function registerFolder(
  request: JsonRecord,
  options: SdkConnection,
  signal: AbortSignal,
): Promise<JsonRecord> {
  const { host, policy, choices, context, observed } = options;
  const { directory } = request;
  if (typeof directory !== "string" || directory === "") throw refused("it needs a directory");
  const { plan } = (await host.ready()).session;
  const folder = await realpath(resolve(plan.directory, directory)).catch(() => undefined);
  const found = folder === undefined ? undefined : await stat(folder);
  if (folder === undefined || found?.isDirectory() !== true)
    throw refused(`there is no folder ${JSON.stringify(directory)}`);
  const roots = [plan.directory, ...(context.session.addDir ?? [])].map((root) =>
    resolve(plan.directory, root),
  );
  if (policy.apply(plan.policy).workingDirectories.includes(folder))
    throw refused(`${folder} is already a working directory`);
  if (!roots.some((root) => folder.startsWith(`${root}/`)))
    throw refused(
      `${folder} is neither below the working directory nor below one that was added at the start`,
    );
  await policy.update({ type: "addDirectories", directories: [folder] });
  choices.folders = [...choices.folders, folder];
  if (reloads.some((key) => request[key] === true)) await host.reopen();
  const fields = { directory: folder, source: "register_repo_root" };
  void observed()
    .fire("DirectoryAdded", { fields, signal, subject: folder })
    .catch(() => undefined);
  return {};
}

/** Every hook that may fire in this session: of settings files, of plugins, and the host's own callbacks. */
async function describeHooks({ host, initialize }: SdkConnection): Promise<JsonRecord> {
  const { hooks, catalog, policy } = await listHooks((await host.ready()).session.discovered);
  const callbacks = initialize.hooks.map(
    ({ event, matcher = "", timeoutMs, callbackIds }): ListedHook => ({
      event,
      matcher,
      source: "sessionHook",
      sourceLabel: "Callback of the host",
      type: "callback",
      displayText: callbackIds.join(", "),
      commandText: callbackIds.join(", "),
      contentLabel: "Callback",
      timeout: timeoutMs === undefined ? undefined : timeoutMs / 1000,
    }),
  );
  const rows = catalog.map(({ name }) => [...hooks, ...callbacks].filter(({ event }) => event === name));
  return {
    events: catalog.flatMap((event, at) => {
      const hookCount = rows[at]?.length ?? 0;
      return hookCount === 0 ? [] : [{ ...event, hookCount }];
    }),
    hooks: rows.flat().map(withoutControls),
    eventCatalog: catalog,
    policy,
  };
}

/** The texts of people's files, as a screen may show them. */
function withoutControls(row: ListedHook): JsonRecord {
  const entries = Object.entries(row).map(([key, value]) => [
    key,
    typeof value === "string" ? stripControlCharacters(value) : value,
  ]);
  return Object.fromEntries(entries);
}
