import { isAbsolute, join, relative } from "node:path";
import { defined } from "@retinue/base/foundation/defined.ts";
import type { DocumentPath, Issue } from "@retinue/base/foundation/diagnostic.ts";
import { type HookRule, readHooks } from "../hooks/read-hooks.ts";

/** How a plugin came to be seen: `--plugin-dir`, an install record or marketplace, a skills folder, the plugins folder. */
export type PluginOrigin = "directory" | "installed" | "skills-dir" | "plugins-dir";

export interface Plugin {
  /** The namespace of its agents and skills. */
  readonly name: string;
  /** Absolute. */
  readonly root: string;
  /** Empty when the plugin has no manifest, or one that cannot be read. */
  readonly manifest: PluginManifest;
  readonly origin: PluginOrigin;
  readonly marketplace?: string;
  readonly enabled: boolean;
}

/** What settings have under `enabledPlugins`; a version list counts as yes. */
export type EnabledPlugins = Readonly<Record<string, unknown>>;

/** True or false where settings have one of the keys, undefined where they have none. */
export function settingFor(keys: readonly string[], enabledPlugins: EnabledPlugins): boolean | undefined {
  const values = keys.filter((key) => Object.hasOwn(enabledPlugins, key)).map((key) => enabledPlugins[key]);
  if (values.includes(false)) return false;
  return values.some((value) => value === true || Array.isArray(value)) ? true : undefined;
}

/** Files or folders of a plugin that hold one kind of component. */
interface ComponentPaths {
  /** The value as it is in the file. */
  readonly written: unknown;
  /** Relative to the plugin's root, forward slashes, none leading outside. */
  readonly paths: readonly string[];
}

interface PluginHooks extends ComponentPaths {
  /** The hooks that are in the manifest itself. */
  readonly inline: readonly HookRule[];
}

interface PluginMcpServers extends ComponentPaths {
  /** The servers that are in the manifest itself, by name. */
  readonly inline: ReadonlyMap<string, unknown>;
}

/** Reads `agents`, `commands` or `skills`: a path, a list of paths, or a map or list whose values name a `source`, `path` or `file`. */
function readComponentPaths(written: unknown, path: DocumentPath, issues: Issue[]): ComponentPaths {
  const paths: string[] = [];
  for (const [value, at] of members(written, path)) {
    const source = isJsonObject(value)
      ? (ownValue(value, "source") ?? ownValue(value, "path") ?? ownValue(value, "file"))
      : value;
    if (typeof source === "string") addPath(paths, source, at, issues);
    else if (!isJsonObject(value) || !Object.hasOwn(value, "content")) {
      issues.push(wrongTypeIssue(at, "a path inside the plugin"));
    }
  }
  return { written, paths };
}

/** Reads `hooks`: a path to a hooks file, hooks in place, or a list of both. */
function readPluginHooks(written: unknown, path: DocumentPath, issues: Issue[]): PluginHooks {
  const paths: string[] = [];
  const inline: HookRule[] = [];
  for (const [value, at] of listMembers(written, path)) {
    if (typeof value === "string") addPath(paths, value, at, issues);
    else if (isJsonObject(value)) {
      const reading = readInlineHooks(value, at);
      inline.push(...reading.hooks);
      issues.push(...reading.issues);
    } else issues.push(wrongTypeIssue(at, "a path inside the plugin or an object with hooks"));
  }
  return { written, paths, inline };
}

/** Reads `mcpServers`: a path to an MCP file, servers in place, or a list of both. */
function readPluginMcpServers(written: unknown, path: DocumentPath, issues: Issue[]): PluginMcpServers {
  const paths: string[] = [];
  const inline = new Map<string, unknown>();
  for (const [value, at] of listMembers(written, path)) {
    if (typeof value === "string") addPath(paths, value, at, issues);
    else if (isJsonObject(value)) {
      for (const [name, config] of serversOf(value)) inline.set(name, config);
    } else issues.push(wrongTypeIssue(at, "a path inside the plugin or an object with servers"));
  }
  return { written, paths, inline };
}

