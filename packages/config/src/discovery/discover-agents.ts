// @io

import { dirname, join, resolve } from "node:path";
import { checkArgument, checks } from "@retinue/base/foundation/check-arguments.ts";
import type { Diagnostic } from "@retinue/base/foundation/diagnostic.ts";
import { cachedUntilChanged, type FileSnapshot } from "@retinue/base/foundation/file-snapshot.ts";
import { matchesPattern } from "@retinue/base/foundation/match-pattern.ts";
import { formatRule, type PermissionRule, parseRule } from "@retinue/gate/rules/parse-rule.ts";
import type { AgentDefinition } from "../agents/agent-definition.ts";
import { type AgentDenial, type AgentRegistry, createRegistry } from "../agents/agent-registry.ts";
import { builtinAgents, type GuideFacts } from "../agents/builtin/builtin-agents.ts";
import {
  agentSourceNames,
  agentSourceOf,
  defaultAgentSources,
  type FormatId,
  formatFacts,
  formatIds,
} from "../formats/format-facts.ts";
import { discoverPluginAgents, discoverPlugins } from "../plugins/discover-plugins.ts";
import { type Plugin, pluginAgentId } from "../plugins/plugin.ts";
import {
  findForeignWriters,
  type LoadedSettings,
  loadSettings,
  unsafeManagedDiagnostic,
} from "../settings/load-settings.ts";
import { createPaths, type Paths } from "../settings/paths.ts";
import { findRepositoryRoot, findUntrustedFolders, realFolder } from "../settings/trust-store.ts";
import {
  type AgentFileLoader,
  type AgentPlace,
  createAgentFileLoader,
  type LoadedAgents,
} from "./find-agent-files.ts";

export interface DiscoverOptions {
  readonly cwd: string;
  readonly home: string;
  readonly environment?: Readonly<Record<string, string | undefined>> | undefined;
  readonly platform?: NodeJS.Platform | undefined;
  /** Definitions of this session, from `--agents` or from a program. */
  readonly agents?: readonly AgentDefinition[] | undefined;
  readonly pluginDirectories?: readonly string[] | undefined;
  readonly additionalDirectories?: readonly string[] | undefined;
  /** Which of a person's files count; the organisation's always do. All, when absent. */
  readonly settingSources?: readonly ("user" | "project" | "local")[] | undefined;
  /** JSON, or the path of a file, that counts like a settings file of this session. */
  readonly settings?: string | undefined;
  /** Rules such as `Task(Explore)` that hide agents from this session. */
  readonly disallowedTools?: readonly string[] | undefined;
  /** Whose agent files are read besides those of plugins: `claude`, `agents`, `opencode` …; else as in settings. */
  readonly agentSources?: readonly string[] | undefined;
  readonly trusted?: boolean | undefined;
  /** Where the organisation's files are, when not in the system's place. */
  readonly managedDirectory?: string | undefined;
  /** What else the guide among the built-in agents should know of the user; asked when that agent is started. */
  readonly guide?:
    | ((
        found: Pick<DiscoveredAgents, "paths" | "settings" | "plugins">,
      ) => Promise<Partial<Pick<GuideFacts, "skills" | "mcpServers">>>)
    | undefined;
}

export interface DiscoveredAgents {
  readonly registry: AgentRegistry;
  readonly diagnostics: readonly Diagnostic[];
  readonly files: readonly string[];
  readonly settings: LoadedSettings;
  readonly plugins: readonly Plugin[];
  readonly places: readonly AgentPlace[];
  readonly paths: Paths;
}

/** Agents that are looked up again at each use, so that a changed file or a new registration counts immediately. */
export interface AgentCatalog {
  read(): Promise<DiscoveredAgents>;
  /** Adds a session definition, or replaces the one of the same name. */
  register(definition: AgentDefinition): void;
  unregister(name: string): void;
}

const discoverShape = checks.shape(
  {
    cwd: checks.filled,
    home: checks.filled,
    environment: checks.variables,
    agents: checks.listOf(checks.thing, "agents"),
    pluginDirectories: checks.texts,
    additionalDirectories: checks.texts,
    settingSources: checks.texts,
    settings: checks.text,
    disallowedTools: checks.texts,
    agentSources: checks.texts,
  },
  ["cwd", "home"],
);

/** Reads every place that can define agents, once. */
export async function discoverAgents(options: DiscoverOptions): Promise<DiscoveredAgents> {
  checkArgument("The options of discoverAgents()", discoverShape, options);
  return createAgentCatalog(options).read();
}

/** What was found is kept until a file, a folder or a registration is different; `now` is the clock of the file system. */
export function createAgentCatalog(options: DiscoverOptions, now: () => number = Date.now): AgentCatalog {
  checkArgument("The options of createAgentCatalog()", discoverShape, options);
  const loader = createAgentFileLoader();
  const session = new Map((options.agents ?? []).map((definition) => [definition.name, definition]));
  // Children that are spawned together need not each read the same files.
  const { read, forget } = cachedUntilChanged(
    (snapshot) => findAgents(options, { agents: [...session.values()], snapshot, loader }),
    now,
  );
  return {
    read,
    register(definition) {
      if (session.get(definition.name) === definition) return;
      session.set(definition.name, definition);
      forget();
    },
    unregister(name) {
      if (session.delete(name)) forget();
    },
  };
}

