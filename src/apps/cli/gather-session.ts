import { readFileSync } from "node:fs";
import { type DiscoveredAgents, discoverAgents } from "../../definitions/discover-agents.ts";
import type { Problem } from "../../foundation/problem.ts";
import { displayPath } from "./display-path.ts";
import { type AgentsOption, loadAgentsOption, refuseBrokenOption } from "./load-agents-option.ts";
import type { CommandContext } from "./session-options.ts";

/** Everything a command can know about agents here, with the options of this run in force. */
export interface GatheredSession {
  readonly discovered: DiscoveredAgents;
  /** Of definitions, settings, plugins and `--agents`. */
  readonly problems: readonly Problem[];
  readonly option?: AgentsOption;
  nameOf(file: string): string;
  /** The text of a file, read at most once. */
  textOf(file: string): string | undefined;
}

export interface GatherOptions {
  /** `--agents` that cannot be used is one problem among others instead of the end. */
  readonly toleratesBrokenOption?: boolean;
}

export async function gatherSession(
  { host, session }: CommandContext,
  { toleratesBrokenOption = false }: GatherOptions = {},
): Promise<GatheredSession> {
  const { cwd, home, environment, platform } = host;
  const option = session.agents === undefined ? undefined : loadAgentsOption(session.agents, cwd);
  if (option?.isBroken === true && !toleratesBrokenOption) throw refuseBrokenOption(option);
  const discovered = await discoverAgents({
    cwd,
    home,
    environment,
    platform,
    ...(option === undefined ? {} : { agents: option.definitions }),
    ...(session.pluginDir === undefined ? {} : { pluginDirectories: session.pluginDir }),
    ...(session.addDir === undefined ? {} : { additionalDirectories: session.addDir }),
    ...(session.settingSources === undefined ? {} : { settingSources: session.settingSources }),
    ...(session.settings === undefined ? {} : { settings: session.settings }),
    ...(session.disallowedTools === undefined ? {} : { disallowedTools: session.disallowedTools }),
    ...(session.trust === undefined ? {} : { trusted: session.trust }),
  });
  return {
    discovered,
    problems: [...(option?.problems ?? []), ...discovered.problems],
    ...(option === undefined ? {} : { option }),
    nameOf: (file) => displayPath(file, { cwd, home, platform }),
    textOf: createTextReader(option),
  };
}

export function createTextReader(option?: AgentsOption): (file: string) => string | undefined {
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
