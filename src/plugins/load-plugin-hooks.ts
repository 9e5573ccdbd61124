import { realpath } from "node:fs/promises";
import { join } from "node:path";
import type { Problem } from "../foundation/problem.ts";
import { readHooksFile } from "../hooks/hook-config.ts";
import type { SourcedHookRule } from "../hooks/select-hooks.ts";
import { isFile, loadJson } from "./load-plugin.ts";
import type { Plugin } from "./plugin.ts";
import { isWithin } from "./plugin-agents.ts";
import { pluginDataDirectory } from "./plugin-data.ts";

export interface PluginHooksLoaded {
  readonly hooks: readonly SourcedHookRule[];
  readonly problems: readonly Problem[];
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
    problems: loaded.flatMap(({ problems }) => problems),
  };
}

async function loadOne(plugin: Plugin, dataDirectory: string): Promise<PluginHooksLoaded> {
  const { name, root, manifest } = plugin;
  const data = pluginDataDirectory(plugin, dataDirectory);
  const hooks: SourcedHookRule[] = (manifest.hooks?.inline ?? []).map((hook) => ({
    hook,
    origin: { type: "plugin", name, root, data },
  }));
  const problems: Problem[] = [];
  const named = (manifest.hooks?.paths ?? []).map((path) => join(root, path));
  for (const file of new Set([...named, join(root, "hooks", "hooks.json")])) {
    const problem = await refuse(file, root, named.includes(file));
    if (problem !== undefined) problems.push(problem);
    else {
      const { value, problems: found } = await loadJson(file, readHooksFile);
      problems.push(...found);
      const origin = { type: "plugin", name, root, data, file } as const;
      hooks.push(...(value?.hooks ?? []).map((hook) => ({ hook, origin })));
    }
  }
  return { hooks, problems };
}

async function refuse(file: string, root: string, isNamed: boolean): Promise<Problem | undefined> {
  if (!(await isFile(file))) return isNamed ? missing(file) : undefined;
  try {
    const [real, home] = await Promise.all([realpath(file), realpath(root)]);
    return isWithin(home, real) ? undefined : outside(file);
  } catch {
    return missing(file);
  }
}

function missing(file: string): Problem {
  return {
    severity: "error",
    code: "plugin-path-missing",
    file,
    message:
      "The plugin's manifest names this file under `hooks`, but there is none; hooks it should hold do not run.",
    advice: "Mend the path in `.claude-plugin/plugin.json`, or add the file.",
  };
}

function outside(file: string): Problem {
  return {
    severity: "warning",
    code: "link-outside-plugin",
    file,
    message: "This link leads out of the plugin and was not followed.",
    advice: "Copy the hooks into the plugin.",
  };
}
