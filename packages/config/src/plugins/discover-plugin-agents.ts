// @io
import { readdir, realpath, stat } from "node:fs/promises";
import { basename, join, relative } from "node:path";
import type { Diagnostic } from "@retinue/base/foundation/diagnostic.ts";
import type { Footprint } from "@retinue/base/foundation/footprint.ts";
import { linkOutsidePlugin } from "./load-plugin.ts";
import { isWithin, type Plugin, type PluginAgentPlace, pluginAgentPlaces } from "./plugin.ts";

export interface PluginAgentFile {
  /** Absolute. */
  readonly file: string;
  /** From the place that holds the agents, with forward slashes; its folders are part of the agent's id. */
  readonly relativeFile: string;
}

/** Lists the Markdown files that hold a plugin's agents. A link that leads out of the plugin is not followed. */
export async function discoverPluginAgents(
  plugin: Plugin,
  footprint?: Footprint,
): Promise<{ files: PluginAgentFile[]; diagnostics: Diagnostic[] }> {
  footprint?.add([plugin.root], "place");
  const root = await realpath(plugin.root).catch(() => undefined);
  if (root === undefined) return { files: [], diagnostics: [] };
  const walk: Walk = { root, visited: new Set(), files: new Map(), diagnostics: [], footprint };
  for (const place of pluginAgentPlaces(plugin)) {
    const isNamed = plugin.manifest.agents !== undefined;
    await visit(place.path, { place, isNamed }, walk);
  }
  return { files: [...walk.files.values()], diagnostics: walk.diagnostics };
}

interface Walk {
  readonly root: string;
  /** Real paths of folders, so that a link to a parent ends. */
  readonly visited: Set<string>;
  /** By real path, so that a file named twice counts once. */
  readonly files: Map<string, PluginAgentFile>;
  readonly diagnostics: Diagnostic[];
  readonly footprint: Footprint | undefined;
}

interface Start {
  readonly place: PluginAgentPlace;
  /** The manifest names this place, so that its absence is worth a word. */
  readonly isNamed: boolean;
}

async function visit(path: string, start: Start, walk: Walk): Promise<void> {
  walk.footprint?.add([path]);
  walk.footprint?.add([path], "place");
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
    message: "The plugin's manifest names this place under `agents`, but there is nothing here.",
    advice: "Fix the path in `.claude-plugin/plugin.json`, or add the file.",
  };
}
