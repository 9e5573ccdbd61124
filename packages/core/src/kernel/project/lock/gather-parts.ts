// @io
import { createHash } from "node:crypto";
import {
  closeSync,
  type Dirent,
  existsSync,
  lstatSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  readSync,
  realpathSync,
  statSync,
} from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import type { Diagnostic } from "@retinue/base/foundation/diagnostic.ts";
import { isRecord } from "@retinue/base/foundation/json-record.ts";
import { agentSources } from "@retinue/base/foundation/option-words.ts";
import { shellWord } from "@retinue/base/foundation/shell-word.ts";
import { type DiscoveredAgents, discoverAgents } from "@retinue/config/discovery/discover-agents.ts";
import { formatFacts, formatIds } from "@retinue/config/formats/format-facts.ts";
import type { HookHandler, HookRule } from "@retinue/config/hooks/hook-rule.ts";
import { type LockEntry, lockKey } from "@retinue/config/lock/lock-file.ts";
import { loadPluginHooks, loadPluginServers } from "@retinue/config/plugins/load-plugin.ts";
import { isWithin, type Plugin, settingFor } from "@retinue/config/plugins/plugin.ts";
import { pluginId } from "@retinue/config/plugins/plugin-data-directory.ts";
import { loadMcpEntries, type McpEntry } from "@retinue/config/settings/load-mcp-entries.ts";
import type { SettingsLayer } from "@retinue/config/settings/settings-layer.ts";
import type { Skill } from "@retinue/config/skills/skill.ts";
import { splitSkill } from "@retinue/config/skills/skill-pieces.ts";
import { createPathReader } from "../../../tools/grep-record.ts";
import { runRipgrep } from "../../../tools/run-ripgrep.ts";
import type { ProjectOptions } from "../project-facts.ts";
import {
  agentEntry,
  hashOf,
  hookEntries,
  serverEntry,
  settingEntry,
  skillEntry,
  workflowEntry,
} from "./lock-entries.ts";
import { namedFiles } from "./named-files.ts";
import { lockFileOf } from "./read-lock-file.ts";

export type LockPlace = Pick<ProjectOptions, "cwd" | "home" | "env" | "platform">;

/** Every part of a project's configuration, as it is now. */
export interface LockedParts {
  readonly entries: readonly LockEntry[];
  /** Agents that count besides those of the project: one of the project hides the one of its name. */
  readonly others: ReadonlySet<string>;
  /** Plugins that the project names and that are not installed here. */
  readonly missingPlugins: readonly string[];
  readonly diagnostics: readonly Diagnostic[];
}

/**
 * What counts for work in a folder: the parts between it and the root of the project, and those of the plugins that the project
 * switches on. Files of other products are among them whether they are switched on or not, so that a lock is the same for
 * all people.
 */
