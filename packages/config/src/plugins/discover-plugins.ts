// @io
import { readdir, realpath, stat } from "node:fs/promises";
import { basename, dirname, join, relative, resolve } from "node:path";
import type { Diagnostic } from "@retinue/base/foundation/diagnostic.ts";
import type { FileSnapshot } from "@retinue/base/foundation/file-snapshot.ts";
import {
  isDirectory,
  isFile,
  linkOutsidePlugin,
  loadJson,
  loadPlugin,
  type PluginCandidate,
} from "./load-plugin.ts";
import {
  type InstalledPlugin,
  type Marketplace,
  type MarketplacePlugin,
  type PluginId,
  parsePluginId,
  readInstalledPlugins,
  readKnownMarketplaces,
  readMarketplace,
} from "./marketplace.ts";
import {
  type EnabledPlugins,
  isSafeName,
  isWithin,
  type Plugin,
  type PluginAgentPlace,
  pluginAgentPlaces,
  settingFor,
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
  /** Gets every path that is looked at. */
  readonly snapshot?: FileSnapshot | undefined;
}

interface PluginDiscovery {
  /** Those that win a shared name first; the disabled ones are among them. */
  readonly plugins: readonly Plugin[];
  readonly diagnostics: readonly Diagnostic[];
}

/** Finds every plugin on disk that settings and flags refer to. Never throws: what is broken becomes a problem. */
export async function discoverPlugins(options: DiscoverPluginsOptions): Promise<PluginDiscovery> {
  const { enabledPlugins = {}, snapshot } = options;
  const folders = ["plugins", "skills"].map((name) => join(options.configDirectory, name));
  snapshot?.add([...folders, ...recordFiles.map((name) => join(options.configDirectory, "plugins", name))]);
  const given = await findGiven(options.pluginDirectories ?? [], snapshot);
  const installed = await findInstalledPlugins({ ...options, enabledPlugins });
  const candidates = [
    ...given.candidates,
    ...installed.candidates,
    ...(await findInFolder(join(options.configDirectory, "plugins"), "plugins-dir", snapshot)),
    ...(await findInFolder(join(options.configDirectory, "skills"), "skills-dir", snapshot)),
  ];
  const diagnostics = [...given.diagnostics, ...installed.diagnostics];
  const plugins: Plugin[] = [];
  for (const candidate of await withoutRepeats(candidates, snapshot)) {
    const loaded = await loadPlugin(candidate, enabledPlugins, snapshot);
    diagnostics.push(...loaded.diagnostics);
    const stronger = plugins.find(
      (plugin) => plugin.origin === "directory" && plugin.name === loaded.plugin.name,
    );
    if (stronger === undefined || candidate.origin === "directory") plugins.push(loaded.plugin);
    else diagnostics.push(shadowed(loaded.plugin, stronger));
  }
  return { plugins, diagnostics };
}

async function findGiven(directories: readonly string[], snapshot: FileSnapshot | undefined) {
  const candidates: PluginCandidate[] = [];
  const diagnostics: Diagnostic[] = [];
  for (const directory of directories) {
    const root = resolve(directory);
    if (await isDirectory(root, snapshot)) candidates.push({ root, origin: "directory" });
    else diagnostics.push(notADirectory(directory));
  }
  return { candidates, diagnostics };
}

async function findInFolder(
  folder: string,
  origin: "plugins-dir" | "skills-dir",
  snapshot: FileSnapshot | undefined,
): Promise<PluginCandidate[]> {
  const names = await readdir(folder).catch(() => []);
  const candidates: PluginCandidate[] = [];
  for (const name of names.sort()) {
    if (name.startsWith(".") || (origin === "plugins-dir" && reservedFolders.has(name))) continue;
    const root = join(folder, name);
    const hasManifest = await isFile(join(root, ".claude-plugin", "plugin.json"), snapshot);
    if (hasManifest || (await hasMark(root, origin, snapshot))) candidates.push({ root, origin });
  }
  return candidates;
}

/** What makes a folder without a manifest a plugin. */
function hasMark(
  root: string,
  origin: "plugins-dir" | "skills-dir",
  snapshot: FileSnapshot | undefined,
): Promise<boolean> {
  return isDirectory(join(root, origin === "plugins-dir" ? "agents" : ".claude-plugin"), snapshot);
}

