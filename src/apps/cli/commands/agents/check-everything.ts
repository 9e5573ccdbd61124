import { existsSync, statSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { loadSessionInstructions } from "../../../../context/load-session-instructions.ts";
import { type AgentDefinition, createRegistry } from "../../../../definitions/agent-definition.ts";
import { type AgentPlace, createAgentFileLoader } from "../../../../definitions/discover-agents.ts";
import { lintDefinition } from "../../../../definitions/lint-definition.ts";
import { lintRegistry } from "../../../../definitions/lint-registry.ts";
import type { Diagnostic } from "../../../../foundation/diagnostic.ts";
import { shown } from "../../../../foundation/json-record.ts";
import { mayLoadHere } from "../../../../runtime/may-load-in.ts";
import { gatherMcpOf } from "../../gather-mcp.ts";
import { type GatheredSession, gatherSession } from "../../gather-session.ts";
import { type CommandContext, misuse } from "../../session-options.ts";

export interface Checked extends Pick<GatheredSession, "nameOf" | "textOf"> {
  readonly files: readonly string[];
  readonly diagnostics: readonly Diagnostic[];
}

/** All that is discovered here: definitions of every scope, settings, plugins, MCP servers, instruction files and `--agents`. */
export async function checkEverything(context: CommandContext): Promise<Checked> {
  const session = await gatherSession(context, { toleratesBrokenFiles: true });
  const { registry, files, settings } = session.discovered;
  const agents = registry.all();
  const definitions = agents
    .flatMap(({ definition, shadowed }) => [definition, ...shadowed])
    .filter(({ source }) => source.scope !== "builtin");
  const settingsFiles = settings.layers.flatMap(({ source }) => source.file ?? []);
  const servers = await gatherMcpOf(session, context);
  const variables = { ...context.host.environment, ...Object.fromEntries(settings.settings.env) };
  const instructions = await loadSessionInstructions(
    session.discovered,
    variables,
    mayLoadHere(session.discovered, context.host.platform),
  );
  const found = [
    ...session.diagnostics,
    ...servers.gathered.diagnostics,
    ...instructions.diagnostics,
    ...lintAll(definitions, session),
    ...lintRegistry(agents),
  ];
  return {
    files: filesOf([...files, ...settingsFiles, ...(session.option ? [session.option.file] : [])], found),
    diagnostics: found,
    nameOf: session.nameOf,
    textOf: session.textOf,
  };
}

/** Only the files and folders named, and `--agents` when it is given. */
export async function checkPaths(context: CommandContext, paths: readonly string[]): Promise<Checked> {
  const session = await gatherSession(context, { toleratesBrokenFiles: true });
  const { configDirectory } = session.discovered.paths;
  const places = paths.map((path) => placeOf(resolve(context.host.cwd, path), path, configDirectory));
  const loaded = await createAgentFileLoader().load(places);
  const fromFiles = uniqueByFile(loaded.definitions);
  const { option } = session;
  const sameNames = lintRegistry(createRegistry({ definitions: fromFiles }).all()).filter(
    ({ code }) => code === "same-name",
  );
  const diagnostics = [
    ...(option?.diagnostics ?? []),
    ...unique(loaded.diagnostics),
    ...lintAll([...(option?.definitions ?? []), ...fromFiles], session),
    ...sameNames,
  ];
  return {
    files: filesOf([...loaded.files, ...(option ? [option.file] : [])], []),
    diagnostics,
    nameOf: session.nameOf,
    textOf: session.textOf,
  };
}

/** Looks first without the text, as most files have nothing to point at. */
export function lintAll(definitions: readonly AgentDefinition[], session: GatheredSession): Diagnostic[] {
  const facts = { trusted: session.trust.trusted, aliases: session.aliases };
  return definitions.flatMap((definition) => {
    const diagnostics = lintDefinition(definition, facts);
    const { file } = definition.source;
    const text = diagnostics.length === 0 || file === undefined ? undefined : session.textOf(file);
    return text === undefined ? diagnostics : lintDefinition(definition, { ...facts, text });
  });
}

function filesOf(files: readonly string[], diagnostics: readonly Diagnostic[]): string[] {
  return [...new Set([...files, ...diagnostics.flatMap(({ file }) => file ?? [])])];
}

function uniqueByFile(definitions: readonly AgentDefinition[]): AgentDefinition[] {
  return [...new Map(definitions.map((definition) => [definition.source.file, definition])).values()];
}

/** A file reached by two of the paths given is checked once. */
function unique(diagnostics: readonly Diagnostic[]): Diagnostic[] {
  return [...new Map(diagnostics.map((diagnostic) => [JSON.stringify(diagnostic), diagnostic])).values()];
}

/** What a path means: a project or plugin means the agents folder inside it. */
function placeOf(path: string, written: string, configDirectory: string): AgentPlace {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats === undefined)
    throw misuse(`There is no file or folder ${shown(written, 300)}.`, "Check the path.");
  if (stats.isFile() && !path.toLowerCase().endsWith(".md")) {
    throw misuse(
      `${shown(written, 300)} is not a Markdown file, and agents are defined in Markdown files.`,
      "Name a .md file or a folder; JSON with agents is checked with --agents FILE.",
    );
  }
  const inner = [join(path, ".claude", "agents"), ...(isPluginRoot(path) ? [join(path, "agents")] : [])];
  const target = stats.isDirectory() ? (inner.find((folder) => existsSync(folder)) ?? path) : path;
  const plugin = pluginRootOf(target);
  if (plugin !== undefined) return { scope: "plugin", path: target, plugin: basename(plugin) };
  const isUsers =
    target === join(configDirectory, "agents") || target.startsWith(join(configDirectory, "agents/"));
  return { scope: isUsers ? "user" : "project", path: target };
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
