// @io
import { readdir, realpath } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import type { Diagnostic, Issue } from "../foundation/diagnostic.ts";
import { isDirectory, isFile, loadJson, loadPlugin, type PluginCandidate } from "./load-plugin.ts";
import { type Marketplace, type MarketplacePlugin, readMarketplace } from "./marketplace.ts";
import {
  type EnabledPlugins,
  isJsonObject,
  isSafeName,
  isWithin,
  ownValue,
  type Plugin,
  settingFor,
  wrongTypeIssue,
} from "./plugin.ts";

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

interface PluginDiscovery {
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

/** One line of `installed_plugins.json`. */
interface InstalledPlugin {
  readonly id: PluginId;
  readonly installPath?: string;
  readonly version?: string;
  /** Set when the plugin was installed for one project only. */
  readonly projectPath?: string;
}

/** `name@marketplace`, as settings and install records write it. */
interface PluginId {
  readonly name: string;
  readonly marketplace: string;
}

/** Splits at the last `@`, so that a scoped name keeps its own. */
export function parsePluginId(text: string): PluginId | undefined {
  const at = text.lastIndexOf("@");
  if (at <= 0 || at === text.length - 1) return undefined;
  return { name: text.slice(0, at), marketplace: text.slice(at + 1) };
}

/** Reads `installed_plugins.json`: one record for each plugin in older files, a list with one for each scope in newer. */
export function readInstalledPlugins(value: unknown): {
  readonly installed: readonly InstalledPlugin[];
  readonly issues: readonly Issue[];
} {
  const plugins = isJsonObject(value) ? ownValue(value, "plugins") : undefined;
  if (!isJsonObject(plugins)) {
    return {
      installed: [],
      issues: [wrongTypeIssue(["plugins"], "an object keyed by `name@marketplace`")],
    };
  }
  const issues: Issue[] = [];
  const installed = Object.entries(plugins).flatMap(([key, records]) => {
    const id = parsePluginId(key);
    if (id === undefined) {
      issues.push(wrongTypeIssue(["plugins", key], "keyed by `name@marketplace`"));
      return [];
    }
    const list: readonly unknown[] = Array.isArray(records) ? records : [records];
    return list.flatMap((record, index) => {
      if (isJsonObject(record)) return [readRecord(id, record)];
      issues.push(wrongTypeIssue(["plugins", key, index], "an object with `installPath`"));
      return [];
    });
  });
  return { installed, issues };
}

/** Reads `known_marketplaces.json`: where each marketplace lies on this machine, by its name. */
export function readKnownMarketplaces(value: unknown): ReadonlyMap<string, readonly string[]> {
  if (!isJsonObject(value)) return new Map();
  return new Map(Object.entries(value).map(([name, record]) => [name, readLocations(record)]));
}

function readLocations(record: unknown): readonly string[] {
  if (!isJsonObject(record)) return [];
  const source = ownValue(record, "source");
  const path = isJsonObject(source) ? ownValue(source, "path") : undefined;
  return [ownValue(record, "installLocation"), path].filter(
    (place): place is string => typeof place === "string" && place !== "",
  );
}

function readRecord(id: PluginId, record: Readonly<Record<string, unknown>>): InstalledPlugin {
  const text = (key: string) => {
    const value = ownValue(record, key);
    return typeof value === "string" && value !== "" ? { [key]: value } : {};
  };
  return { id, ...text("installPath"), ...text("version"), ...text("projectPath") };
}

interface FindInstalledOptions {
  readonly configDirectory: string;
  readonly enabledPlugins: EnabledPlugins;
  readonly projectDirectory?: string;
}

/** Finds the folders of plugins that install records name, and of those that settings enable without a record. */
async function findInstalledPlugins(
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

interface MarketplaceFinder {
  /** The entry of a plugin, with its folder where the marketplace itself holds the plugin. */
  find(id: PluginId): Promise<{ plugin: MarketplacePlugin; root?: string } | undefined>;
}

/** Looks plugins up in the marketplaces on this machine; each one is read once, and its problems reported once. */
async function createMarketplaceFinder(
  folder: string,
  diagnostics: Diagnostic[],
): Promise<MarketplaceFinder> {
  const known = await loadJson(join(folder, "known_marketplaces.json"), (value) => ({
    places: readKnownMarketplaces(value),
    issues: [],
  }));
  diagnostics.push(...known.diagnostics);
  const opened = new Map<string, OpenMarketplace | undefined>();
  return {
    async find({ name, marketplace }) {
      if (!opened.has(marketplace)) {
        const places = (known.value?.places.get(marketplace) ?? []).map((place) => resolve(folder, place));
        const usual = isSafeName(marketplace) ? [join(folder, "marketplaces", marketplace)] : [];
        opened.set(marketplace, await openMarketplace([...places, ...usual], diagnostics));
      }
      const open = opened.get(marketplace);
      const plugin = open?.marketplace.plugins.find((entry) => entry.name === name);
      if (open === undefined || plugin === undefined) return undefined;
      const root = await findRoot(open.root, plugin.places);
      return { plugin, ...(root === undefined ? {} : { root }) };
    },
  };
}

interface OpenMarketplace {
  readonly root: string;
  readonly marketplace: Marketplace;
}

async function openMarketplace(
  places: readonly string[],
  diagnostics: Diagnostic[],
): Promise<OpenMarketplace | undefined> {
  for (const place of places) {
    const isDocument = await isFile(place);
    const file = isDocument ? place : join(place, ".claude-plugin", "marketplace.json");
    const loaded = await loadJson(file, readMarketplace);
    // The entries of plugins no one installed are their author's business.
    diagnostics.push(...loaded.diagnostics.filter(({ severity }) => severity === "error"));
    const marketplace = loaded.value?.marketplace;
    if (marketplace !== undefined) return { root: isDocument ? rootOfFile(file) : place, marketplace };
  }
  return undefined;
}

function rootOfFile(file: string): string {
  const folder = dirname(file);
  return folder.endsWith(".claude-plugin") ? dirname(folder) : folder;
}

/** The first place that is a folder of the marketplace; a link out of it is none. */
async function findRoot(root: string, places: readonly string[]): Promise<string | undefined> {
  const home = await realpath(root).catch(() => undefined);
  if (home === undefined) return undefined;
  for (const place of places) {
    const path = join(root, place);
    const real = await realpath(path).catch(() => undefined);
    if (real !== undefined && isWithin(home, real) && (await isDirectory(path))) return path;
  }
  return undefined;
}
