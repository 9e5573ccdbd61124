import { readdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { Diagnostic } from "../foundation/diagnostic.ts";
import { createMarketplaceFinder, type MarketplaceFinder } from "./find-marketplace-plugin.ts";
import { isDirectory, loadJson, type PluginCandidate } from "./load-plugin.ts";
import { type EnabledPlugins, settingFor } from "./plugin.ts";
import { isWithin } from "./plugin-agents.ts";
import { isSafeName } from "./plugin-path.ts";
import {
  type InstalledPlugin,
  type PluginId,
  parsePluginId,
  readInstalledPlugins,
} from "./plugin-records.ts";

export interface FindInstalledOptions {
  readonly configDirectory: string;
  readonly enabledPlugins: EnabledPlugins;
  readonly projectDirectory?: string;
}

/** Finds the folders of plugins that install records name, and of those that settings enable without a record. */
export async function findInstalledPlugins(
  options: FindInstalledOptions,
): Promise<{ candidates: PluginCandidate[]; diagnostics: Diagnostic[] }> {
  const folder = join(options.configDirectory, "plugins");
  const records = await loadRecords(folder);
  const diagnostics = [...records.diagnostics];
  const marketplaces = await createMarketplaceFinder(folder, diagnostics);
  const candidates: PluginCandidate[] = [];
  const wanted = new Map<string, InstalledPlugin>();
  for (const record of records.installed) {
    const key = keyOf(record.id);
    if (appliesHere(record, options) && !wanted.has(key)) wanted.set(key, record);
  }
  for (const [key, setting] of Object.entries(options.enabledPlugins)) {
    const id = parsePluginId(key);
    const isBuiltinPlace = id !== undefined && placesWithoutRecords.has(id.marketplace);
    if (id === undefined || isBuiltinPlace || setting === false || wanted.has(key)) continue;
    if (settingFor([key], options.enabledPlugins) === true) wanted.set(key, { id });
  }
  for (const [key, record] of wanted) {
    const candidate = await locate(record, folder, marketplaces);
    if (candidate !== undefined) candidates.push(candidate);
    else if (settingFor([key], options.enabledPlugins) !== false) diagnostics.push(notFound(key, folder));
  }
  return { candidates, diagnostics };
}

async function loadRecords(folder: string) {
  const diagnostics: Diagnostic[] = [];
  for (const name of ["installed_plugins.json", "installed_plugins_v2.json"]) {
    const loaded = await loadJson(join(folder, name), readInstalledPlugins);
    diagnostics.push(...loaded.diagnostics);
    if (loaded.value !== undefined) return { installed: loaded.value.installed, diagnostics };
  }
  return { installed: [], diagnostics };
}

/** A plugin installed for one project counts in that project, and wherever settings ask for it by name. */
function appliesHere(record: InstalledPlugin, options: FindInstalledOptions): boolean {
  const { projectPath } = record;
  if (projectPath === undefined) return true;
  if (settingFor([keyOf(record.id)], options.enabledPlugins) === true) return true;
  return options.projectDirectory !== undefined && isWithin(projectPath, options.projectDirectory);
}

/** The recorded folder, else the cache, else the marketplace that lists the plugin. */
async function locate(
  record: InstalledPlugin,
  folder: string,
  marketplaces: MarketplaceFinder,
): Promise<PluginCandidate | undefined> {
  const { name, marketplace } = record.id;
  const entry = await marketplaces.find(record.id);
  const known = { origin: "installed", name, marketplace } as const;
  const spoken = entry === undefined ? known : { ...known, entry: entry.plugin };
  if (record.installPath !== undefined) {
    const root = resolve(folder, record.installPath);
    if (await isDirectory(root)) return { ...spoken, root };
  }
  const cached = await findCached(record, folder);
  if (cached !== undefined) return { ...spoken, root: cached };
  return entry?.root === undefined ? undefined : { ...spoken, root: entry.root };
}

async function findCached({ id, version }: InstalledPlugin, folder: string): Promise<string | undefined> {
  if (!isSafeName(id.marketplace) || !isSafeName(id.name)) return undefined;
  const home = join(folder, "cache", id.marketplace, id.name);
  const names = (await readdir(home).catch(() => [])).filter((name) => !name.startsWith("."));
  const newest = names.sort(byVersion()).at(-1);
  const chosen = version !== undefined && names.includes(version) ? version : newest;
  if (chosen === undefined) return undefined;
  const root = join(home, chosen);
  return (await isDirectory(root)) ? root : undefined;
}

function keyOf({ name, marketplace }: PluginId): string {
  return `${name}@${marketplace}`;
}

function notFound(key: string, folder: string): Diagnostic {
  return {
    severity: "warning",
    code: "plugin-not-found",
    file: folder,
    message: `The plugin "${key.slice(0, 200)}" is installed or enabled, but its folder was not found.`,
    advice: `Install it again, or set enabledPlugins["${key.slice(0, 200)}"] to false.`,
  };
}

/** Made on use: a collator at the top of the module would cost every start eight milliseconds. */
const byVersion = (): ((a: string, b: string) => number) =>
  new Intl.Collator("en", { numeric: true }).compare;

/** Not marketplaces: plugins of these places are found by looking into their folders. */
const placesWithoutRecords: ReadonlySet<string> = new Set(["inline", "builtin", "skills-dir", "plugins-dir"]);