/** The same folder reached in two ways is one plugin; the way that was named first counts. */
async function withoutRepeats(
  candidates: readonly PluginCandidate[],
  snapshot: FileSnapshot | undefined,
): Promise<PluginCandidate[]> {
  const seen = new Set<string>();
  const kept: PluginCandidate[] = [];
  for (const candidate of candidates) {
    snapshot?.add([candidate.root], "place");
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
    message: "--plugin-dir names this folder, but it does not exist.",
    advice: "Give the folder that contains the plugin's `agents` or `.claude-plugin`.",
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

interface FindInstalledOptions {
  readonly configDirectory: string;
  readonly enabledPlugins: EnabledPlugins;
  readonly projectDirectory?: string;
  readonly snapshot?: FileSnapshot | undefined;
}

/** Finds the folders of plugins that install records name, and of those that settings enable without a record. */
async function findInstalledPlugins(
  options: FindInstalledOptions,
): Promise<{ candidates: PluginCandidate[]; diagnostics: Diagnostic[] }> {
  const folder = join(options.configDirectory, "plugins");
  const records = await loadRecords(folder);
  const diagnostics = [...records.diagnostics];
  const marketplaces = await createMarketplaceFinder(folder, diagnostics, options.snapshot);
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
    const candidate = await locate(record, { folder, marketplaces, snapshot: options.snapshot });
    if (candidate !== undefined) candidates.push(candidate);
    else if (settingFor([key], options.enabledPlugins) !== false) diagnostics.push(notFound(key, folder));
  }
  return { candidates, diagnostics };
}

/** What the plugin manager keeps in the folder of plugins. */
const recordFiles = [
  "installed_plugins.json",
  "installed_plugins_v2.json",
  "known_marketplaces.json",
] as const;

async function loadRecords(folder: string) {
  const diagnostics: Diagnostic[] = [];
  for (const name of recordFiles.slice(0, 2)) {
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
  {
    folder,
    marketplaces,
    snapshot,
  }: {
    readonly folder: string;
    readonly marketplaces: MarketplaceFinder;
    readonly snapshot: FileSnapshot | undefined;
  },
): Promise<PluginCandidate | undefined> {
  const { name, marketplace } = record.id;
  const entry = await marketplaces.find(record.id);
  const known = { origin: "installed", name, marketplace } as const;
  const spoken = entry === undefined ? known : { ...known, entry: entry.plugin };
  if (record.installPath !== undefined) {
    const root = resolve(folder, record.installPath);
    if (await isDirectory(root, snapshot)) return { ...spoken, root };
  }
  const cached = await findCached(record, folder, snapshot);
  if (cached !== undefined) return { ...spoken, root: cached };
  return entry?.root === undefined ? undefined : { ...spoken, root: entry.root };
}

async function findCached(
  { id, version }: InstalledPlugin,
  folder: string,
  snapshot: FileSnapshot | undefined,
): Promise<string | undefined> {
  if (!isSafeName(id.marketplace) || !isSafeName(id.name)) return undefined;
  const home = join(folder, "cache", id.marketplace, id.name);
  snapshot?.add([home]);
  const names = (await readdir(home).catch(() => [])).filter((name) => !name.startsWith("."));
  const newest = names.sort(byVersion()).at(-1);
  const chosen = version !== undefined && names.includes(version) ? version : newest;
  if (chosen === undefined) return undefined;
  const root = join(home, chosen);
  return (await isDirectory(root, snapshot)) ? root : undefined;
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
  snapshot: FileSnapshot | undefined,
): Promise<MarketplaceFinder> {
  const file = join(folder, recordFiles[2]);
  const readPlaces = (value: unknown) => ({ places: readKnownMarketplaces(value), issues: [] });
  const known = await loadJson(file, readPlaces);
  diagnostics.push(...known.diagnostics);
  const opened = new Map<string, OpenMarketplace | undefined>();
  return {
    async find({ name, marketplace }) {
      if (!opened.has(marketplace)) {
        const places = (known.value?.places.get(marketplace) ?? []).map((place) => resolve(folder, place));
        const usual = isSafeName(marketplace) ? [join(folder, "marketplaces", marketplace)] : [];
        opened.set(marketplace, await openMarketplace([...places, ...usual], diagnostics, snapshot));
      }
      const open = opened.get(marketplace);
      const plugin = open?.marketplace.plugins.find((entry) => entry.name === name);
      if (open === undefined || plugin === undefined) return undefined;
      const root = await findRoot(open.root, plugin.places, snapshot);
      return { plugin, root };
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
  snapshot: FileSnapshot | undefined,
): Promise<OpenMarketplace | undefined> {
  for (const place of places) {
    const isDocument = await isFile(place, snapshot);
    const file = isDocument ? place : join(place, ".claude-plugin", "marketplace.json");
    snapshot?.add([file]);
    const loaded = await loadJson(file, readMarketplace);
    // The entries of plugins that are not installed are their author's business.
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
async function findRoot(
  root: string,
  places: readonly string[],
  snapshot: FileSnapshot | undefined,
): Promise<string | undefined> {
  snapshot?.add([root], "place");
  const home = await realpath(root).catch(() => undefined);
  if (home === undefined) return undefined;
  for (const place of places) {
    const path = join(root, place);
    snapshot?.add([path], "place");
    const real = await realpath(path).catch(() => undefined);
    if (real !== undefined && isWithin(home, real) && (await isDirectory(path, snapshot))) return path;
  }
  return undefined;
}

interface PluginAgentFile {
  /** Absolute. */
  readonly file: string;
  /** From the place that holds the agents, with forward slashes; its folders are part of the agent's id. */
  readonly relativeFile: string;
}

/** Lists the Markdown files that hold a plugin's agents. A link that leads out of the plugin is not followed. */
export async function discoverPluginAgents(
  plugin: Plugin,
  snapshot?: FileSnapshot,
): Promise<{ files: PluginAgentFile[]; diagnostics: Diagnostic[] }> {
  snapshot?.add([plugin.root], "place");
  const root = await realpath(plugin.root).catch(() => undefined);
  if (root === undefined) return { files: [], diagnostics: [] };
  const walk: AgentWalk = { root, visited: new Set(), files: new Map(), diagnostics: [], snapshot };
  for (const place of pluginAgentPlaces(plugin)) {
    const isNamed = plugin.manifest.agents !== undefined;
    await visit(place.path, { place, isNamed }, walk);
  }
  return { files: [...walk.files.values()], diagnostics: walk.diagnostics };
}

interface AgentWalk {
  readonly root: string;
  /** Real paths of folders, so that a link to a parent ends. */
  readonly visited: Set<string>;
  /** By real path, so that a file named twice counts once. */
  readonly files: Map<string, PluginAgentFile>;
  readonly diagnostics: Diagnostic[];
  readonly snapshot: FileSnapshot | undefined;
}

interface Start {
  readonly place: PluginAgentPlace;
  /** The manifest names this place, so that its absence is worth a word. */
  readonly isNamed: boolean;
}

async function visit(path: string, start: Start, walk: AgentWalk): Promise<void> {
  walk.snapshot?.add([path]);
  walk.snapshot?.add([path], "place");
  const real = await realpath(path).catch(() => undefined);
  if (real === undefined) {
    if (path === start.place.path && start.isNamed) walk.diagnostics.push(missing(path));
    return;
  }
  if (!isWithin(walk.root, real)) {
    walk.diagnostics.push(linkOutsidePlugin(path, "agent"));
    return;
  }
  const entry = await stat(real).catch(() => undefined);
  if (entry?.isFile() && path.toLowerCase().endsWith(".md") && !walk.files.has(real)) {
    const way = path === start.place.path ? basename(path) : relative(start.place.path, path);
    walk.files.set(real, { file: path, relativeFile: way.replaceAll("\\", "/") });
  }
  if (!entry?.isDirectory() || walk.visited.has(real)) return;
  walk.visited.add(real);
  const names = await readdir(path).catch(() => []);
  for (const name of names.sort()) await visit(join(path, name), start, walk);
}

function missing(file: string): Diagnostic {
  return {
    severity: "warning",
    code: "plugin-path-missing",
    file,
    message: "The plugin's manifest lists this path under `agents`, but it does not exist.",
    advice: "Fix the path in `.claude-plugin/plugin.json`, or add the file.",
  };
}
