import { join } from "node:path";
import type { Diagnostic } from "../foundation/diagnostic.ts";
import type { SourcedHookRule } from "../hooks/hook-rule.ts";
import { readHooksFile } from "../hooks/read-hooks.ts";
import { findPluginFile, loadJson } from "./load-plugin.ts";
import type { Plugin } from "./plugin.ts";
import { pluginDataDirectory } from "./plugin-data-directory.ts";

export interface PluginHooksLoaded {
  readonly hooks: readonly SourcedHookRule[];
  readonly diagnostics: readonly Diagnostic[];
}

/** The hooks of the enabled plugins: in the manifest, in files it names, and in `hooks/hooks.json`. */
export async function loadPluginHooks(
  plugins: readonly Plugin[],
  dataDirectory: string,
): Promise<PluginHooksLoaded> {
  const loaded = await Promise.all(
    plugins.filter(({ enabled }) => enabled).map((plugin) => loadOne(plugin, dataDirectory)),
  );
  return {
    hooks: loaded.flatMap(({ hooks }) => hooks),
    diagnostics: loaded.flatMap(({ diagnostics }) => diagnostics),
  };
}

async function loadOne(plugin: Plugin, dataDirectory: string): Promise<PluginHooksLoaded> {
  const { name, root, manifest } = plugin;
  const data = pluginDataDirectory(plugin, dataDirectory);
  const hooks: SourcedHookRule[] = (manifest.hooks?.inline ?? []).map((hook) => ({
    hook,
    origin: { type: "plugin", name, root, data },
  }));
  const diagnostics: Diagnostic[] = [];
  const named = (manifest.hooks?.paths ?? []).map((path) => join(root, path));
  for (const file of new Set([...named, join(root, "hooks", "hooks.json")])) {
    const found = await findPluginFile({ file, root, isNamed: named.includes(file), missing });
    if (found.type === "refused") diagnostics.push(found.diagnostic);
    if (found.type !== "usable") continue;
    const { value, diagnostics: read } = await loadJson(file, readHooksFile);
    diagnostics.push(...read);
    const origin = { type: "plugin", name, root, data, file } as const;
    hooks.push(...(value?.hooks ?? []).map((hook) => ({ hook, origin })));
  }
  return { hooks, diagnostics };
}

const missing = {
  severity: "error",
  message:
    "The plugin's manifest names this file under `hooks`, but there is none; hooks it should hold do not run.",
} as const;