/** Servers by name, a pasted MCP file with its outer key, or one server that carries its `name`. */
function serversOf(value: JsonObject): readonly (readonly [string, unknown])[] {
  const wrapped = ownValue(value, "mcpServers");
  const name = ownValue(value, "name");
  if (typeof name === "string") return [[name, value]];
  return Object.entries(isJsonObject(wrapped) ? wrapped : value);
}

/**
 * People paste a whole hooks file, with its outer `hooks` key, where only the inside belongs; or write each hook as an
 * entry that names its event.
 */
function readInlineHooks(value: JsonObject, path: DocumentPath): ReturnType<typeof readHooks> {
  if (typeof ownValue(value, "event") === "string") return readHooks([value], path);
  const wrapped = ownValue(value, "hooks");
  return isJsonObject(wrapped) ? readHooks(wrapped, [...path, "hooks"]) : readHooks(value, path);
}

function addPath(paths: string[], written: string, path: DocumentPath, issues: Issue[]): void {
  const reading = readInnerPath(written);
  if (reading.type === "inside") {
    if (!paths.includes(reading.path)) paths.push(reading.path);
    return;
  }
  issues.push({
    severity: "warning",
    code: "path-outside-plugin",
    path,
    message: `The path ${JSON.stringify(written.slice(0, 200))} was refused because ${reading.why}.`,
    advice: "Name a file or folder of the plugin, relative to its root: `./agents/reviewer.md`.",
  });
}

type Member = readonly [value: unknown, path: DocumentPath];

function listMembers(value: unknown, path: DocumentPath): readonly Member[] {
  return Array.isArray(value)
    ? value.map((member, index): Member => [member, [...path, index]])
    : [[value, path]];
}

function members(value: unknown, path: DocumentPath): readonly Member[] {
  if (!isJsonObject(value)) return listMembers(value, path);
  return Object.entries(value).map(([key, member]): Member => [member, [...path, key]]);
}

/** A plugin's `plugin.json`. What it does not name is absent; defaults are the business of the one that loads it. */
export interface PluginManifest {
  /** As written, even where it cannot serve as an id. */
  readonly name?: string;
  readonly version?: string;
  readonly displayName?: string;
  readonly description?: string;
  readonly defaultEnabled?: boolean;
  /** Replaces the default folder. */
  readonly agents?: ComponentPaths;
  /** Replaces the default folder. */
  readonly commands?: ComponentPaths;
  /** Adds to the default folder. */
  readonly skills?: ComponentPaths;
  readonly hooks?: PluginHooks;
  readonly mcpServers?: PluginMcpServers;
  /** The names of the values that a person is asked for, and the description of each. */
  readonly userConfig?: ReadonlyMap<string, unknown>;
}

interface PluginManifestReading {
  /** Undefined only when the value is not an object. */
  readonly manifest: PluginManifest | undefined;
  readonly issues: readonly Issue[];
}

/** Reads the value of a `plugin.json`. Never throws: what cannot be used is left out and reported. */
export function readPluginManifest(value: unknown, path: DocumentPath = []): PluginManifestReading {
  if (!isJsonObject(value)) return { manifest: undefined, issues: [notAnObject(path)] };
  const issues: Issue[] = [];
  const read = createFieldReader(value, path, issues);
  const fields = {
    name: read.string("name"),
    version: read.string("version"),
    displayName: read.string("displayName"),
    description: read.string("description"),
    defaultEnabled: read.boolean("defaultEnabled"),
  };
  const { name, ...texts } = defined(fields);
  issues.push(...checkName(name, path));
  const userConfig = readUserConfig(value, path, issues);
  return {
    manifest: defined({ name, ...texts, ...readComponents(value, path, issues), userConfig }),
    issues,
  };
}

function readComponents(value: JsonObject, path: DocumentPath, issues: Issue[]) {
  const component = <Result>(
    key: string,
    read: (written: unknown, path: DocumentPath, issues: Issue[]) => Result,
  ): Result | undefined => {
    const written = ownValue(value, key);
    return written === undefined ? undefined : read(written, [...path, key], issues);
  };
  return defined({
    agents: component("agents", readComponentPaths),
    commands: component("commands", readComponentPaths),
    skills: component("skills", readComponentPaths),
    hooks: component("hooks", readPluginHooks),
    mcpServers: component("mcpServers", readPluginMcpServers),
  });
}

