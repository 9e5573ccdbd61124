import type { PluginManifest } from "./plugin-manifest.ts";

/** How a plugin came to be seen: `--plugin-dir`, an install record or marketplace, a skills folder, the plugins folder. */
export type PluginOrigin = "directory" | "installed" | "skills-dir" | "plugins-dir";

export interface Plugin {
  /** The namespace of its agents and skills. */
  readonly name: string;
  /** Absolute. */
  readonly root: string;
  /** Empty when the plugin has no manifest, or one that cannot be read. */
  readonly manifest: PluginManifest;
  readonly origin: PluginOrigin;
  readonly marketplace?: string;
  readonly enabled: boolean;
  /** False where its hooks are not wanted: it was installed on this machine, and the program did not ask for that. */
  readonly runsHooks?: boolean;
}

/** What settings say under `enabledPlugins`; a version list counts as yes. */
export type EnabledPlugins = Readonly<Record<string, unknown>>;

/** True or false where settings speak of one of the keys, undefined where they are silent. */
export function settingFor(keys: readonly string[], enabledPlugins: EnabledPlugins): boolean | undefined {
  const values = keys.filter((key) => Object.hasOwn(enabledPlugins, key)).map((key) => enabledPlugins[key]);
  if (values.includes(false)) return false;
  return values.some((value) => value === true || Array.isArray(value)) ? true : undefined;
}
