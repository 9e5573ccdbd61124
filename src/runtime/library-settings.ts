import type { MergedSettings } from "../settings/merge-settings.ts";
import type { SettingsSource } from "../settings/settings-layer.ts";
import type { RuntimeContext } from "./runtime-context.ts";

/**
 * What is left of settings files for a program that did not ask for them by `settingSources`: what restricts it. What
 * would run something or allow more, in files of the person or the project, does nothing; those of the organisation and
 * the program's own `settings` count.
 */
export function withoutSettingsPowers(facts: RuntimeContext): RuntimeContext {
  const { discovered } = facts;
  const settings = { ...discovered.settings, settings: restrictionsOf(discovered.settings.settings) };
  return { ...facts, discovered: { ...discovered, settings } };
}

function restrictionsOf(settings: MergedSettings): MergedSettings {
  const { defaultMode, ...permissions } = settings.permissions;
  const mode = settings.sources.get("permissions.defaultMode");
  return {
    ...settings,
    hooks: settings.hooks.filter(({ source }) => counts(source)),
    permissions: {
      ...permissions,
      allow: permissions.allow.filter(({ source }) => counts(source)),
      additionalDirectories: permissions.additionalDirectories.filter(({ source }) => counts(source)),
      ...(defaultMode !== undefined && mode !== undefined && counts(mode) ? { defaultMode } : {}),
    },
  };
}

function counts({ scope }: SettingsSource): boolean {
  return scope !== "user" && scope !== "project" && scope !== "local";
}