function readUserConfig(
  value: JsonObject,
  path: DocumentPath,
  issues: Issue[],
): ReadonlyMap<string, unknown> | undefined {
  const written = ownValue(value, "userConfig");
  if (written === undefined) return undefined;
  if (isJsonObject(written)) return new Map(Object.entries(written));
  issues.push(wrongTypeIssue([...path, "userConfig"], "an object"));
  return undefined;
}

function checkName(name: string | undefined, path: DocumentPath): Issue[] {
  if (name !== undefined && isSafeName(name)) return [];
  const isMissing = name === undefined || name.trim() === "";
  return [
    {
      severity: "warning",
      code: isMissing ? "plugin-name-missing" : "plugin-name-unsafe",
      path: isMissing ? path : [...path, "name"],
      message: isMissing
        ? "The plugin has no `name`; the name of its folder is used."
        : `The plugin name ${JSON.stringify(name.slice(0, 200))} cannot be part of an id; the name of its folder is used.`,
      advice: "Give it a name of lower-case letters, digits and hyphens.",
    },
  ];
}

function notAnObject(path: DocumentPath): Issue {
  return {
    severity: "error",
    code: "wrong-type",
    path,
    message: "A plugin manifest must be a JSON object; none of it was used.",
    advice: 'Write at least `{ "name": "my-plugin" }`.',
  };
}

/** A path inside a plugin or marketplace, with forward slashes and relative to its root; `.` is the root itself. */
type PathReading =
  | { readonly type: "inside"; readonly path: string }
  | { readonly type: "refused"; readonly why: string };

/** Reads a path that a manifest names. What leads out of the root is refused, however it is spelled. */
export function readInnerPath(written: string): PathReading {
  const text = written.trim().replaceAll("\\", "/");
  if (text === "") return { type: "refused", why: "it is empty" };
  if (text.includes("\0")) return { type: "refused", why: "it contains a NUL character" };
  const relative = text.startsWith(rootVariable) ? `.${text.slice(rootVariable.length)}` : text;
  if (/^(?:\/|~|[A-Za-z]:|[a-z][a-z0-9+.-]*:\/\/)/.test(relative)) {
    return { type: "refused", why: "it is not relative" };
  }
  const segments: string[] = [];
  for (const segment of relative.split("/")) {
    if (segment === "" || segment === ".") continue;
    if (segment !== "..") segments.push(segment);
    else if (segments.pop() === undefined) return { type: "refused", why: "it leads outside" };
  }
  return { type: "inside", path: segments.length === 0 ? "." : segments.join("/") };
}

/** Whether a name can be as one folder name and in an id without meaning something else. */
export function isSafeName(name: string): boolean {
  return /^[^\s/\\:\0-\x1f.-][^/\\:\0-\x1f]*$/.test(name) && name.length <= 256;
}

// biome-ignore lint/suspicious/noTemplateCurlyInString: manifests spell the variable like this
const rootVariable = "${CLAUDE_PLUGIN_ROOT}";

export type JsonObject = Readonly<Record<string, unknown>>;

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The value of a key the document itself has; null counts as absent. */
export function ownValue(object: JsonObject, key: string): unknown {
  return Object.hasOwn(object, key) ? (object[key] ?? undefined) : undefined;
}

interface FieldReader {
  string(key: string): string | undefined;
  boolean(key: string): boolean | undefined;
}

/** Reads fields of one object; a value of another type is left out and reported. */
export function createFieldReader(object: JsonObject, path: DocumentPath, issues: Issue[]): FieldReader {
  const wrongType = (key: string, expected: string) => {
    issues.push(wrongTypeIssue([...path, key], expected));
    return undefined;
  };
  return {
    string(key) {
      const value = ownValue(object, key);
      if (value === undefined || typeof value === "string") return value;
      return typeof value === "number" ? String(value) : wrongType(key, "a string");
    },
    boolean(key) {
      const value = ownValue(object, key);
      return value === undefined || typeof value === "boolean" ? value : wrongType(key, "true or false");
    },
  };
}

export function wrongTypeIssue(path: DocumentPath, expected: string): Issue {
  return {
    severity: "warning",
    code: "wrong-type",
    path,
    message: `\`${path.join(".")}\` must be ${expected}; it was left out.`,
  };
}

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
