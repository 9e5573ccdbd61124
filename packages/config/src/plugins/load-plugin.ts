// @io
import { readFile, realpath, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { type Diagnostic, type Issue, placeFindings } from "@retinue/base/foundation/diagnostic.ts";
import type { FileSnapshot } from "@retinue/base/foundation/file-snapshot.ts";
import { isRecord } from "@retinue/base/foundation/json-record.ts";
import { parseJsonDocument } from "@retinue/base/foundation/parse-json-document.ts";
import type { SourcedHookRule } from "../hooks/hook-rule.ts";
import { readHooksFile } from "../hooks/read-hooks.ts";
import { readMcpServers, readServer } from "../mcp/mcp-server-config.ts";
import type { McpEntry } from "../settings/load-mcp-entries.ts";
import {
  type EnabledPlugins,
  isSafeName,
  isWithin,
  type Plugin,
  type PluginManifest,
  type PluginOrigin,
  readPluginManifest,
  settingFor,
} from "./plugin.ts";
import { pluginDataDirectory, pluginId } from "./plugin-data-directory.ts";

export interface PluginCandidate {
  /** Absolute. */
  readonly root: string;
  readonly origin: PluginOrigin;
  /** Serves when the manifest gives no usable name; without it, the folder's name does. */
  readonly name?: string;
  readonly marketplace?: string;
  /** What a marketplace entry lists as the plugin's parts. */
  readonly entry?: { readonly manifest: PluginManifest; readonly strict?: boolean };
}

/** Reads one plugin folder. A manifest that cannot be read is a problem; the plugin still has its default folders. */
export async function loadPlugin(
  candidate: PluginCandidate,
  enabledPlugins: EnabledPlugins,
  snapshot?: FileSnapshot,
): Promise<{ plugin: Plugin; diagnostics: Diagnostic[] }> {
  const file = join(candidate.root, ".claude-plugin", "plugin.json");
  snapshot?.add([file]);
  snapshot?.add([candidate.root], "place");
  const { value, diagnostics } = await loadJson(file, (json) => readPluginManifest(json));
  const manifest = mergeEntry(value?.manifest, candidate.entry);
  const folder = basename((await realpath(candidate.root).catch(() => undefined)) ?? candidate.root);
  const name = [manifest.name, candidate.name, folder].find((text) => text !== undefined && isSafeName(text));
  const plugin = { name: name ?? "plugin", manifest };
  return {
    plugin: {
      ...plugin,
      root: candidate.root,
      origin: candidate.origin,
      marketplace: candidate.marketplace,
      enabled: isEnabled(candidate, plugin, enabledPlugins),
    },
    diagnostics,
  };
}

/** Far above the largest marketplaces; more is a mistake, and a pipe or device would never end. */
const largestJson = 16 * 1024 * 1024;

/** Reads a JSON file with a tolerant reader. A file that is not there is neither a value nor a problem. */
export async function loadJson<Reading extends { readonly issues: readonly Issue[] }>(
  file: string,
  read: (value: unknown) => Reading,
): Promise<{ value: Reading | undefined; diagnostics: Diagnostic[] }> {
  let text: string;
  try {
    const status = await stat(file);
    if (!status.isFile()) throw new Error("it is not a regular file");
    if (status.size > largestJson) throw new Error("it is larger than 16 MiB");
    text = await readFile(file, "utf8");
  } catch (error) {
    return { value: undefined, diagnostics: isAbsent(error) ? [] : [unreadable(file, error)] };
  }
  const document = parseJsonDocument(text, file);
  if (document.diagnostic !== undefined) return { value: undefined, diagnostics: [document.diagnostic] };
  const value = read(document.value);
  return { value, diagnostics: placeFindings(value.issues, file, document.locate) };
}

export async function isDirectory(path: string, snapshot?: FileSnapshot): Promise<boolean> {
  snapshot?.add([path], "kind");
  return (await stat(path).catch(() => undefined))?.isDirectory() ?? false;
}

export async function isFile(path: string, snapshot?: FileSnapshot): Promise<boolean> {
  snapshot?.add([path], "kind");
  return (await stat(path).catch(() => undefined))?.isFile() ?? false;
}

/** An entry that is not strict overrides the manifest; a strict one fills in what the manifest leaves open. */
function mergeEntry(own: PluginManifest | undefined, entry: PluginCandidate["entry"]): PluginManifest {
  if (entry === undefined) return own ?? {};
  return entry.strict === false ? { ...own, ...entry.manifest } : { ...entry.manifest, ...own };
}

function isEnabled(
  { origin, marketplace, name }: PluginCandidate,
  plugin: Pick<Plugin, "name" | "manifest">,
  enabledPlugins: EnabledPlugins,
): boolean {
  const names = name === undefined ? [plugin.name] : [plugin.name, name];
  const place = marketplace ?? (origin === "directory" ? "inline" : origin);
  const keys = names.flatMap((known) =>
    marketplace === undefined ? [known, `${known}@${place}`] : [`${known}@${place}`],
  );
  return (
    settingFor(keys, enabledPlugins) ?? (origin === "directory" || plugin.manifest.defaultEnabled !== false)
  );
}

function isAbsent(error: unknown): boolean {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return code === "ENOENT" || code === "ENOTDIR";
}

function unreadable(file: string, error: unknown): Diagnostic {
  return {
    severity: "error",
    code: "unreadable-file",
    file,
    message: `The file cannot be read: ${error instanceof Error ? error.message : String(error)}.`,
    advice: "Check that it is a file and that you may read it.",
  };
}

interface PluginFile {
  readonly file: string;
  readonly root: string;
  /** The manifest names it, so it has to be there. */
  readonly isNamed: boolean;
  /** What is reported where it is missing. */
  readonly missing: Pick<Diagnostic, "severity" | "message">;
}

type FoundPluginFile =
  | { readonly type: "usable" }
  /** It need not be there. */
  | { readonly type: "absent" }
  | { readonly type: "refused"; readonly diagnostic: Diagnostic };

/** Whether a file of a plugin can be read; a link that leads out of the plugin is not followed. */
async function findPluginFile({ file, root, isNamed, missing }: PluginFile): Promise<FoundPluginFile> {
  const lacking: FoundPluginFile = {
    type: "refused",
    diagnostic: {
      ...missing,
      code: "plugin-path-missing",
      file,
      advice: "Fix the path in `.claude-plugin/plugin.json`, or add the file.",
    },
  };
  if (!(await isFile(file))) return isNamed ? lacking : { type: "absent" };
  try {
    const [real, home] = await Promise.all([realpath(file), realpath(root)]);
    return isWithin(home, real)
      ? { type: "usable" }
      : { type: "refused", diagnostic: linkOutsidePlugin(file, "file") };
  } catch {
    return lacking;
  }
}

export function linkOutsidePlugin(file: string, what: string): Diagnostic {
  return {
    severity: "warning",
    code: "link-outside-plugin",
    file,
    message: "This link leads out of the plugin and was not followed.",
    advice: `Copy the ${what} into the plugin.`,
  };
}

interface PluginHooksLoaded {
  readonly hooks: readonly SourcedHookRule[];
  readonly diagnostics: readonly Diagnostic[];
}

/** The hooks of the enabled plugins: in the manifest, in files it names, and in `hooks/hooks.json`. */
export async function loadPluginHooks(
  plugins: readonly Plugin[],
  dataDirectory: string,
): Promise<PluginHooksLoaded> {
  const loaded = await Promise.all(
    plugins.filter(({ enabled }) => enabled).map((plugin) => loadHooksOf(plugin, dataDirectory)),
  );
  return {
    hooks: loaded.flatMap(({ hooks }) => hooks),
    diagnostics: loaded.flatMap(({ diagnostics }) => diagnostics),
  };
}

async function loadHooksOf(plugin: Plugin, dataDirectory: string): Promise<PluginHooksLoaded> {
  const { name, root, manifest } = plugin;
  const data = pluginDataDirectory(plugin, dataDirectory);
  const hooks: SourcedHookRule[] = (manifest.hooks?.inline ?? []).map((hook) => ({
    hook,
    origin: { type: "plugin", name, root, data },
  }));
  const diagnostics: Diagnostic[] = [];
  const named = (manifest.hooks?.paths ?? []).map((path) => join(root, path));
  for (const file of new Set([...named, join(root, "hooks", "hooks.json")])) {
    const found = await findPluginFile({ file, root, isNamed: named.includes(file), missing: missingHooks });
    if (found.type === "refused") diagnostics.push(found.diagnostic);
    if (found.type !== "usable") continue;
    const { value, diagnostics: read } = await loadJson(file, readHooksFile);
    diagnostics.push(...read);
    const origin = { type: "plugin", name, root, data, file } as const;
    hooks.push(...(value?.hooks ?? []).map((hook) => ({ hook, origin })));
  }
  return { hooks, diagnostics };
}

const missingHooks = {
  severity: "error",
  message:
    "The plugin's manifest lists this file under `hooks`, but it does not exist; its hooks do not run.",
} as const;

interface PluginServersOptions {
  /** Holds one directory for what each plugin keeps. */
  readonly dataDirectory: string;
  /** What people have answered to the questions of plugins: the setting `pluginConfigs`. */
  readonly pluginConfigs?: Readonly<Record<string, unknown>>;
}

interface PluginServersLoaded {
  readonly entries: readonly McpEntry[];
  readonly diagnostics: readonly Diagnostic[];
}

/** The servers of the enabled plugins: in the manifest, in files it names, and in `.mcp.json`. */
export async function loadPluginServers(
  plugins: readonly Plugin[],
  options: PluginServersOptions,
): Promise<PluginServersLoaded> {
  const loaded = await Promise.all(
    plugins.filter(({ enabled }) => enabled).map((plugin) => loadServersOf(plugin, options)),
  );
  return {
    entries: loaded.flatMap(({ entries }) => entries),
    diagnostics: loaded.flatMap(({ diagnostics }) => diagnostics),
  };
}

async function loadServersOf(plugin: Plugin, options: PluginServersOptions): Promise<PluginServersLoaded> {
  const { root, manifest } = plugin;
  const { dataDirectory, pluginConfigs } = options;
  const id = pluginId(plugin);
  const places = {
    CLAUDE_PLUGIN_ROOT: plugin.root,
    CLAUDE_PLUGIN_DATA: pluginDataDirectory(plugin, dataDirectory),
  };
  const surroundings = {
    variables: new Map([...Object.entries(places), ...userConfig(plugin, id, pluginConfigs)]),
    extraEnv: places,
  };
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
      : await findPluginFile({ file, root, isNamed: named.includes(file), missing: missingServers });
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

const missingServers = {
  severity: "warning",
  message: "The plugin's manifest lists this file under `mcpServers`, but it does not exist.",
} as const;

function bundle(file: string): Diagnostic {
  return {
    severity: "warning",
    code: "plugin-bundle-unsupported",
    file,
    message: "This is a bundled MCP server, and bundles are not supported; it was left out.",
    advice: "Configure the server with its command or URL.",
  };
}
