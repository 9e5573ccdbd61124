import type { MergedSettings } from "../settings/merge-settings.ts";
import type { SettingsSource } from "../settings/settings-layer.ts";
import type { RuntimeContext } from "./runtime-context.ts";

/**
 * What is left of settings files for a program that did not ask for them by `settingSources`: what restricts it. What
 * would run something or allow more, in files of the person or the project, does nothing; those of the organisation and
 * the program's own `settings` count. Likewise hooks of plugins: only those of `pluginDirectories` count.
 */
export function withoutSettingsPowers(facts: RuntimeContext): RuntimeContext {
  const { discovered } = facts;
  const settings = { ...discovered.settings, settings: restrictionsOf(discovered.settings.settings) };
  const plugins = discovered.plugins.map((plugin) =>
    plugin.origin === "directory" ? plugin : { ...plugin, runsHooks: false },
  );
  return { ...facts, discovered: { ...discovered, settings, plugins } };
}

function restrictionsOf(settings: MergedSettings): MergedSettings {
  const { defaultMode, ...permissions } = settings.permissions;
  const mode = settings.sources.get("permissions.defaultMode");
  return {
    ...settings,
    plain: withoutAutoAllow(settings),
    hooks: settings.hooks.filter(({ source }) => counts(source)),
    permissions: {
      ...permissions,
      allow: permissions.allow.filter(({ source }) => counts(source)),
      additionalDirectories: permissions.additionalDirectories.filter(({ source }) => counts(source)),
      ...(defaultMode !== undefined && mode !== undefined && counts(mode) ? { defaultMode } : {}),
    },
  };
}

/** A sandbox that a file asks for protects; that its commands need no rule would allow more. */
function withoutAutoAllow({ plain, sources }: MergedSettings): MergedSettings["plain"] {
  const source = sources.get("sandbox.autoAllowBashIfSandboxed");
  if (source === undefined || counts(source)) return plain;
  return { ...plain, sandbox: { ...plain.sandbox, autoAllowBashIfSandboxed: false } };
}

function counts({ scope }: SettingsSource): boolean {
  return scope !== "user" && scope !== "project" && scope !== "local";
}
