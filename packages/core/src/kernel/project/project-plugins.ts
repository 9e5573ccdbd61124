// @io
import { statSync } from "node:fs";
import { join, resolve } from "node:path";
import { type Diagnostic, hasErrors } from "@retinue/base/foundation/diagnostic.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { loadJson, loadPlugin } from "@retinue/config/plugins/load-plugin.ts";
import { readMarketplace } from "@retinue/config/plugins/marketplace.ts";
import type { Plugin } from "@retinue/config/plugins/plugin.ts";
import { changeJson } from "@retinue/config/settings/approve-mcp-servers.ts";
import type { Paths } from "@retinue/config/settings/paths.ts";
import { staysInside } from "@retinue/config/settings/write-local-rules.ts";
import type { ProjectFacts } from "./project-facts.ts";

export type PluginScope = "user" | "project" | "local";

export interface ListedPlugin {
  /** `name@marketplace`, or the name alone. */
  readonly id: string;
  readonly name: string;
  readonly version?: string;
  readonly enabled: boolean;
  readonly origin: Plugin["origin"];
  /** The folder it is in. */
  readonly root: string;
}

/** What was written to switch a plugin on or off. */
export interface SwitchedPlugin {
  /** The key in `enabledPlugins`. */
  readonly key: string;
  readonly file: string;
}

/** The plugins of a folder. */
export interface ProjectPlugins {
  /** Every plugin that was found, whether it counts or not. */
  list(): Promise<readonly ListedPlugin[]>;
  /** Writes to the settings of a scope, the user's unless said otherwise, that a plugin counts. */
  enable(name: string, options?: { readonly scope?: PluginScope }): Promise<SwitchedPlugin>;
  disable(name: string, options?: { readonly scope?: PluginScope }): Promise<SwitchedPlugin>;
  /** What is wrong with the manifest of a plugin or marketplace; the path is relative to the folder. */
  validate(path: string): Promise<{ readonly isValid: boolean; readonly diagnostics: readonly Diagnostic[] }>;
}

export function projectPlugins(
  gather: () => Promise<ProjectFacts>,
  paths: () => Promise<Paths>,
): ProjectPlugins {
  const turn = async (name: string, value: boolean, scope: PluginScope = "user"): Promise<SwitchedPlugin> => {
    const { discovered } = await gather();
    const plugin = findPlugin(name, discovered.plugins);
    const file = settingsFile(scope, discovered.paths);
    if (scope !== "user" && !(await staysInside(file, discovered.paths.projectRoot)))
      throw notWritten(`${file} is a link that leads out of the project`);
    const place = plugin.origin === "directory" ? "inline" : plugin.origin;
    const key = plugin.marketplace === undefined ? `${plugin.name}@${place}` : idOf(plugin);
    const outcome = await changeJson(file, () => [{ path: ["enabledPlugins", key], value }]);
    if (outcome.type === "refused") throw notWritten(outcome.why);
    return { key, file };
  };
  return {
    list: async () => (await gather()).discovered.plugins.map(describePlugin),
    enable: (name, { scope } = {}) => turn(name, true, scope),
    disable: (name, { scope } = {}) => turn(name, false, scope),
    async validate(path) {
      const root = resolve((await paths()).cwd, path);
      if (statSync(root, { throwIfNoEntry: false }) === undefined)
        throw new RetinueError("not-found", `There is no file or folder ${path}.`);
      const marketplace = join(root, ".claude-plugin", "marketplace.json");
      const isMarketplace = statSync(marketplace, { throwIfNoEntry: false })?.isFile() === true;
      const { diagnostics } = isMarketplace
        ? await loadJson(marketplace, readMarketplace)
        : await loadPlugin({ root, origin: "directory" }, {});
      return { isValid: !hasErrors(diagnostics), diagnostics };
    },
  };
}

function describePlugin(plugin: Plugin): ListedPlugin {
  const { name, manifest, enabled, origin, root } = plugin;
  const { version } = manifest;
  return { id: idOf(plugin), name, version, enabled, origin, root };
}

function idOf({ name, marketplace }: Pick<Plugin, "name" | "marketplace">): string {
  return marketplace === undefined ? name : `${name}@${marketplace}`;
}

function findPlugin(name: string, plugins: readonly Plugin[]): Plugin {
  const found = plugins.filter((plugin) => plugin.name === name || idOf(plugin) === name);
  const [plugin] = found;
  if (plugin === undefined)
    throw new RetinueError("unknown-plugin", `There is no plugin \`${name}\`.`, {
      advice: "`retinue plugin list` lists the installed plugins.",
    });
  if (found.length === 1) return plugin;
  throw new RetinueError("misuse", `\`${name}\` is the name of ${found.length} plugins.`, {
    advice: `Write ${found.map(idOf).join(" or ")}.`,
  });
}

function settingsFile(scope: PluginScope, { settings, projectRoot }: Paths): string {
  if (scope === "user") return settings.user;
  return join(projectRoot, ".claude", scope === "project" ? "settings.json" : "settings.local.json");
}

function notWritten(why: string): RetinueError {
  return new RetinueError("not-written", `Nothing was changed: ${why}.`);
}
