import type { DocumentPath, Issue } from "../foundation/diagnostic.ts";
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
  /** False: the entry says all there is to say about the plugin. */
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
    const message = "A marketplace must be a JSON object; nothing of it was used.";
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
      ...(name === undefined ? {} : { name }),
      ...(pluginRoot === undefined ? {} : { pluginRoot }),
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
  if (name === undefined || name === "") issues.push(wrongTypeIssue([...path, "name"], "a text"));
  const source = readSource(entry, context);
  return {
    ...(name === undefined ? {} : { name }),
    ...source,
    ...(strict === undefined ? {} : { strict }),
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
    context.issues.push(wrongTypeIssue(path, "a path, or an object that says its kind in `source`"));
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
