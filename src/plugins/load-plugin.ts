// @io
import { readFile, realpath, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { type Diagnostic, type Issue, placeFindings } from "../foundation/diagnostic.ts";
import { parseJsonDocument } from "../foundation/parse-json-document.ts";
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

export interface PluginCandidate {
  /** Absolute. */
  readonly root: string;
  readonly origin: PluginOrigin;
  /** Serves when the manifest gives no usable name; without it, the folder's name does. */
  readonly name?: string;
  readonly marketplace?: string;
  /** What a marketplace entry says about the plugin's parts. */
  readonly entry?: { readonly manifest: PluginManifest; readonly strict?: boolean };
}

/** Reads one plugin folder. A manifest that cannot be read is a problem; the plugin still has its default folders. */
export async function loadPlugin(
  candidate: PluginCandidate,
  enabledPlugins: EnabledPlugins,
): Promise<{ plugin: Plugin; diagnostics: Diagnostic[] }> {
  const file = join(candidate.root, ".claude-plugin", "plugin.json");
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
      ...(candidate.marketplace === undefined ? {} : { marketplace: candidate.marketplace }),
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

export async function isDirectory(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined))?.isDirectory() ?? false;
}

export async function isFile(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined))?.isFile() ?? false;
}

/** An entry that is not strict speaks for the plugin; a strict one fills in what the manifest leaves open. */
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
  /** What is said where it is missing. */
  readonly missing: Pick<Diagnostic, "severity" | "message">;
}

type FoundPluginFile =
  | { readonly type: "usable" }
  /** It need not be there. */
  | { readonly type: "absent" }
  | { readonly type: "refused"; readonly diagnostic: Diagnostic };

/** Whether a file of a plugin can be read; a link that leads out of the plugin is not followed. */
export async function findPluginFile({ file, root, isNamed, missing }: PluginFile): Promise<FoundPluginFile> {
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
