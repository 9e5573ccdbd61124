export { type FiredEvent, firedHookEvents } from "@retinue/config/hooks/hook-input.ts";
export { matchSubject } from "@retinue/config/hooks/match-subject.ts";

import type { DiscoveredAgents } from "@retinue/config/discovery/discover-agents.ts";
import { type FiredEvent, firedHookEvents, hookEvents } from "@retinue/config/hooks/hook-input.ts";
import type { HookHandler, HookHandlerType, HookRule } from "@retinue/config/hooks/hook-rule.ts";
import { loadPluginHooks } from "@retinue/config/plugins/load-plugin.ts";
import type { SettingsScope } from "@retinue/config/settings/settings.ts";

/** What each event is about, for choosing one from a list. */
const summaries: Readonly<Record<FiredEvent, string>> = {
  PreToolUse: "Before a tool call",
  PostToolUse: "After a tool call that succeeded",
  PostToolUseFailure: "After a tool call that failed",
  PermissionRequest: "Before a person is asked about a call",
  Notification: "When the person is notified",
  UserPromptSubmit: "When a prompt is submitted",
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

/** One hook as a list shows it. */
export interface ListedHook {
  readonly event: string;
  /** Empty where it is for everything. */
  readonly matcher: string;
  readonly source: string;
  readonly sourceLabel: string;
  readonly pluginName?: string;
  readonly type: string;
  readonly displayText: string;
  readonly commandText: string;
  readonly contentLabel: string;
  readonly condition?: string;
  /** Seconds. */
  readonly timeout?: number;
  readonly statusMessage?: string;
  readonly runsOnce?: true;
  readonly runsInBackground?: true;
  /** Settings keep it from running. */
  readonly disabled?: true;
}

/** The events that happen here, the hooks of settings files and plugins, and what switches them off. */
export interface HookListing {
  readonly hooks: readonly ListedHook[];
  readonly catalog: readonly {
    readonly name: string;
    readonly summary: string;
    readonly supportsMatcher: boolean;
  }[];
  readonly policy: {
    readonly disabledByPolicy: boolean;
    readonly managedOnly: boolean;
    readonly pluginOnly: boolean;
    readonly allDisabled: boolean;
    readonly policyHookCount: number;
  };
}

/** Every hook that files bring to the sessions of a folder, as they are now. */
export async function listHooks({
  settings: { settings },
  plugins,
  paths,
}: Pick<DiscoveredAgents, "settings" | "plugins" | "paths">): Promise<HookListing> {
  const isOff = settings.plain.disableAllHooks === true;
  const managedOnly = settings.plain.allowManagedHooksOnly === true;
  const disabledByPolicy = isOff && settings.sources.get("disableAllHooks")?.scope === "managed";
  const loaded = await loadPluginHooks(plugins, paths.plugins.data);
  const written = settings.hooks.map(({ hook, source: { scope } }): ListedHook => {
    const [source, sourceLabel] = sources[scope];
    const isDisabled = disabledByPolicy || ((isOff || managedOnly) && scope !== "managed");
    return { ...describeHook(hook), source, sourceLabel, ...(isDisabled ? { disabled: true } : {}) };
  });
  const brought = loaded.hooks.map(({ hook, origin }): ListedHook => {
    const name = origin.type === "plugin" ? origin.name : "";
    const place = { source: "pluginHook", sourceLabel: `Plugin ${name}`, pluginName: name };
    return { ...describeHook(hook), ...place, ...(isOff || managedOnly ? { disabled: true } : {}) };
  });
  return {
    hooks: [...written, ...brought],
    catalog: firedHookEvents.map((name) => ({
      name,
      summary: summaries[name],
      supportsMatcher: hookEvents[name].matches !== "none",
    })),
    policy: {
      disabledByPolicy,
      managedOnly,
      pluginOnly: false,
      allDisabled: isOff,
      policyHookCount: settings.hooks.filter(({ source }) => source.scope === "managed").length,
    },
  };
}

function describeHook({ event, matcher = "", handler }: HookRule) {
  const { type, if: condition, timeout, statusMessage, once } = handler;
  const text = contentOf(handler);
  return {
    event,
    matcher: matcher,
    type,
    displayText: statusMessage ?? text.split("\n")[0] ?? "",
    commandText: text,
    contentLabel: labels[type],
    condition,
    timeout,
    statusMessage,
    ...(once === true ? { runsOnce: true as const } : {}),
    ...(handler.async === true || handler.asyncRewake === true ? { runsInBackground: true as const } : {}),
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