export async function gatherParts({ cwd, home, env, platform }: LockPlace): Promise<LockedParts> {
  const found = await discoverAgents({
    cwd,
    home,
    environment: env,
    platform,
    settingSources: ["project"],
    agentSources,
    trusted: true,
  });
  const { paths, settings, registry } = found;
  const layers = settings.layers.filter(({ source }) => source.scope === "project");
  const { plugins, missing } = pluginsOf(found, layers);
  const files = createFileReader(paths.projectRoot, { plugins, platform: platform ?? process.platform });
  const all = registry.all().flatMap(({ definition, shadowed }) => [definition, ...shadowed]);
  const own = new Set(plugins.map(({ name }) => name));
  const agents = all.filter(
    ({ source: { scope, plugin, file } }) =>
      file !== undefined && (scope === "project" || (scope === "plugin" && own.has(plugin ?? ""))),
  );
  const others = new Set(all.filter((each) => !agents.includes(each)).map(({ name }) => name));
  const entries = [
    ...agents.flatMap((definition) => {
      const { file = "" } = definition.source;
      const { hooks = [], verify, mcpServers = [], runner } = definition;
      const commands = [
        ...(runner === undefined ? [] : [inOneLine(runner.command)]),
        ...hooks.map(({ handler }) => wordsOfHook(handler)),
        ...(verify?.checks ?? []).map(({ run }) => run),
        ...mcpServers.flatMap((server) => (server.type === "inline" ? [wordsIn(server.config)] : [])),
      ];
      return agentEntry(definition, files.source(file, commands));
    }),
    ...(await skillParts(found, plugins, files)),
    ...(await hookParts(layers, { plugins, dataDirectory: paths.plugins.data, files })),
    ...(await serverParts(layers, { found, plugins, files })),
    ...(await workflowParts(found, plugins, files)),
    ...layers.flatMap((layer) => {
      const { file } = layer.source;
      return file === undefined ? [] : (settingEntry(layer, files.source(file, commandsOf(layer))) ?? []);
    }),
  ];
  return {
    entries: [...new Map(entries.map((entry) => [lockKey(entry), entry])).values()],
    others,
    missingPlugins: missing,
    diagnostics: found.diagnostics.filter(({ severity }) => severity === "error"),
  };
}

/** The same for every folder of the project that has configuration of its own. */
export async function gatherAllParts(place: LockPlace): Promise<LockedParts> {
  const root = dirname(await lockFileOf(place.cwd));
  const { folders, isCut } = await findFolders(root);
  const found: LockedParts[] = [];
  for (const folder of [root, ...folders]) found.push(await gatherParts({ ...place, cwd: folder }));
  const entries = found.flatMap((each) => each.entries);
  const cut: Diagnostic = {
    severity: "error",
    code: "lock-search-cut",
    message: "There are too many files to search for configuration; deeper folders are not in the lock.",
    advice: "Move folders that are not part of the project out of it.",
    file: root,
  };
  return {
    entries: [...new Map(entries.map((entry) => [lockKey(entry), entry])).values()],
    others: new Set(found.flatMap(({ others }) => [...others])),
    missingPlugins: [...new Set(found.flatMap(({ missingPlugins }) => missingPlugins))],
    diagnostics: [
      ...(isCut ? [cut] : []),
      ...new Map(
        found.flatMap(({ diagnostics }) => diagnostics.map((each) => [JSON.stringify(each), each] as const)),
      ).values(),
    ],
  };
}

/** The folder whose configuration a file of a lock is, relative to the root: what is before its first name with a dot. */
export function folderOf(file: string): string {
  if (file.startsWith("plugin:")) return "";
  const names = file.split("/");
  const at = names.findIndex((name) => name.startsWith("."));
  return names.slice(0, at === -1 ? -1 : at).join("/");
}

/** Whether an entry is about a file of one of these plugins. */
export function isOfPlugins(keys: readonly string[]): (entry: Pick<LockEntry, "file">) => boolean {
  const starts = keys.map((key) => `plugin:${key.split("@")[0] ?? key}/`);
  return ({ file }) => starts.some((start) => file.startsWith(start));
}

/** Whether work in a folder is steered by what a folder of the project holds. */
export function isAbove(
  folder: string,
  { cwd, lock }: { readonly cwd: string; readonly lock: string },
): boolean {
  return isWithin(join(dirname(lock), folder), realpathSync(cwd));
}

const searchLimitMs = 10_000;
const maxFiles = 20_000;

