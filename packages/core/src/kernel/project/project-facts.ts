// @io
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import type { SettingSource } from "@retinue/base/foundation/option-words.ts";
import type { AgentDefinition } from "@retinue/config/agents/agent-definition.ts";
import { type DiscoveredAgents, discoverAgents } from "@retinue/config/discovery/discover-agents.ts";
import { type AliasTable, aliasTable } from "@retinue/config/models/select-subagent-model.ts";
import type { TrustAnswer } from "@retinue/config/settings/trust-store.ts";
import type { SkillCatalog } from "@retinue/config/skills/skill-catalog.ts";
import { parseRule } from "@retinue/gate/rules/parse-rule.ts";
import type { RuntimeContext } from "../runtime-context.ts";
import type { GatheredMcp } from "../servers/gather-mcp-servers.ts";
import { findTrust } from "./lock/judge-lock.ts";

/** What the files and options of a folder say now; everything that can be asked about it is decided from this. */
export interface ProjectFacts {
  readonly discovered: DiscoveredAgents;
  readonly trust: TrustAnswer;
  readonly aliases: AliasTable;
  /** Tools that deny rules of settings and options take away altogether. */
  readonly deniedTools: ReadonlySet<string>;
  readonly disallowedTools: readonly string[];
  readonly additionalDirectories: readonly string[];
  /** The process's variables with those of settings over them. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly platform: NodeJS.Platform;
  /** The text of a file that diagnostics name, read at most once. */
  textOf(file: string): string | undefined;
  skills(): Promise<SkillCatalog>;
  servers(): Promise<GatheredMcp>;
}

/** The options of a runtime that say what is read; they mean the same there. */
export interface ProjectOptions {
  readonly cwd: string;
  readonly home: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly platform: NodeJS.Platform;
  readonly agents?: readonly AgentDefinition[];
  /** Texts that are not in files, by the name that diagnostics have for them. */
  readonly texts?: ReadonlyMap<string, string>;
  readonly settings?: string;
  readonly settingSources?: readonly SettingSource[];
  readonly pluginDirectories?: readonly string[];
  readonly agentSources?: readonly string[];
  readonly additionalDirectories?: readonly string[];
  readonly disallowedTools?: readonly string[];
  readonly mcpConfig?: readonly string[];
  readonly strictMcpConfig?: boolean;
  readonly trusted?: boolean;
}

/** Reads a folder without anything that running an agent needs. */
export async function gatherProject(options: ProjectOptions): Promise<ProjectFacts> {
  const { env, trusted: _trusted, mcpConfig: _servers, strictMcpConfig: _strict, texts, ...same } = options;
  const trust = await trustOf(options);
  const discovered = await discoverAgents({ ...same, environment: env, trusted: trust.trusted });
  const environment = { ...env, ...Object.fromEntries(discovered.settings.settings.env) };
  const additionalDirectories = (options.additionalDirectories ?? []).map((folder) =>
    resolve(options.cwd, folder),
  );
  return {
    ...derivedFacts({ discovered, environment, disallowedTools: options.disallowedTools ?? [] }),
    trust,
    additionalDirectories,
    platform: options.platform,
    textOf: createTextReader(texts),
    skills: () => readSkills(discovered, { ...options, additionalDirectories }),
    servers: () => readServers(discovered, { options, environment, trusted: trust.trusted }),
  };
}

/** The same of a runtime, which has read the folder already. */
export function factsOfRuntime(context: RuntimeContext): ProjectFacts {
  const { discovered, trusted, additionalDirectories, platform } = context;
  const folder = discovered.paths.cwd;
  const why = trusted ? "the program or a person trusts it" : "no one has trusted it";
  return {
    ...derivedFacts(context),
    trust: { trusted, folder, why },
    additionalDirectories,
    platform,
    textOf: createTextReader(),
    skills: () => context.skills(),
    servers: () => context.servers(),
  };
}

/** Reads each file at most once; one that cannot be read has no text. */
export function createTextReader(
  given: ReadonlyMap<string, string> = new Map(),
): (file: string) => string | undefined {
  const texts = new Map<string, string | undefined>(given);
  return (file) => {
    if (!texts.has(file)) texts.set(file, readText(file));
    return texts.get(file);
  };
}

function readText(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}

function derivedFacts({
  discovered,
  environment,
  disallowedTools,
}: Pick<ProjectFacts, "discovered" | "environment" | "disallowedTools">) {
  return {
    discovered,
    environment,
    disallowedTools,
    aliases: aliasTable({ environment }),
    deniedTools: deniedTools(discovered, disallowedTools),
  };
}

function deniedTools({ settings }: DiscoveredAgents, disallowed: readonly string[]): ReadonlySet<string> {
  const flags = disallowed.map((text) => parseRule(text, { list: "deny" }));
  const rules = [
    ...settings.settings.permissions.deny.map(({ rule }) => rule),
    ...flags.flatMap((reading) => (reading.type === "rule" ? [reading.rule] : [])),
  ];
  return new Set(
    rules.filter(({ specifier }) => specifier.type === "whole").map(({ canonicalTool }) => canonicalTool),
  );
}

async function trustOf(options: ProjectOptions): Promise<TrustAnswer> {
  if (options.trusted === true)
    return { trusted: true, folder: options.cwd, why: "--trust was given for this run" };
  return findTrust(options);
}

async function readSkills(
  { paths, plugins, settings }: DiscoveredAgents,
  { additionalDirectories, settingSources }: Pick<ProjectOptions, "additionalDirectories" | "settingSources">,
): Promise<SkillCatalog> {
  const { discoverSkills } = await import("@retinue/config/skills/skill-catalog.ts");
  return discoverSkills({
    paths,
    plugins,
    settings: settings.settings.plain,
    additionalDirectories: additionalDirectories ?? [],
    settingSources,
  });
}

async function readServers(
  discovered: DiscoveredAgents,
  {
    options,
    environment,
    trusted,
  }: { readonly options: ProjectOptions; readonly trusted: boolean } & Pick<ProjectFacts, "environment">,
): Promise<GatheredMcp> {
  const { gatherMcpServers } = await import("../servers/gather-mcp-servers.ts");
  const { settingSources, mcpConfig, strictMcpConfig } = options;
  return gatherMcpServers({
    discovered,
    trusted,
    environment,
    settingSources,
    mcpConfig,
    ...(strictMcpConfig === true ? { strictMcpConfig } : {}),
  });
}
