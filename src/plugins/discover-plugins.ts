// @io
import { readdir, realpath } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { Diagnostic } from "../foundation/diagnostic.ts";
import { findInstalledPlugins } from "./find-installed-plugins.ts";
import { isDirectory, isFile, loadPlugin, type PluginCandidate } from "./load-plugin.ts";
import type { EnabledPlugins, Plugin } from "./plugin.ts";

export interface DiscoverPluginsOptions {
  /** `~/.claude`, or where it was moved to. */
  readonly configDirectory: string;
  /** From `--plugin-dir`, in the order given; absolute. */
  readonly pluginDirectories?: readonly string[];
  /** All settings scopes merged. */
  readonly enabledPlugins?: EnabledPlugins;
  /** Plugins that were installed for one project count only there. */
  readonly projectDirectory?: string;
}

export interface PluginDiscovery {
  /** Those that win a shared name first; the disabled ones are among them. */
  readonly plugins: readonly Plugin[];
  readonly diagnostics: readonly Diagnostic[];
}

/** Finds every plugin on disk that settings and flags speak of. Never throws: what is broken becomes a problem. */
export async function discoverPlugins(options: DiscoverPluginsOptions): Promise<PluginDiscovery> {
  const enabledPlugins = options.enabledPlugins ?? {};
  const given = await findGiven(options.pluginDirectories ?? []);
  const installed = await findInstalledPlugins({ ...options, enabledPlugins });
  const candidates = [
    ...given.candidates,
    ...installed.candidates,
    ...(await findInFolder(join(options.configDirectory, "plugins"), "plugins-dir")),
    ...(await findInFolder(join(options.configDirectory, "skills"), "skills-dir")),
  ];
  const diagnostics = [...given.diagnostics, ...installed.diagnostics];
  const plugins: Plugin[] = [];
  for (const candidate of await withoutRepeats(candidates)) {
    const loaded = await loadPlugin(candidate, enabledPlugins);
    diagnostics.push(...loaded.diagnostics);
    const stronger = plugins.find(
      (plugin) => plugin.origin === "directory" && plugin.name === loaded.plugin.name,
    );
    if (stronger === undefined || candidate.origin === "directory") plugins.push(loaded.plugin);
    else diagnostics.push(shadowed(loaded.plugin, stronger));
  }
  return { plugins, diagnostics };
}

async function findGiven(directories: readonly string[]) {
  const candidates: PluginCandidate[] = [];
  const diagnostics: Diagnostic[] = [];
  for (const directory of directories) {
    const root = resolve(directory);
    if (await isDirectory(root)) candidates.push({ root, origin: "directory" });
    else diagnostics.push(notADirectory(directory));
  }
  return { candidates, diagnostics };
}

async function findInFolder(
  folder: string,
  origin: "plugins-dir" | "skills-dir",
): Promise<PluginCandidate[]> {
  const names = await readdir(folder).catch(() => []);
  const candidates: PluginCandidate[] = [];
  for (const name of names.sort()) {
    if (name.startsWith(".") || (origin === "plugins-dir" && reservedFolders.has(name))) continue;
    const root = join(folder, name);
    const hasManifest = await isFile(join(root, ".claude-plugin", "plugin.json"));
    if (hasManifest || (await hasMark(root, origin))) candidates.push({ root, origin });
  }
  return candidates;
}

/** What makes a folder without a manifest a plugin. */
function hasMark(root: string, origin: "plugins-dir" | "skills-dir"): Promise<boolean> {
  return isDirectory(join(root, origin === "plugins-dir" ? "agents" : ".claude-plugin"));
}

/** The same folder reached in two ways is one plugin; the way that was named first counts. */
async function withoutRepeats(candidates: readonly PluginCandidate[]): Promise<PluginCandidate[]> {
  const seen = new Set<string>();
  const kept: PluginCandidate[] = [];
  for (const candidate of candidates) {
    const real = await realpath(candidate.root).catch(() => candidate.root);
    // One folder may hold several entries of a marketplace, each with its own parts.
    const key = candidate.entry === undefined ? real : `${real}\0${candidate.name}`;
    if (seen.has(key) || seen.has(real)) continue;
    seen.add(key);
    kept.push(candidate);
  }
  return kept;
}

function shadowed(plugin: Plugin, stronger: Plugin): Diagnostic {
  return {
    severity: "note",
    code: "plugin-shadowed",
    file: plugin.root,
    message: `The plugin "${plugin.name}" here is not used, because --plugin-dir names one of the same name at ${stronger.root}.`,
  };
}

function notADirectory(directory: string): Diagnostic {
  return {
    severity: "error",
    code: "plugin-directory-missing",
    file: directory,
    message: "--plugin-dir names this place, but there is no folder here.",
    advice: "Give the folder that holds the plugin's `agents` or `.claude-plugin`.",
  };
}

/** Folders under `plugins` that the plugin manager keeps for itself. */
const reservedFolders: ReadonlySet<string> = new Set([
  "cache",
  "data",
  "marketplaces",
  "node_modules",
  "npm-cache",
  "repos",
]);
