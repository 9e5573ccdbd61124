import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { type DiscoveredAgents, discoverAgents } from "../../definitions/discover-agents.ts";
import type { Diagnostic } from "../../foundation/diagnostic.ts";
import { type AliasTable, aliasTable } from "../../model/alias-table.ts";
import { parseRule } from "../../permissions/rules/parse-rule.ts";
import { createPaths } from "../../settings/paths.ts";
import { createTrustStore, type TrustAnswer } from "../../settings/trust-store.ts";
import { checkSessionOptions } from "./check-session-options.ts";
import { displayPath } from "./display-path.ts";
import { type AgentsOption, loadAgentsOption, refuseBrokenOption } from "./load-agents-option.ts";
import { type CommandContext, misuse, type SessionOptions } from "./session-options.ts";

/** Everything a command can know about agents here, with the options of this run in force. */
export interface GatheredSession {
  readonly discovered: DiscoveredAgents;
  /** Of definitions, settings, plugins and `--agents`. */
  readonly diagnostics: readonly Diagnostic[];
  readonly option?: AgentsOption;
  readonly trust: TrustAnswer;
  readonly aliases: AliasTable;
  /** Tools that deny rules of settings and options take away altogether. */
  readonly deniedTools: ReadonlySet<string>;
  nameOf(file: string): string;
  /** The text of a file, read at most once. */
  textOf(file: string): string | undefined;
}

export interface GatherOptions {
  /** What `--agents` and `--settings` hold and cannot be used is one problem among others instead of the end. */
  readonly toleratesBrokenFiles?: boolean;
}

export async function gatherSession(
  { host, session }: CommandContext,
  { toleratesBrokenFiles = false }: GatherOptions = {},
): Promise<GatheredSession> {
  const { cwd, home, environment, platform } = host;
  checkSessionOptions(session, cwd);
  const option = session.agents === undefined ? undefined : loadAgentsOption(session.agents, cwd);
  if (option?.isBroken === true && !toleratesBrokenFiles) throw refuseBrokenOption(option);
  const trust = await findTrust({ host, session });
  const discovered = await discoverAgents({
    cwd,
    home,
    environment,
    platform,
    trusted: trust.trusted,
    ...(option === undefined ? {} : { agents: option.definitions }),
    ...(session.pluginDir === undefined ? {} : { pluginDirectories: session.pluginDir }),
    ...(session.addDir === undefined ? {} : { additionalDirectories: session.addDir }),
    ...(session.settingSources === undefined ? {} : { settingSources: session.settingSources }),
    ...(session.settings === undefined ? {} : { settings: session.settings }),
    ...(session.disallowedTools === undefined ? {} : { disallowedTools: session.disallowedTools }),
  });
  if (!toleratesBrokenFiles) refuseBrokenSettings(discovered, session);
  const settingsEnvironment = Object.fromEntries(discovered.settings.settings.env);
  return {
    discovered,
    diagnostics: [...(option?.diagnostics ?? []), ...discovered.diagnostics],
    ...(option === undefined ? {} : { option }),
    trust,
    aliases: aliasTable({ environment: { ...environment, ...settingsEnvironment } }),
    deniedTools: deniedTools(discovered, session),
    nameOf: (file) => displayPath(file, { cwd, home, platform }),
    textOf: createTextReader(option),
  };
}

function deniedTools({ settings }: DiscoveredAgents, session: SessionOptions): ReadonlySet<string> {
  const flags = (session.disallowedTools ?? []).map((text) => parseRule(text, { list: "deny" }));
  const rules = [
    ...settings.settings.permissions.deny.map(({ rule }) => rule),
    ...flags.flatMap((reading) => (reading.type === "rule" ? [reading.rule] : [])),
  ];
  return new Set(
    rules.filter(({ specifier }) => specifier.type === "whole").map(({ canonicalTool }) => canonicalTool),
  );
}

async function findTrust({ host, session }: CommandContext): Promise<TrustAnswer> {
  const { cwd, home } = host;
  if (session.trust === true) return { trusted: true, folder: cwd, why: "--trust was given for this run" };
  const { stateFile } = createPaths(host);
  return createTrustStore({ stateFile, home }).isTrusted(cwd);
}

function refuseBrokenSettings({ settings }: DiscoveredAgents, session: SessionOptions): void {
  if (!settings.incompleteScopes.includes("flags")) return;
  const given = session.settings ?? "";
  const file = given.trimStart().startsWith("{") ? undefined : resolve(given);
  const diagnostic =
    settings.diagnostics.find((candidate) => candidate.severity === "error" && candidate.file === file) ??
    settings.diagnostics.find((candidate) => candidate.severity === "error");
  throw misuse(`--settings cannot be used: ${diagnostic?.message ?? "it is broken."}`, diagnostic?.advice);
}

function createTextReader(option?: AgentsOption): (file: string) => string | undefined {
  const texts = new Map<string, string | undefined>();
  if (option !== undefined) texts.set(option.file, option.text);
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
