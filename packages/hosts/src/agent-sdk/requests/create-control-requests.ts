import { randomUUID } from "node:crypto";
import { resolve } from "node:path";
import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { findSeenFile } from "@retinue/core/kernel/live/find-seen-file.ts";
import { updateSettingsFile } from "@retinue/core/kernel/live/live-policy.ts";
import { hasEnded } from "@retinue/core/protocol/agent-state.ts";
import { refused } from "../control-channel.ts";
import { isBlocking, specificOf } from "../observed-hooks.ts";
import { announcePrompt } from "../queued-prompt.ts";
import type { Choices, SdkConnection } from "../sdk-connection.ts";
import { commandOutput } from "../sdk-messages.ts";
import { reportRequests } from "./report-requests.ts";
import { serverRequests } from "./server-requests.ts";
import { sessionRequests } from "./session-requests.ts";
import { workspaceRequests } from "./workspace-requests.ts";

export type ControlRequestOptions = Pick<
  SdkConnection,
  | "host"
  | "policy"
  | "choices"
  | "checkpoints"
  | "startedAt"
  | "seenFiles"
  | "context"
  | "observed"
  | "commands"
  | "initialize"
  | "title"
  | "channel"
  | "queued"
  | "longCommands"
  | "mcp"
>;

export type ControlHandler = (
  request: JsonRecord,
  signal: AbortSignal,
  id: string,
) => Promise<JsonRecord | undefined> | JsonRecord | undefined;

/** The requests of a host besides `initialize`, by subtype. What is not in the table gets an error answer. */
export function createControlRequests(options: ControlRequestOptions): ReadonlyMap<string, ControlHandler> {
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

async function interrupt({ cancel_queued: cancels }: JsonRecord, options: ControlRequestOptions) {
  const { host, choices } = options;
  const cancelled = cancels === true ? host.cancel() : undefined;
  for (const id of cancelled ?? []) announcePrompt(options, id, "cancelled");
  const receipt = { still_queued: host.queuedIds(), cancelled };
  await host.interrupt(!choices.perTaskStopAffordance);
  return receipt;
}

/** Callbacks may refuse the switch before it happens, and hear of it afterwards. */
async function switchModel(
  model: unknown,
  options: ControlRequestOptions,
  signal: AbortSignal,
): Promise<JsonRecord> {
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
  // The answer does not wait for those that only hear of it.
  void observed()
    .fire("PostModelSwitch", { fields, signal, subject: wanted })
    .catch(() => undefined);
  return switched;
}

function reportModel({ choices, host }: ControlRequestOptions): void {
  const { plan } = host.current()?.session ?? {};
  const model = choices.model ?? plan?.model.value ?? "default";
  host.emit(commandOutput(`Set model to \`${model}\``, plan?.sessionId ?? ""));
}

function setModel(model: unknown, { choices }: ControlRequestOptions): JsonRecord {
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

async function stopTask(id: unknown, { host, commands }: ControlRequestOptions): Promise<JsonRecord> {
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
async function moveToBackground(
  id: unknown,
  { host, longCommands }: ControlRequestOptions,
): Promise<JsonRecord> {
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

async function applySettings(value: unknown, options: ControlRequestOptions): Promise<undefined> {
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
  { checkpoints }: ControlRequestOptions,
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
  { host, seenFiles, context }: ControlRequestOptions,
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
  { host, observed }: ControlRequestOptions,
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
  options: ControlRequestOptions,
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
