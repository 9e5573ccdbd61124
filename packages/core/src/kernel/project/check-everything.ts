// @io
import { existsSync, statSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import type { Diagnostic } from "@retinue/base/foundation/diagnostic.ts";
import { quote } from "@retinue/base/foundation/json-record.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { AgentDefinition } from "@retinue/config/agents/agent-definition.ts";
import { createRegistry } from "@retinue/config/agents/agent-registry.ts";
import { lintDefinition } from "@retinue/config/agents/lint-definition.ts";
import { lintRegistry } from "@retinue/config/agents/lint-registry.ts";
import { type AgentPlace, createAgentFileLoader } from "@retinue/config/discovery/find-agent-files.ts";
import { folderAbove, formatFacts, formatIds, formatOfFile } from "@retinue/config/formats/format-facts.ts";
import { loadSessionInstructions } from "@retinue/config/instructions/load-session-instructions.ts";
import { readEnvironment } from "@retinue/config/settings/read-environment.ts";
import { listWorkflowFiles } from "@retinue/config/workflows/list-workflow-files.ts";
import { planNesting, readLimitSettings } from "../../planning/plan-limits.ts";
import { mayLoadHere } from "../session-rules.ts";
import type { AgentCheck } from "./project-agents.ts";
import type { ProjectFacts } from "./project-facts.ts";

/** What is wrong with one definition. */
export function problemsOf(definition: AgentDefinition, facts: ProjectFacts): readonly Diagnostic[] {
  const { file, scope } = definition.source;
  if (scope === "builtin") return [];
  const ofFile = facts.discovered.diagnostics.filter((each) => file !== undefined && each.file === file);
  return [...(scope === "session" ? [] : ofFile), ...lintAll([definition], facts)];
}

/** All that is discovered here: definitions of every scope, settings, plugins, MCP servers, instruction files. */
export async function checkEverything(facts: ProjectFacts): Promise<AgentCheck> {
  const { discovered, environment, platform } = facts;
  const { registry, files, settings } = discovered;
  const agents = registry.all();
  const definitions = agents
    .flatMap(({ definition, shadowed }) => [definition, ...shadowed])
    .filter(({ source }) => source.scope !== "builtin");
  const settingsFiles = settings.layers.flatMap(({ source }) => source.file ?? []);
  const servers = await facts.servers();
  const instructions = await loadSessionInstructions(discovered, {
    disabled: readEnvironment(environment).options.claudeMdDisabled === true,
    mayLoad: mayLoadHere(discovered, platform),
  });
  const workflows = await checkWorkflows(facts);
  const diagnostics = [
    ...discovered.diagnostics,
    ...servers.diagnostics,
    ...instructions.diagnostics,
    ...lintAll(definitions, facts),
    ...lintRegistry(agents),
    ...workflows.diagnostics,
  ];
  return { files: filesOf([...files, ...settingsFiles, ...workflows.files], diagnostics), diagnostics };
}

/** Saved workflows; the parser is loaded only where there are some. */
export async function checkWorkflows({
  discovered: { paths, plugins },
}: Pick<ProjectFacts, "discovered">): Promise<{
  readonly files: readonly string[];
  readonly diagnostics: readonly Diagnostic[];
}> {
  const search = { paths, plugins, disableBuiltin: true };
  const files = listWorkflowFiles(search).map(({ file }) => file);
  if (files.length === 0) return { files, diagnostics: [] };
  const { discoverWorkflows } = await import("@retinue/config/workflows/discover-workflows.ts");
  return { files, diagnostics: discoverWorkflows(search).diagnostics };
}

/** Only the files and folders named. */
export async function checkPaths(facts: ProjectFacts, paths: readonly string[]): Promise<AgentCheck> {
  const { cwd, configDirectory } = facts.discovered.paths;
  const places = paths.flatMap((path) => placesOf(resolve(cwd, path), path, configDirectory));
  const loaded = await createAgentFileLoader().load(places);
  const byPlace = loaded.definitions.map(
    (definition) => [`${definition.source.file}\0${definition.name}`, definition] as const,
  );
  const fromFiles = [...new Map(byPlace).values()];
  const sameNames = lintRegistry(createRegistry({ definitions: fromFiles }).all()).filter(
    ({ code }) => code === "same-name",
  );
  const given = facts.discovered.registry
    .all()
    .flatMap(({ definition, shadowed }) => [definition, ...shadowed])
    .filter(({ source }) => source.scope === "session");
  const diagnostics = [
    ...unique(loaded.diagnostics),
    ...lintAll([...given, ...fromFiles], facts),
    ...sameNames,
  ];
  return { files: filesOf(loaded.files, []), diagnostics };
}

/** Looks first without the text, as most files have nothing to point at. */
function lintAll(
  definitions: readonly AgentDefinition[],
  { trust, aliases, textOf, discovered, environment }: ProjectFacts,
): Diagnostic[] {
  const { maxSpawnDepth: depth } = readEnvironment(environment).options;
  const nesting = planNesting({
    settings: readLimitSettings(discovered.settings.settings.plain.limits),
    ...(depth === undefined ? {} : { depth: { value: depth, from: "the environment" } }),
  });
  const facts = { trusted: trust.trusted, aliases, nests: nesting !== undefined };
  return definitions.flatMap((definition) => {
    const diagnostics = lintDefinition(definition, facts);
    const { file } = definition.source;
    const text = diagnostics.length === 0 || file === undefined ? undefined : textOf(file);
    return text === undefined ? diagnostics : lintDefinition(definition, { ...facts, text });
  });
}

function filesOf(files: readonly string[], diagnostics: readonly Diagnostic[]): string[] {
  return [...new Set([...files, ...diagnostics.flatMap(({ file }) => file ?? [])])];
}

/** A file reached by two of the paths given is checked once. */
function unique(diagnostics: readonly Diagnostic[]): Diagnostic[] {
  return [...new Map(diagnostics.map((diagnostic) => [JSON.stringify(diagnostic), diagnostic])).values()];
}

/** What a path means: a project or plugin means the agents folder inside it, files of other products are read as theirs. */
function placesOf(path: string, written: string, configDirectory: string): readonly AgentPlace[] {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats === undefined)
    throw new RetinueError("misuse", `There is no file or folder ${quote(written, 300)}.`, {
      advice: "Check the path.",
    });
  // A file, or a whole folder, where another product keeps its agents.
  const isFile = stats.isFile();
  const own = isFile ? formatOfFile(path) : undefined;
  const formats = isFile
    ? formatIds.filter((id) => id === own)
    : formatIds.filter((id) =>
        [...formatFacts[id].project, ...formatFacts[id].user].some((place) => path.endsWith(`/${place}`)),
      );
  const foreign: readonly AgentPlace[] = formats
    .filter((format) => format !== "claude")
    .map((format) => ({ scope: "project", path, format, within: folderAbove(path, format) }));
  if (foreign.length > 0) return foreign;
  if (stats.isFile() && !path.toLowerCase().endsWith(".md"))
    throw new RetinueError(
      "misuse",
      `${quote(written, 300)} is not a Markdown file, and agents are defined in Markdown files.`,
      {
        advice:
          "Name a .md file or a folder; JSON with agents is checked with --agents FILE, and files of other products are checked where those products keep them.",
      },
    );
  const inner = [join(path, ".claude", "agents"), ...(isPluginRoot(path) ? [join(path, "agents")] : [])];
  const target = stats.isDirectory() ? (inner.find((folder) => existsSync(folder)) ?? path) : path;
  const plugin = pluginRootOf(target);
  if (plugin !== undefined) return [{ scope: "plugin", path: target, plugin: basename(plugin) }];
  const isUsers =
    target === join(configDirectory, "agents") || target.startsWith(join(configDirectory, "agents/"));
  return [{ scope: isUsers ? "user" : "project", path: target }];
}

function pluginRootOf(path: string): string | undefined {
  for (let folder = path; dirname(folder) !== folder; folder = dirname(folder)) {
    if (isPluginRoot(folder)) return folder;
  }
  return undefined;
}

function isPluginRoot(folder: string): boolean {
  return existsSync(join(folder, ".claude-plugin", "plugin.json"));
}
