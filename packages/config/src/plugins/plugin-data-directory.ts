import { join } from "node:path";
import type { Plugin } from "./plugin.ts";

/** `name@marketplace`, or the bare name of a plugin that comes from none. */
export function pluginId({ name, marketplace }: Pick<Plugin, "name" | "marketplace">): string {
  return marketplace === undefined ? name : `${name}@${marketplace}`;
}

/** Where a plugin may keep files of its own, also over updates: what `${CLAUDE_PLUGIN_DATA}` means. */
export function pluginDataDirectory(
  plugin: Pick<Plugin, "name" | "marketplace">,
  dataDirectory: string,
): string {
  return join(dataDirectory, pluginId(plugin).replace(/[^A-Za-z0-9_-]/g, "-"));
}
