import { realpath, stat } from "node:fs/promises";
import { resolve } from "node:path";
import { fuzzyFilter } from "@earendil-works/pi-tui/dist/fuzzy.js";
import type { JsonRecord } from "../../../foundation/json-record.ts";
import { type FiredEvent, firedHookEvents, hookEvents } from "../../../hooks/hook-input.ts";
import type { HookHandler, HookHandlerType, HookRule } from "../../../hooks/hook-rule.ts";
import { isInside } from "../../../permissions/permission-policy.ts";
import { loadPluginHooks } from "../../../plugins/load-plugin.ts";
import { findProjectFiles } from "../../../runtime/project/find-project-files.ts";
import type { SettingsScope } from "../../../settings/settings.ts";
import { stripControlCharacters } from "../../cli/views/strip-control-characters.ts";
import { refused } from "../control-channel.ts";
import type { ControlHandler, ControlRequestOptions } from "./create-control-requests.ts";

/** Requests about the folders of a session and what is configured in them. */
export function workspaceRequests(
  options: ControlRequestOptions,
): readonly (readonly [string, ControlHandler])[] {
  return [
    ["file_suggestions", ({ query }, signal) => suggestFiles(query, options, signal)],
    ["register_repo_root", (request, signal) => registerFolder(request, options, signal)],
    ["get_hooks_listing", () => listHooks(options)],
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
  { host }: ControlRequestOptions,
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
  options: ControlRequestOptions,
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
    throw refused(`${folder} is a working directory already`);
  if (!isInside(folder, roots))
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

/** What each event is about, for those who choose one from a list. */
const summaries: Readonly<Record<FiredEvent, string>> = {
  PreToolUse: "Before a tool call",
  PostToolUse: "After a tool call that worked",
  PostToolUseFailure: "After a tool call that failed",
  PermissionRequest: "Before somebody is asked about a call",
  Notification: "When the person is notified",
  UserPromptSubmit: "When a prompt is handed in",
  SessionStart: "When a session begins or is resumed",
  SessionEnd: "When a session ends",
  Stop: "Before the main agent ends its answer",
  SubagentStart: "When a child agent starts",
  SubagentStop: "Before a child agent ends",
  PreCompact: "Before the conversation is compacted",
  PostCompact: "After the conversation was compacted",
  TeammateIdle: "When a teammate has nothing to do",
  TaskCreated: "When a task is created",
  TaskCompleted: "When a task is completed",
};

const sources: Readonly<Record<SettingsScope, readonly [name: string, label: string]>> = {
  user: ["userSettings", "User settings"],
  project: ["projectSettings", "Project settings"],
  local: ["localSettings", "Local settings"],
  flags: ["flagSettings", "Settings of this start"],
  managed: ["policySettings", "Managed settings"],
};

const labels: Readonly<Record<HookHandlerType, string>> = {
  command: "Command",
  http: "URL",
  prompt: "Prompt",
  agent: "Prompt",
  mcp_tool: "Tool",
};

/** Every hook that may fire in this session: of settings files, of plugins, and the host's own callbacks. */
async function listHooks({ host, initialize }: ControlRequestOptions): Promise<JsonRecord> {
  const { discovered } = (await host.ready()).session;
  const { settings } = discovered.settings;
  const plugins = await loadPluginHooks(discovered.plugins, discovered.paths.plugins.data);
  const isOff = settings.plain.disableAllHooks === true;
  const isManagedOnly = settings.plain.allowManagedHooksOnly === true;
  const offByPolicy = isOff && settings.sources.get("disableAllHooks")?.scope === "managed";
  const mayNotRun = isOff || isManagedOnly ? { disabled: true } : {};
  const rows = [
    ...settings.hooks.map(({ hook, source: { scope } }) => {
      const [source, sourceLabel] = sources[scope];
      const runs = offByPolicy || (isOff && scope !== "managed") ? mayNotRun : {};
      return { ...describeHook(hook), source, sourceLabel, ...runs };
    }),
    ...plugins.hooks.map(({ hook, origin }) => {
      const name = origin.type === "plugin" ? origin.name : "";
      return {
        ...describeHook(hook),
        source: "pluginHook",
        sourceLabel: `Plugin ${name}`,
        pluginName: name,
        ...mayNotRun,
      };
    }),
    ...initialize.hooks.map(({ event, matcher = "", timeoutMs, callbackIds }) => ({
      event,
      matcher: stripControlCharacters(matcher),
      source: "sessionHook",
      sourceLabel: "Callback of the host",
      type: "callback",
      displayText: callbackIds.join(", "),
      commandText: callbackIds.join(", "),
      contentLabel: "Callback",
      ...(timeoutMs === undefined ? {} : { timeout: timeoutMs / 1000 }),
    })),
  ];
  const eventCatalog = firedHookEvents.map((name) => ({
    name,
    summary: summaries[name],
    supportsMatcher: hookEvents[name].matches !== "none",
  }));
  const countOf = (name: string): number => rows.filter(({ event }) => event === name).length;
  return {
    events: eventCatalog
      .map((event) => ({ ...event, hookCount: countOf(event.name) }))
      .filter(({ hookCount }) => hookCount > 0),
    hooks: eventCatalog.flatMap(({ name }) => rows.filter(({ event }) => event === name)),
    eventCatalog,
    policy: {
      disabledByPolicy: offByPolicy,
      managedOnly: isManagedOnly,
      pluginOnly: false,
      allDisabled: isOff,
      policyHookCount: settings.hooks.filter(({ source }) => source.scope === "managed").length,
    },
  };
}

function describeHook({ event, matcher = "", handler }: HookRule) {
  const { type, if: condition, timeout, statusMessage, once } = handler;
  const text = stripControlCharacters(contentOf(handler));
  return {
    event,
    matcher: stripControlCharacters(matcher),
    type,
    displayText: stripControlCharacters(statusMessage ?? text.split("\n")[0] ?? ""),
    commandText: text,
    contentLabel: labels[type],
    ...(condition === undefined ? {} : { condition: stripControlCharacters(condition) }),
    ...(timeout === undefined ? {} : { timeout }),
    ...(statusMessage === undefined ? {} : { statusMessage: stripControlCharacters(statusMessage) }),
    ...(once === true ? { runsOnce: true } : {}),
    ...(handler.async === true || handler.asyncRewake === true ? { runsInBackground: true } : {}),
  };
}

function contentOf({
  type,
  command = "",
  args = [],
  url = "",
  prompt = "",
  server = "",
  tool = "",
}: HookHandler): string {
  if (type === "command") return [command, ...args].join(" ");
  if (type === "http") return url;
  return type === "mcp_tool" ? `${server}/${tool}` : prompt;
}