interface Search {
  /** Those of the session. */
  readonly agents: readonly AgentDefinition[];
  /** Gets everything that the result depends on. */
  readonly snapshot: FileSnapshot;
  readonly loader: AgentFileLoader;
}

async function findAgents(
  options: DiscoverOptions,
  { agents, snapshot, loader }: Search,
): Promise<DiscoveredAgents> {
  const { home, environment = {}, platform = process.platform, managedDirectory } = options;
  snapshot.add([options.cwd], "place");
  const cwd = await realFolder(options.cwd);
  snapshot.add(
    foldersUp(cwd).map((folder) => join(folder, ".git")),
    "kind",
  );
  const repositoryRoot = await findRepositoryRoot(cwd);
  const paths = createPaths({ home, cwd, environment, platform, repositoryRoot, managedDirectory });
  const settings = await loadSettings({
    paths,
    footprint: snapshot,
    trusted: options.trusted ?? false,
    sources: options.settingSources,
    flagSettings: options.settings,
  });
  const { plugins, diagnostics: pluginDiagnostics } = await discoverPlugins({
    configDirectory: paths.configDirectory,
    projectDirectory: paths.projectRoot,
    pluginDirectories: options.pluginDirectories?.map((path) => resolve(options.cwd, path)),
    enabledPlugins: settings.settings.plain.enabledPlugins ?? {},
    snapshot,
  });
  const pluginPlaces = await Promise.all(
    plugins.filter(({ enabled }) => enabled).map((plugin) => placesOfPlugin(plugin, snapshot)),
  );
  const sources = readSources(options.agentSources ?? settings.settings.plain.agentSources);
  const own = ownPlaces(options, paths, sources.names);
  const places = [
    ...(await withTrust(own, paths, snapshot)),
    ...pluginPlaces.flatMap((found) => found.places),
  ];
  const loaded = await withoutForeign(await loader.load(places, snapshot), snapshot);
  const definitions = [...agents, ...loaded.definitions];
  const flags = readFlagRules(options);
  const registry = createRegistry({
    definitions: [...definitions, ...builtins(definitions, options, { paths, settings, plugins })],
    denials: denialsOf([...settings.settings.permissions.deny.map(({ rule }) => rule), ...flags.rules]),
    diagnostics: loaded.diagnostics,
  });
  const diagnostics = [
    ...flags.diagnostics,
    ...sources.diagnostics,
    ...settings.diagnostics,
    ...pluginDiagnostics,
    ...pluginPlaces.flatMap((found) => found.diagnostics),
    ...loaded.diagnostics,
  ];
  return { registry, diagnostics, files: loaded.files, settings, plugins, places, paths };
}

/** Agents of the organisation whose files others can write carry no authority. */
async function withoutForeign(loaded: LoadedAgents, snapshot: FileSnapshot): Promise<LoadedAgents> {
  const diagnostics: Diagnostic[] = [];
  const definitions: AgentDefinition[] = [];
  for (const definition of loaded.definitions) {
    const { scope, file } = definition.source;
    const why =
      scope === "managed" && file !== undefined ? await findForeignWriters(file, { snapshot }) : undefined;
    if (why === undefined || file === undefined) definitions.push(definition);
    else diagnostics.push(unsafeManagedDiagnostic(file, why, "is not used"));
  }
  return { ...loaded, definitions, diagnostics: [...loaded.diagnostics, ...diagnostics] };
}

function foldersUp(folder: string): readonly string[] {
  const parent = dirname(folder);
  return parent === folder ? [folder] : [folder, ...foldersUp(parent)];
}

/** The sources that are switched on. A word that names none is reported, and what it was to switch on stays off. */
function readSources(words: readonly string[] = defaultAgentSources): {
  readonly names: ReadonlySet<string>;
  readonly diagnostics: readonly Diagnostic[];
} {
  const unknown = words.filter((word) => agentSourceOf(word) === undefined);
  return {
    names: new Set(words.flatMap((word) => agentSourceOf(word) ?? [])),
    diagnostics: unknown.map((word) => ({
      severity: "warning",
      code: "unknown-agent-source",
      message: `Unknown source of agents ${JSON.stringify(word)}; it was left out.`,
      advice: `Write some of ${agentSourceNames.join(", ")}.`,
    })),
  };
}

/** Places of other products' files, in the order of the formats; below our own of the same scope. */
function foreignPlaces(
  scope: "project" | "user",
  folder: string,
  sources: ReadonlySet<string>,
): readonly AgentPlace[] {
  const wanted = formatIds.filter((id) => id !== "claude" && sources.has(formatFacts[id].source));
  return wanted.flatMap((format: FormatId) =>
    formatFacts[format][scope].map((below) => ({ scope, path: join(folder, below), format, within: folder })),
  );
}

