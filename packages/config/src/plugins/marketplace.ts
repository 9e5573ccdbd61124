import type { DocumentPath, Issue } from "@retinue/base/foundation/diagnostic.ts";
import {
  createFieldReader,
  isJsonObject,
  type JsonObject,
  ownValue,
  type PluginManifest,
  readInnerPath,
  readPluginManifest,
  wrongTypeIssue,
} from "./plugin.ts";

export interface MarketplacePlugin {
  readonly name?: string;
  /** A path as written, or the kind of a source that is fetched: `github`, `url`, `git-subdir`. */
  readonly source?: string;
  /** Where the plugin may lie inside the marketplace, most likely place first; empty for sources that are fetched. */
  readonly places: readonly string[];
  /** False: the entry is the whole description of the plugin. */
  readonly strict?: boolean;
  /** What the entry itself says about the plugin's parts. */
  readonly manifest: PluginManifest;
}

export interface Marketplace {
  readonly name?: string;
  /** The folder that bare source names are relative to, as written. */
  readonly pluginRoot?: string;
  readonly plugins: readonly MarketplacePlugin[];
}

export interface MarketplaceReading {
  /** Undefined only when the value is not an object. */
  readonly marketplace: Marketplace | undefined;
  readonly issues: readonly Issue[];
}

/** Reads the value of a `marketplace.json`. Never throws; an entry that cannot be used does not hide the others. */
export function readMarketplace(value: unknown): MarketplaceReading {
  if (!isJsonObject(value)) {
    const message = "A marketplace must be a JSON object; none of it was used.";
    return {
      marketplace: undefined,
      issues: [{ severity: "error", code: "wrong-type", path: [], message }],
    };
  }
  const issues: Issue[] = [];
  const name = createFieldReader(value, [], issues).string("name");
  const metadata = ownValue(value, "metadata");
  const pluginRoot = isJsonObject(metadata)
    ? createFieldReader(metadata, ["metadata"], issues).string("pluginRoot")
    : undefined;
  const plugins = listEntries(value, issues).map(([entry, path]) =>
    readEntry(entry, { path, pluginRoot, issues }),
  );
  return {
    marketplace: {
      name,
      pluginRoot,
      plugins,
    },
    issues,
  };
}

function listEntries(value: JsonObject, issues: Issue[]): (readonly [JsonObject, DocumentPath])[] {
  const written = ownValue(value, "plugins");
  if (!Array.isArray(written)) {
    issues.push(wrongTypeIssue(["plugins"], "a list of plugins"));
    return [];
  }
  return written.flatMap((entry: unknown, index) => {
    const path = ["plugins", index];
    if (isJsonObject(entry)) return [[entry, path] as const];
    issues.push(wrongTypeIssue(path, "an object with `name` and `source`"));
    return [];
  });
}

interface EntryContext {
  readonly path: DocumentPath;
  readonly pluginRoot: string | undefined;
  readonly issues: Issue[];
}

function readEntry(entry: JsonObject, context: EntryContext): MarketplacePlugin {
  const { path, issues } = context;
  const strict = createFieldReader(entry, path, issues).boolean("strict");
  const reading = readPluginManifest(entry, path);
  issues.push(...reading.issues.filter(({ code }) => code !== "plugin-name-missing"));
  const name = reading.manifest?.name;
  if (name === undefined || name === "") issues.push(wrongTypeIssue([...path, "name"], "a string"));
  const source = readSource(entry, context);
  return {
    name,
    ...source,
    strict,
    manifest: reading.manifest ?? {},
  };
}

function readSource(entry: JsonObject, context: EntryContext): Pick<MarketplacePlugin, "source" | "places"> {
  const written = ownValue(entry, "source");
  const path = [...context.path, "source"];
  if (typeof written === "string") {
    return { source: written, places: isRemote(written) ? [] : localPlaces(written, { ...context, path }) };
  }
  const kind = isJsonObject(written) ? ownValue(written, "source") : undefined;
  if (!isJsonObject(written) || typeof kind !== "string") {
    context.issues.push(wrongTypeIssue(path, "a path, or an object with its kind in `source`"));
    return { places: [] };
  }
  const folder = ownValue(written, "path");
  const isLocal = typeof folder === "string" && localKinds.has(kind);
  return { source: kind, places: isLocal ? localPlaces(folder, { ...context, path }) : [] };
}

/** `./x` is meant from the marketplace's root and `x` from `pluginRoot`; people mix them up, so both are tried. */
function localPlaces(written: string, { path, pluginRoot, issues }: EntryContext): string[] {
  const own = readInnerPath(written);
  if (own.type === "refused") {
    issues.push({
      severity: "warning",
      code: "path-outside-marketplace",
      path,
      message: `The source ${JSON.stringify(written.slice(0, 200))} was refused because ${own.why}.`,
      advice: "Name a folder of the marketplace, relative to its root: `./plugins/reviewer`.",
    });
    return [];
  }
  const root = pluginRoot === undefined ? undefined : readInnerPath(pluginRoot);
  if (root === undefined || root.type === "refused" || root.path === ".") return [own.path];
  const below = own.path === "." ? root.path : `${root.path}/${own.path}`;
  return written.trim().startsWith(".") ? [own.path, below] : [below, own.path];
}

function isRemote(source: string): boolean {
  return /^(?:[a-z][a-z0-9+.-]*:\/\/|git@|github:|npm:)/i.test(source.trim());
}

const localKinds: ReadonlySet<string> = new Set(["directory", "local", "path", "relative"]);

/** One line of `installed_plugins.json`. */
export interface InstalledPlugin {
  readonly id: PluginId;
  readonly installPath?: string;
  readonly version?: string;
  /** Set when the plugin was installed for one project only. */
  readonly projectPath?: string;
}

/** `name@marketplace`, as settings and install records write it. */
export interface PluginId {
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