async function findFolders(
  root: string,
): Promise<{ readonly folders: readonly string[]; readonly isCut: boolean }> {
  const places = new Set([
    ".claude/skills",
    ".claude/commands",
    ".claude/workflows",
    ".agents/skills",
    ...formatIds.flatMap((id) => (formatFacts[id].areFiles === true ? [] : formatFacts[id].project)),
  ]);
  const files = formatIds.flatMap((id) => (formatFacts[id].areFiles === true ? formatFacts[id].project : []));
  const patterns = [
    ...[...places].flatMap((place) => [`**/${place}`, `**/${place}/**`]),
    ...[...files, ".mcp.json", ".claude/settings.json"].map((file) => `**/${file}`),
  ].map((pattern) => `--glob=${pattern}`);
  // A folder of configuration may be a link. Links that lead into a whole disk or a store of builds are not followed to their end.
  const linked = await findFiles(root, ["--follow", ...patterns]);
  const { found, isCut } = linked.isCut ? await findFiles(root, patterns) : linked;
  const folders = new Set(found.map((file) => folderOf(relative(root, file).split(sep).join("/"))));
  folders.delete("");
  return { folders: [...folders].sort().map((folder) => join(root, folder)), isCut };
}

async function findFiles(root: string, patterns: readonly string[]) {
  const found: string[] = [];
  const readPaths = createPathReader();
  const ending = await runRipgrep({
    arguments: [
      ...["--files", "--null", "--hidden", "--no-ignore", "--no-messages"],
      ...patterns,
      ...["--glob=!**/node_modules", "--glob=!**/.git", "--glob=!**/.claude/worktrees", "--", root],
    ],
    directory: root,
    signal: new AbortController().signal,
    timeLimitMs: searchLimitMs,
    take(text) {
      found.push(...readPaths(text));
      return found.length >= maxFiles ? "enough" : "more";
    },
  });
  return { found, isCut: ending.type !== "finished" };
}

/** Those that the project's own settings switch on: a person's other plugins are no part of the project. */
function pluginsOf(
  { plugins }: Pick<DiscoveredAgents, "plugins">,
  layers: readonly SettingsLayer[],
): { readonly plugins: readonly Plugin[]; readonly missing: readonly string[] } {
  const wanted = layers.map(({ settings }) => settings.plain.enabledPlugins ?? {});
  const keysOf = (plugin: Plugin): readonly string[] => [pluginId(plugin), plugin.name];
  const named = plugins.filter(
    (plugin) => plugin.enabled && wanted.some((enabled) => settingFor(keysOf(plugin), enabled) === true),
  );
  const known = new Set(plugins.flatMap(keysOf));
  const missing = wanted.flatMap((enabled) =>
    Object.keys(enabled).filter((key) => settingFor([key], enabled) === true && !known.has(key)),
  );
  return { plugins: named, missing: [...new Set(missing)] };
}

interface FileReader {
  source(
    file: string,
    commands?: readonly string[],
  ): {
    readonly file: string;
    readonly text: string;
    readonly programs: Readonly<Record<string, string>>;
    readonly executable?: readonly string[] | undefined;
  };
  /** The files below a folder but for one. */
  below(folder: string, except: string): Readonly<Record<string, string>>;
}

/** A skill that brings more is counted, and not looked through. */
const maxBrought = 2000;
const piece = 1024 * 1024;

