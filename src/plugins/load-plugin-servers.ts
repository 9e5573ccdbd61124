// @io
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { type Diagnostic, type Issue, placeFindings } from "../foundation/diagnostic.ts";
import { isRecord } from "../foundation/json-record.ts";
import { parseJsonDocument } from "../foundation/parse-json-document.ts";
import { readMcpServers, readServer } from "../mcp/mcp-server-config.ts";
import type { McpEntry } from "../settings/choose-mcp-servers.ts";
import { findPluginFile, loadJson } from "./load-plugin.ts";
import type { Plugin } from "./plugin.ts";
import { pluginDataDirectory, pluginId } from "./plugin-data-directory.ts";

export interface PluginServersOptions {
  /** Holds one directory for what each plugin keeps. */
  readonly dataDirectory: string;
  /** What people have answered to the questions of plugins: the setting `pluginConfigs`. */
  readonly pluginConfigs?: Readonly<Record<string, unknown>>;
}

export interface PluginServersLoaded {
  readonly entries: readonly McpEntry[];
  readonly diagnostics: readonly Diagnostic[];
}

/** The servers of the enabled plugins: in the manifest, in files it names, and in `.mcp.json`. */
export async function loadPluginServers(
  plugins: readonly Plugin[],
  options: PluginServersOptions,
): Promise<PluginServersLoaded> {
  const loaded = await Promise.all(
    plugins.filter(({ enabled }) => enabled).map((plugin) => loadOne(plugin, options)),
  );
  return {
    entries: loaded.flatMap(({ entries }) => entries),
    diagnostics: loaded.flatMap(({ diagnostics }) => diagnostics),
  };
}

async function loadOne(plugin: Plugin, options: PluginServersOptions): Promise<PluginServersLoaded> {
  const { root, manifest } = plugin;
  const surroundings = surroundingsOf(plugin, options);
  const manifestFile = join(root, ".claude-plugin", "plugin.json");
  const issues: Issue[] = [];
  const inline = [...(manifest.mcpServers?.inline ?? [])].map(([name, config]) =>
    entryOf(plugin, readServer(name, config, ["mcpServers", name], issues), {
      ...surroundings,
      file: manifestFile,
      locate: () => undefined,
    }),
  );
  const diagnostics = placeFindings(issues, manifestFile, () => undefined);
  const entries = [...inline];
  const named = (manifest.mcpServers?.paths ?? []).map((path) => join(root, path));
  for (const file of new Set([...named, join(root, ".mcp.json")])) {
    const found = isBundle(file)
      ? ({ type: "refused", diagnostic: bundle(file) } as const)
      : await findPluginFile({ file, root, isNamed: named.includes(file), missing });
    if (found.type === "refused") diagnostics.push(found.diagnostic);
    if (found.type !== "usable") continue;
    const { value, diagnostics: read } = await loadJson(file, (json) => readMcpServers(json));
    diagnostics.push(...read);
    const locate = value === undefined ? () => undefined : await locateIn(file);
    entries.push(
      ...(value?.servers ?? []).map((config) => entryOf(plugin, config, { ...surroundings, file, locate })),
    );
  }
  return { entries, diagnostics };
}

type Surroundings = Pick<McpEntry, "variables" | "extraEnv">;

function surroundingsOf(
  plugin: Plugin,
  { dataDirectory, pluginConfigs }: PluginServersOptions,
): Surroundings {
  const id = pluginId(plugin);
  const places = {
    CLAUDE_PLUGIN_ROOT: plugin.root,
    CLAUDE_PLUGIN_DATA: pluginDataDirectory(plugin, dataDirectory),
  };
  return {
    variables: new Map([...Object.entries(places), ...userConfig(plugin, id, pluginConfigs)]),
    extraEnv: places,
  };
}

/** `${user_config.key}`: what the person answered, or the default of the question. */
function userConfig(
  { name, manifest }: Plugin,
  id: string,
  pluginConfigs: Readonly<Record<string, unknown>> = {},
): readonly (readonly [string, string])[] {
  const given = [name, id].map((key) => (Object.hasOwn(pluginConfigs, key) ? pluginConfigs[key] : undefined));
  const answers = given.flatMap((config) => {
    const options = isRecord(config) ? config["options"] : undefined;
    return isRecord(options) ? Object.entries(options) : [];
  });
  const defaults = [...(manifest.userConfig ?? [])].map(
    ([key, question]) => [key, isRecord(question) ? question["default"] : undefined] as const,
  );
  return [...defaults, ...answers]
    .filter(([, value]) => ["string", "number", "boolean"].includes(typeof value))
    .map(([key, value]) => [`user_config.${key}`, String(value)]);
}

function entryOf(
  plugin: Plugin,
  config: McpEntry["config"],
  rest: Surroundings & Pick<McpEntry, "locate"> & { readonly file: string },
): McpEntry {
  const name = `plugin:${plugin.name}:${config.name}`;
  return { ...rest, config: { ...config, name }, scope: "plugin", fromRepository: false };
}

async function locateIn(file: string): Promise<McpEntry["locate"]> {
  const text = await readFile(file, "utf8").catch(() => undefined);
  return text === undefined ? () => undefined : parseJsonDocument(text, file).locate;
}

function isBundle(file: string): boolean {
  return /\.(?:mcpb|dxt)$/i.test(file);
}

const missing = {
  severity: "warning",
  message: "The plugin's manifest names this file under `mcpServers`, but there is none.",
} as const;

function bundle(file: string): Diagnostic {
  return {
    severity: "warning",
    code: "plugin-bundle-unsupported",
    file,
    message: "This is a packed MCP server, and such bundles are not unpacked here; it is left out.",
    advice: "Configure the server with its command or URL.",
  };
}
