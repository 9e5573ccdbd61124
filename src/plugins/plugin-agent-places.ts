import { isAbsolute, join, relative } from "node:path";
import type { Plugin } from "./plugin.ts";

/** A file or folder of a plugin that holds agent definitions. */
export interface PluginAgentPlace {
  readonly type: "file" | "directory";
  /** Absolute. */
  readonly path: string;
}

/** Where a plugin keeps its agents: what the manifest names, else the folder `agents`. */
export function pluginAgentPlaces(plugin: Pick<Plugin, "root" | "manifest">): PluginAgentPlace[] {
  const paths = plugin.manifest.agents?.paths ?? ["agents"];
  return paths.map((path) => ({
    type: path.toLowerCase().endsWith(".md") ? "file" : "directory",
    path: join(plugin.root, path),
  }));
}

/**
 * The full name of a plugin's agent: `plugin:name`, with the sub-folders between them for a file that lies deeper.
 * `relativeFile` counts from the place that holds the agents.
 */
export function pluginAgentId(plugin: Pick<Plugin, "name">, relativeFile: string, name: string): string {
  const folders = relativeFile.split(/[/\\]/).slice(0, -1);
  const spoken = folders.filter((folder) => folder !== "" && folder !== ".");
  return [plugin.name, ...spoken, name].join(":");
}

/** Whether a path lies in a folder or is it; both must be real paths already. */
export function isWithin(folder: string, path: string): boolean {
  const way = relative(folder, path);
  return way === "" || (way !== ".." && !/^\.\.[/\\]/.test(way) && !isAbsolute(way));
}
