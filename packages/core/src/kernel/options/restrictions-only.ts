import type { DiscoveredAgents } from "@retinue/config/discovery/discover-agents.ts";
import type { MergedSettings, SettingsSource } from "@retinue/config/settings/settings-layer.ts";

/**
 * What is left of settings files for a program that did not ask for them by `settingSources`: what restricts it. What
 * would run something, set a variable or allow more, in files of the person or the project, does nothing, and of plugins
 * only those that the program named; those of the organisation and the program's own `settings` count.
 */
export function restrictionsOnly(discovered: DiscoveredAgents): DiscoveredAgents {
  const settings = { ...discovered.settings, settings: restrictionsOf(discovered.settings.settings) };
  const plugins = discovered.plugins.filter(({ origin }) => origin === "directory");
  return { ...discovered, settings, plugins };
}

function restrictionsOf(settings: MergedSettings): MergedSettings {
  const { defaultMode, ...permissions } = settings.permissions;
  const { apiKeyHelper, ...plain } = settings.plain;
  const countsAt = (name: string): boolean => {
    const source = settings.sources.get(name);
    return source !== undefined && counts(source);
  };
  return {
    ...settings,
    env: new Map([...settings.env].filter(([name]) => countsAt(`env.${name}`))),
    plain: {
      ...withoutAutoAllow({ ...settings, plain }),
      ...(apiKeyHelper !== undefined && countsAt("apiKeyHelper") ? { apiKeyHelper } : {}),
    },
    hooks: settings.hooks.filter(({ source }) => counts(source)),
    // What a program did not ask for is not missing.
    heldBack: settings.heldBack.filter(({ key, source }) => !key.startsWith("hooks.") || counts(source)),
    permissions: {
      ...permissions,
      allow: permissions.allow.filter(({ source }) => counts(source)),
      additionalDirectories: permissions.additionalDirectories.filter(({ source }) => counts(source)),
      ...(defaultMode !== undefined && countsAt("permissions.defaultMode") ? { defaultMode } : {}),
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
