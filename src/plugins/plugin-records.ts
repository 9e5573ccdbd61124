import type { Issue } from "../foundation/diagnostic.ts";
import { isJsonObject, ownValue, wrongTypeIssue } from "./json-fields.ts";

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