/** Managed, project (nearer first), added directories, user: the order of precedence within each scope. */
function ownPlaces(options: DiscoverOptions, paths: Paths, sources: ReadonlySet<string>): AgentPlace[] {
  const wants = (source: "user" | "project"): boolean => options.settingSources?.includes(source) ?? true;
  const ours = sources.has("claude");
  const added = (options.additionalDirectories ?? []).map((folder) =>
    join(resolve(options.cwd, folder), ".claude", "agents"),
  );
  const project = wants("project") && ours ? [...paths.agents.project, ...added] : [];
  const folders = [
    ...paths.agents.project.map((path) => dirname(dirname(path))),
    ...(options.additionalDirectories ?? []).map((folder) => resolve(options.cwd, folder)),
  ];
  return [
    { scope: "managed", path: paths.agents.managed },
    ...project.map((path): AgentPlace => ({ scope: "project", path })),
    ...(wants("project") ? folders.flatMap((folder) => foreignPlaces("project", folder, sources)) : []),
    ...(wants("user") && ours ? [{ scope: "user", path: paths.agents.user } as const] : []),
    ...(wants("user") ? foreignPlaces("user", paths.home, sources) : []),
  ];
}

/** A folder that was added is judged by its own trust, not by that of the working folder. */
async function withTrust(
  places: readonly AgentPlace[],
  paths: Paths,
  snapshot: FileSnapshot,
): Promise<readonly AgentPlace[]> {
  const folderOf = ({ path, within }: AgentPlace): string => within ?? dirname(dirname(path));
  const known = new Set(paths.agents.project.map((path) => dirname(dirname(path))));
  const added = places.filter((place) => place.scope === "project" && !known.has(folderOf(place)));
  if (added.length === 0) return places;
  const findUntrusted = async () =>
    JSON.stringify([...(await findUntrustedFolders(added.map(folderOf), paths))]);
  const untrusted = new Set<string>(JSON.parse(await snapshot.ask(findUntrusted)));
  return places.map((place) =>
    added.includes(place) && untrusted.has(folderOf(place)) ? { ...place, untrusted: true } : place,
  );
}

async function placesOfPlugin(
  plugin: Plugin,
  snapshot: FileSnapshot,
): Promise<{ places: AgentPlace[]; diagnostics: readonly Diagnostic[] }> {
  const { files, diagnostics } = await discoverPluginAgents(plugin, snapshot);
  const places = files.map(
    ({ file, relativeFile }): AgentPlace => ({
      scope: "plugin",
      path: file,
      plugin: plugin.name,
      idOf: (_file, name) => pluginAgentId(plugin, relativeFile, name),
    }),
  );
  return { places, diagnostics };
}

function builtins(
  definitions: readonly AgentDefinition[],
  { environment = {}, guide }: DiscoverOptions,
  found: Pick<DiscoveredAgents, "paths" | "settings" | "plugins">,
): AgentDefinition[] {
  const entrypoint = environment["CLAUDE_CODE_ENTRYPOINT"];
  const isOn = (name: string): boolean => environment[name] === "1" || environment[name] === "true";
  return builtinAgents({
    entrypoint,
    disableBuiltins: isOn("CLAUDE_AGENT_SDK_DISABLE_BUILTIN_AGENTS"),
    disableExplorePlan: isOn("CLAUDE_CODE_DISABLE_EXPLORE_PLAN_AGENTS"),
    guide: {
      agents: definitions,
      skills: [],
      mcpServers: [],
      findMore: guide === undefined ? undefined : () => guide(found),
    },
  });
}

/** A deny rule that cannot be understood must not vanish: it is an error of the call. */
function readFlagRules(options: DiscoverOptions): { rules: PermissionRule[]; diagnostics: Diagnostic[] } {
  const rules: PermissionRule[] = [];
  const diagnostics: Diagnostic[] = [];
  for (const text of options.disallowedTools ?? []) {
    const reading = parseRule(text, { list: "deny" });
    if (reading.type === "rule") rules.push(reading.rule);
    else {
      const message = `--disallowedTools contains a rule that is not valid: ${reading.reason}.`;
      diagnostics.push({
        severity: "error",
        code: "invalid-permission-rule",
        message,
        advice: reading.advice,
      });
    }
  }
  return { rules, diagnostics };
}

/** The agents that deny rules name: `Task(name)`, `Agent(subagent_type:name)`, the whole tool, or all tools. */
export function denialsOf(rules: readonly PermissionRule[]): AgentDenial[] {
  return rules.flatMap((rule) => patternsOf(rule).map((pattern) => ({ pattern, rule: formatRule(rule) })));
}

/** Denying the tool denies every agent; a rule on a field such as `model:opus` is decided per call, not here. */
function patternsOf({ tool, canonicalTool, specifier }: PermissionRule): readonly string[] {
  if (specifier.type === "toolGlob")
    return ["agent", "task"].some((name) => matchesPattern(tool.toLowerCase(), name)) ? ["*"] : [];
  if (canonicalTool !== "Agent") return [];
  if (specifier.type === "agent") return specifier.names;
  if (specifier.type === "parameter" && specifier.name === "subagent_type") return [specifier.value];
  return specifier.type === "whole" || specifier.type === "text" ? ["*"] : [];
}
