import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { quote } from "../../foundation/json-record.ts";
import { findBadRule, type RuleList } from "../../runtime/options/find-bad-rule.ts";
import type { ProjectOptions } from "../../runtime/project/project-facts.ts";
import { type CommandContext, misuse, type SessionOptions } from "./command-context.ts";
import { type AgentsOption, loadAgentsOption } from "./load-agents-option.ts";

/** An option that could not take effect must not be passed over. */
export function checkSessionOptions(
  { disallowedTools = [], addDir = [], pluginDir = [] }: SessionOptions,
  cwd: string,
  { allowedTools = [] }: { readonly allowedTools?: readonly string[] } = {},
): void {
  checkRules("--allowedTools", "allow", allowedTools);
  checkRules("--disallowedTools", "deny", disallowedTools);
  const folders = [
    ...addDir.map((folder) => ["--add-dir", folder] as const),
    ...pluginDir.map((folder) => ["--plugin-dir", folder] as const),
  ];
  for (const [option, folder] of folders) {
    if (existsSync(resolve(cwd, folder))) continue;
    throw misuse(`${option} names a folder that is not there: ${quote(folder, 300)}.`, "Check the path.");
  }
}

/** The options of every command, as a project and a runtime take them; both mean the same by them. */
export function folderOptions({ host, session }: CommandContext): FolderOptions {
  const { cwd, home, environment: env, platform } = host;
  const option = session.agents === undefined ? undefined : loadAgentsOption(session.agents, cwd);
  return {
    ...(option === undefined ? {} : { option }),
    given: {
      cwd,
      home,
      env,
      platform,
      ...(option === undefined ? {} : { agents: option.definitions }),
      ...(session.settings === undefined ? {} : { settings: session.settings }),
      ...(session.settingSources === undefined ? {} : { settingSources: session.settingSources }),
      ...(session.pluginDir === undefined ? {} : { pluginDirectories: session.pluginDir }),
      ...(session.addDir === undefined ? {} : { additionalDirectories: session.addDir }),
      ...(session.disallowedTools === undefined ? {} : { disallowedTools: session.disallowedTools }),
      ...(session.mcpConfig === undefined ? {} : { mcpConfig: session.mcpConfig }),
      ...(session.strictMcpConfig === true ? { strictMcpConfig: true } : {}),
      ...(session.trust === true ? { trusted: true } : {}),
    },
  };
}

interface FolderOptions {
  readonly given: ProjectOptions;
  /** What `--agents` gave. */
  readonly option?: AgentsOption;
}

export function checkRules(option: string, list: RuleList, rules: readonly string[]): void {
  const bad = rules.length === 0 ? undefined : findBadRule(list, rules);
  if (bad !== undefined)
    throw misuse(`${option} holds a rule that cannot be understood: ${bad.reason}.`, bad.advice);
}
