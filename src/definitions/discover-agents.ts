// @io
import { dirname, join, resolve } from "node:path";
import type { Diagnostic } from "../foundation/diagnostic.ts";
import { createFootprint, type Footprint } from "../foundation/footprint.ts";
import { matchesPattern } from "../foundation/match-pattern.ts";
import { shareReads } from "../foundation/share-reads.ts";
import { formatRule, type PermissionRule, parseRule } from "../permissions/rules/parse-rule.ts";
import { discoverPluginAgents } from "../plugins/discover-plugin-agents.ts";
import { discoverPlugins } from "../plugins/discover-plugins.ts";
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
  type AgentDefinition,
  type AgentDenial,
  type AgentRegistry,
  createRegistry,
} from "./agent-definition.ts";
import { builtinAgents, type GuideFacts } from "./builtin/builtin-agents.ts";
import {
  type AgentFileLoader,
  type AgentPlace,
  createAgentFileLoader,
  type LoadedAgents,
} from "./find-agent-files.ts";

export interface DiscoverOptions {
  readonly cwd: string;
  readonly home: string;
  readonly environment?: Readonly<Record<string, string | undefined>>;
  readonly platform?: NodeJS.Platform;
  /** Definitions of this session, from `--agents` or from a program. */
  readonly agents?: readonly AgentDefinition[];
  readonly pluginDirectories?: readonly string[];
  readonly additionalDirectories?: readonly string[];
  /** Which of a person's files count; the organisation's always do. All, when absent. */
  readonly settingSources?: readonly ("user" | "project" | "local")[];
  /** JSON, or the path of a file, that counts like a settings file of this session. */
  readonly settings?: string;
  /** Rules such as `Task(Explore)` that hide agents from this session. */
  readonly disallowedTools?: readonly string[];
  readonly trusted?: boolean;
  /** Where the organisation's files are, when not in the system's place. */
  readonly managedDirectory?: string;
  /** What else the guide among the built-in agents should know of the user; asked when that agent is started. */
  readonly guide?: (
    found: Pick<DiscoveredAgents, "paths" | "settings" | "plugins">,
  ) => Promise<Partial<Pick<GuideFacts, "skills" | "mcpServers">>>;
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

/** Reads every place that can define agents, once. */
export function discoverAgents(options: DiscoverOptions): Promise<DiscoveredAgents> {
  return createAgentCatalog(options).read();
}

/** What was found is kept until a file, a folder or a registration is different; `now` is the clock of the file system. */
export function createAgentCatalog(options: DiscoverOptions, now: () => number = Date.now): AgentCatalog {
  const loader = createAgentFileLoader();
  const session = new Map((options.agents ?? []).map((definition) => [definition.name, definition]));
  let last: KeptReading | undefined;

  async function read(): Promise<DiscoveredAgents> {
    const roots = await findRoots(options);
    const agents = [...session.values()];
    if (last === undefined || !(await isCurrent(last, roots, agents)))
      last = await findAgents(options, { roots, agents, footprint: createFootprint(now) }, loader);
    return last.discovered;
  }

  return {
    // Children that are spawned together need not each read the same files.
    read: shareReads(read),
    register: (definition) => void session.set(definition.name, definition),
    unregister: (name) => void session.delete(name),
  };
}

/** A reading, with everything it depends on: it holds until one of that is different. */
interface KeptReading {
  readonly discovered: DiscoveredAgents;
  readonly roots: Roots;
  /** Those of the session. */
  readonly agents: readonly AgentDefinition[];
  readonly footprint: Footprint;
  /** Added folders that are not trusted. */
  readonly untrusted: ReadonlySet<string>;
  readonly findUntrusted: () => Promise<ReadonlySet<string>>;
}

async function isCurrent(
  { roots, agents, footprint, untrusted, findUntrusted }: KeptReading,
  now: Roots,
  registered: readonly AgentDefinition[],
): Promise<boolean> {
  if (roots.cwd !== now.cwd || roots.repositoryRoot !== now.repositoryRoot) return false;
  if (agents.length !== registered.length || agents.some((agent, at) => registered[at] !== agent))
    return false;
  return (await footprint.isUnchanged()) && hasSame(untrusted, await findUntrusted());
}

function hasSame(one: ReadonlySet<string>, other: ReadonlySet<string>): boolean {
  return one.size === other.size && [...one].every((item) => other.has(item));
}

/** Looks into every place; everything that the result depends on is in the reading. */
async function findAgents(
  options: DiscoverOptions,
  { roots, agents, footprint }: Pick<KeptReading, "roots" | "agents" | "footprint">,
  loader: AgentFileLoader,
): Promise<KeptReading> {
  const paths = pathsOf(options, roots);
  const settings = await readSettings(options, paths, footprint);
  const { plugins, diagnostics: pluginDiagnostics } = await discoverPlugins({
    configDirectory: paths.configDirectory,
    projectDirectory: paths.projectRoot,
    ...(options.pluginDirectories === undefined
      ? {}
      : { pluginDirectories: options.pluginDirectories.map((path) => resolve(options.cwd, path)) }),
    enabledPlugins: settings.settings.plain.enabledPlugins ?? {},
    footprint,
  });
  const pluginPlaces = await Promise.all(
    plugins.filter(({ enabled }) => enabled).map((plugin) => placesOfPlugin(plugin, footprint)),
  );
  const own = ownPlaces(options, paths);
  const findUntrusted = () => findUntrustedFolders(addedFolders(own, paths), paths);
  const untrusted = await findUntrusted();
  const places = [...withTrust(own, untrusted), ...pluginPlaces.flatMap((found) => found.places)];
  const loaded = await withoutForeign(await loader.load(places, footprint), footprint);
  const definitions = [...agents, ...loaded.definitions];
  const flags = readFlagRules(options);
  const registry = createRegistry({
    definitions: [...definitions, ...builtins(definitions, options, { paths, settings, plugins })],
    denials: denialsOf([...settings.settings.permissions.deny.map(({ rule }) => rule), ...flags.rules]),
  });
  const diagnostics = [
    ...flags.diagnostics,
    ...settings.diagnostics,
    ...pluginDiagnostics,
    ...pluginPlaces.flatMap((found) => found.diagnostics),
    ...loaded.diagnostics,
  ];
  const discovered = { registry, diagnostics, files: loaded.files, settings, plugins, places, paths };
  return { discovered, roots, agents, footprint, untrusted, findUntrusted };
}

/** Agents of the organisation whose files others can write are no one's word. */
async function withoutForeign(loaded: LoadedAgents, footprint: Footprint): Promise<LoadedAgents> {
  const diagnostics: Diagnostic[] = [];
  const definitions: AgentDefinition[] = [];
  for (const definition of loaded.definitions) {
    const { scope, file } = definition.source;
    const why =
      scope === "managed" && file !== undefined ? await findForeignWriters(file, { footprint }) : undefined;
    if (why === undefined || file === undefined) definitions.push(definition);
    else diagnostics.push(unsafeManagedDiagnostic(file, why, "is not used"));
  }
  return { ...loaded, definitions, diagnostics: [...loaded.diagnostics, ...diagnostics] };
}

interface Roots {
  readonly cwd: string;
  readonly repositoryRoot: string | undefined;
}

async function findRoots({ cwd: given }: DiscoverOptions): Promise<Roots> {
  const [cwd, repositoryRoot] = await Promise.all([realFolder(given), findRepositoryRoot(given)]);
  return { cwd, repositoryRoot };
}

function pathsOf(options: DiscoverOptions, { cwd, repositoryRoot }: Roots): Paths {
  const { home, environment = {}, platform = process.platform, managedDirectory } = options;
  return createPaths({
    home,
    cwd,
    environment,
    platform,
    ...(repositoryRoot === undefined ? {} : { repositoryRoot }),
    ...(managedDirectory === undefined ? {} : { managedDirectory }),
  });
}

function readSettings(options: DiscoverOptions, paths: Paths, footprint: Footprint): Promise<LoadedSettings> {
  return loadSettings({
    paths,
    footprint,
    trusted: options.trusted ?? false,
    ...(options.settingSources === undefined ? {} : { sources: options.settingSources }),
    ...(options.settings === undefined ? {} : { flagSettings: options.settings }),
  });
}

/** Managed, project (nearer first), added directories, user: the order of precedence within each scope. */
function ownPlaces(options: DiscoverOptions, paths: Paths): AgentPlace[] {
  const wants = (source: "user" | "project"): boolean => options.settingSources?.includes(source) ?? true;
  const added = (options.additionalDirectories ?? []).map((folder) =>
    join(resolve(options.cwd, folder), ".claude", "agents"),
  );
  const project = wants("project") ? [...paths.agents.project, ...added] : [];
  return [
    { scope: "managed", path: paths.agents.managed },
    ...project.map((path): AgentPlace => ({ scope: "project", path })),
    ...(wants("user") ? [{ scope: "user", path: paths.agents.user } as const] : []),
  ];
}

function folderOf({ path }: AgentPlace): string {
  return dirname(dirname(path));
}

/** A folder that was added is judged by its own trust, not by that of the working folder. */
function addedFolders(places: readonly AgentPlace[], { agents }: Paths): readonly string[] {
  const added = places.filter(({ scope, path }) => scope === "project" && !agents.project.includes(path));
  return added.map(folderOf);
}

function withTrust(places: readonly AgentPlace[], untrusted: ReadonlySet<string>): readonly AgentPlace[] {
  return places.map((place) =>
    place.scope === "project" && untrusted.has(folderOf(place)) ? { ...place, untrusted: true } : place,
  );
}

async function placesOfPlugin(
  plugin: Plugin,
  footprint: Footprint,
): Promise<{ places: AgentPlace[]; diagnostics: readonly Diagnostic[] }> {
  const { files, diagnostics } = await discoverPluginAgents(plugin, footprint);
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
    ...(entrypoint === undefined ? {} : { entrypoint }),
    disableBuiltins: isOn("CLAUDE_AGENT_SDK_DISABLE_BUILTIN_AGENTS"),
    disableExplorePlan: isOn("CLAUDE_CODE_DISABLE_EXPLORE_PLAN_AGENTS"),
    guide: {
      agents: definitions,
      skills: [],
      mcpServers: [],
      ...(guide === undefined ? {} : { findMore: () => guide(found) }),
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
      const message = `--disallowedTools holds a rule that cannot be understood: ${reading.reason}.`;
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

/** The agents that deny rules speak of: `Task(name)`, `Agent(subagent_type:name)`, the whole tool, or all tools. */
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