function createFileReader(
  root: string,
  { plugins, platform }: { readonly plugins: readonly Plugin[]; readonly platform: NodeJS.Platform },
): FileReader {
  const texts = new Map<string, string>();
  const textOf = (file: string): string => {
    const known = texts.get(file) ?? readText(file);
    texts.set(file, known);
    return known;
  };
  const nameOf = (file: string): string => {
    const plugin = plugins.find((each) => isWithin(each.root, file));
    const base = plugin === undefined ? root : plugin.root;
    const below = relative(base, file).split(sep).join("/");
    return plugin === undefined ? below : `plugin:${plugin.name}/${below}`;
  };
  const below = (folder: string, except: string): Readonly<Record<string, string>> => {
    const files: string[] = [];
    const waiting = [folder];
    const seen = new Set<string>();
    for (let at = waiting.pop(); at !== undefined; at = waiting.pop())
      for (const entry of entriesOf(at)) {
        const path = join(at, entry.name);
        if (isFolder(entry, path) && entry.name !== "node_modules" && entry.name !== ".git") {
          // Links may lead in circles.
          const real = realpathSync(path);
          if (!seen.has(real)) waiting.push(path);
          seen.add(real);
        } else if (path !== except && (entry.isFile() || (entry.isSymbolicLink() && isFile(path))))
          files.push(path);
        if (files.length > maxBrought) return { [nameOf(folder)]: hashOf(`more than ${maxBrought} files`) };
      }
    return Object.fromEntries(files.map((file) => [nameOf(file), hashOfFile(file)]));
  };
  return {
    source(file, commands = []) {
      const plugin = plugins.find((each) => isWithin(each.root, file));
      const roots = plugin === undefined ? [root] : [root, plugin.root];
      const folder = plugin === undefined ? join(root, folderOf(nameOf(file))) : plugin.root;
      const bases = [...new Set([root, folder])];
      const programs = new Set(commands.flatMap((command) => namedFiles(command, { bases, roots })));
      const executable = [...programs].filter(isExecutable).map(nameOf).sort();
      return {
        file: nameOf(file),
        text: textOf(file),
        programs: Object.fromEntries(
          [...programs].sort().map((path) => [nameOf(path), hashOfProgram(path, roots)]),
        ),
        ...(platform === "win32" ? {} : { executable }),
      };
    },
    below,
  };
}

function entriesOf(folder: string) {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return [];
  }
}

function readText(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}

function isFolder(entry: Dirent, path: string): boolean {
  if (!entry.isSymbolicLink()) return entry.isDirectory();
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() === true;
}

function isExecutable(path: string): boolean {
  return ((statSync(path, { throwIfNoEntry: false })?.mode ?? 0) & 0o111) !== 0;
}

/** Of a link that leads out of the project where it leads: what is there is the machine's. */
function hashOfProgram(path: string, roots: readonly string[]): string {
  try {
    const real = realpathSync(path);
    if (roots.some((root) => isWithin(realpathSync(root), real))) return hashOfFile(path);
    return hashOf(lstatSync(path).isSymbolicLink() ? `link to ${readlinkSync(path)}` : "link");
  } catch {
    return hashOf("");
  }
}

/** However large it is, a piece at a time. */
function hashOfFile(file: string): string {
  const hash = createHash("sha256");
  try {
    const handle = openSync(file, "r");
    try {
      const buffer = Buffer.alloc(piece);
      for (let read = readSync(handle, buffer); read > 0; read = readSync(handle, buffer))
        hash.update(buffer.subarray(0, read));
    } finally {
      closeSync(handle);
    }
  } catch {
    return hashOf("");
  }
  return `sha256-${hash.digest("hex")}`;
}

function wordsOfHook({ command, args = [] }: HookHandler): string {
  return command === undefined ? "" : [command, ...args.map(shellWord)].join(" ");
}

/** What a configuration of a server starts, and where. */
function wordsIn(config: Readonly<Record<string, unknown>>): string {
  const args: readonly unknown[] = Array.isArray(config["args"]) ? config["args"] : [];
  const words = [config["cwd"], config["command"], config["headersHelper"], ...args];
  return inOneLine(words.filter((word) => typeof word === "string"));
}

function inOneLine(words: readonly string[]): string {
  return words.map(shellWord).join(" ");
}

/** Helpers and checks that settings name, however deep. */
function commandsOf({ settings }: SettingsLayer): readonly string[] {
  const textsIn = (value: unknown): readonly string[] => {
    if (typeof value === "string") return [value];
    if (Array.isArray(value)) return value.flatMap(textsIn);
    return isRecord(value) ? Object.values(value).flatMap(textsIn) : [];
  };
  const { mcpServers: _parts, ...plain } = settings.plain;
  return textsIn(plain);
}

async function skillParts(
  { paths }: DiscoveredAgents,
  plugins: readonly Plugin[],
  files: FileReader,
): Promise<readonly LockEntry[]> {
  const { discoverSkills } = await import("@retinue/config/skills/skill-catalog.ts");
  const catalog = await discoverSkills({ paths, plugins, settingSources: ["project"] });
  const own = [...catalog.list(), ...catalog.shadowed].filter(
    ({ source: { scope } }) => scope === "project" || scope === "plugin",
  );
  return own.map((skill) => {
    const { file, kind, directory, plugin } = skill.source;
    const commands = [
      ...(skill.hooks ?? []).map(({ handler }) => wordsOfHook(handler)),
      ...splitSkill(skill.body).flatMap((piece) => (piece.type === "command" ? [piece.command] : [])),
    ];
    const from = files.source(file, commands);
    // The root of a plugin is no folder of one skill.
    const brings = kind === "skill" && directory !== plugin?.root ? files.below(directory, file) : {};
    return skillEntry(skill satisfies Skill, { ...from, programs: { ...brings, ...from.programs } });
  });
}

async function hookParts(
  layers: readonly SettingsLayer[],
  {
    plugins,
    dataDirectory,
    files,
  }: { readonly plugins: readonly Plugin[]; readonly dataDirectory: string; readonly files: FileReader },
): Promise<readonly LockEntry[]> {
  const ofPlugins = await loadPluginHooks(plugins, dataDirectory);
  const sourced = [
    ...layers.flatMap(({ source, settings }) => settings.hooks.map((hook) => ({ file: source.file, hook }))),
    ...ofPlugins.hooks.map(({ hook, origin }) => ({
      file:
        origin.type === "plugin"
          ? (origin.file ?? join(origin.root, ".claude-plugin", "plugin.json"))
          : undefined,
      hook,
    })),
  ];
  return [...Map.groupBy(sourced, ({ file }) => file)].flatMap(([file, members]) => {
    if (file === undefined) return [];
    const hooks: readonly HookRule[] = members.map(({ hook }) => hook);
    return [...Map.groupBy(hooks, ({ event }) => event)].flatMap(([, rules]) =>
      hookEntries(
        rules,
        files.source(
          file,
          rules.map(({ handler }) => wordsOfHook(handler)),
        ),
      ),
    );
  });
}

async function serverParts(
  layers: readonly SettingsLayer[],
  {
    found: { paths },
    plugins,
    files,
  }: { readonly found: DiscoveredAgents; readonly plugins: readonly Plugin[]; readonly files: FileReader },
): Promise<readonly LockEntry[]> {
  const [own, ofPlugins] = await Promise.all([
    loadMcpEntries({ paths, layers, sources: ["project"] }),
    loadPluginServers(plugins, { dataDirectory: paths.plugins.data }),
  ]);
  const servers: readonly McpEntry[] = [
    ...own.entries.filter(({ fromRepository }) => fromRepository),
    ...ofPlugins.entries,
  ];
  return servers.flatMap((server) => {
    const { transport } = server.config;
    const words = transport === undefined || transport.type === "sdk" ? "" : wordsIn({ ...transport });
    return server.file === undefined ? [] : [serverEntry(server, files.source(server.file, [words]))];
  });
}

async function workflowParts(
  { paths }: DiscoveredAgents,
  plugins: readonly Plugin[],
  files: FileReader,
): Promise<readonly LockEntry[]> {
  const places = [...paths.workflows.project, ...plugins.map(({ root }) => join(root, "workflows"))];
  if (!places.some((folder) => existsSync(folder))) return [];
  const { discoverWorkflows } = await import("@retinue/config/workflows/discover-workflows.ts");
  const { workflows } = discoverWorkflows({
    paths,
    plugins,
    settingSources: ["project"],
    disableBuiltin: true,
  });
  return [...workflows.values()].flatMap((workflow) => {
    const { file, scope } = workflow;
    return file === undefined || (scope !== "project" && scope !== "plugin")
      ? []
      : [workflowEntry(workflow, files.source(file))];
  });
}
