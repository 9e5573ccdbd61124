import type { Issue } from "@retinue/base/foundation/diagnostic.ts";
import { type JsonRecord, quote } from "@retinue/base/foundation/json-record.ts";
import { durabilities } from "@retinue/base/storage/durability.ts";
import { limits } from "./limits.ts";
import {
  approvals,
  backgroundAgents,
  choice,
  disable,
  effort,
  enabledObject,
  flag,
  flagOrTextList,
  integer,
  numberBetween,
  object,
  objectList,
  quota,
  quotes,
  statusLine,
  text,
  textList,
  type ValueReader,
  type WrongPart,
  workflows,
} from "./read-environment.ts";
import { verifyByAgent } from "./verify-checks.ts";

/** The settings that are read one by one; permissions, hooks and env have readers of their own. */
export const plainReaders = {
  agent: text,
  agentSources: textList,
  allowManagedHooksOnly: flag,
  allowManagedMcpServersOnly: flag,
  allowManagedPermissionRulesOnly: flag,
  allowedHttpHookUrls: textList,
  allowedMcpServers: objectList,
  alwaysThinkingEnabled: flag,
  apiKeyHelper: text,
  approvals,
  autoCompactEnabled: flag,
  autoCompactWindow: integer(1),
  autoMemoryDirectory: text,
  autoMemoryEnabled: flag,
  availableModels: textList,
  availableModelsMatch: text,
  backgroundAgents,
  bashOutputMaxChars: integer(1),
  claudeMd: text,
  claudeMdExcludes: textList,
  cleanupPeriodDays: integer(0),
  deniedMcpServers: objectList,
  deniedModels: textList,
  disableAllHooks: flag,
  disableAutoMode: disable,
  disableBundledSkills: flag,
  disableSkillShellExecution: flag,
  disableWorkflows: flag,
  disabledMcpjsonServers: textList,
  durability: choice(...durabilities),
  effortLevel: effort,
  enableAllProjectMcpServers: flag,
  enableWorkflows: flag,
  enabledMcpjsonServers: textList,
  enabledPlugins: object,
  extraKnownMarketplaces: object,
  fallbackModel: textList,
  httpHookAllowedEnvVars: textList,
  includeGitInstructions: flag,
  language: text,
  limits,
  managedMcpServers: object,
  maxEffortLevel: effort,
  mcpServers: object,
  model: text,
  modelOverrides: object,
  outputStyle: text,
  pluginConfigs: object,
  promptCacheTtl: choice("5m", "1h"),
  quota,
  quotes,
  resumeInterruptedAgents: flag,
  sandbox: enabledObject,
  skillListingBudgetFraction: numberBetween(0, 1),
  skillListingMaxDescChars: integer(1),
  skillOverrides: object,
  statusLine,
  strictPluginOnlyCustomization: flagOrTextList,
  subagentPromptCacheTtl: choice("5m", "1h"),
  subagentStatusLine: object,
  teammateMode: choice("in-process", "process", "auto", "tmux", "iterm2"),
  teams: enabledObject,
  verify: verifyByAgent,
  workflowKeywordTriggerEnabled: flag,
  workflows,
  workflowSizeGuideline: choice("small", "medium", "large", "unrestricted"),
  worktree: object,
} as const satisfies Readonly<Record<string, ValueReader<unknown>>>;

export type PlainKey = keyof typeof plainReaders;

export type PlainSettings = {
  readonly [Key in PlainKey]?: (typeof plainReaders)[Key] extends ValueReader<infer Value> ? Value : never;
};

/** Keys that only an organisation's own file may set. */
export const managedOnlyKeys: ReadonlySet<string> = new Set<PlainKey>([
  "allowManagedHooksOnly",
  "allowManagedMcpServersOnly",
  "allowManagedPermissionRulesOnly",
  "claudeMd",
  "managedMcpServers",
]);

/** Keys that only take something away: one that cannot be read leaves open what should be closed. */
export const restrictingPlainKeys: ReadonlySet<string> = new Set<PlainKey>([
  "deniedMcpServers",
  "deniedModels",
  "disableAutoMode",
  "disabledMcpjsonServers",
  "disableWorkflows",
  "quotes",
  "sandbox",
]);

/**
 * Keys that guard something, which a value that cannot be read would leave unguarded: checks that are dropped would pass, and
 * limits that are dropped are not kept.
 */
const guardingPlainKeys: ReadonlySet<string> = new Set<string>([...restrictingPlainKeys, "limits", "verify"]);

/** Keys that are read and checked and have no effect here, each with why. Each use of one is a diagnostic; docs/settings.md lists them. */
export const keysWithoutEffect: ReadonlyMap<string, string> = new Map<PlainKey, string>([
  ["autoMemoryDirectory", "an agent's notes are in the folder that its `memory` names"],
  ["availableModelsMatch", "models are compared by alias and id"],
  ["extraKnownMarketplaces", "plugins are used as they are installed"],
  ["subagentStatusLine", "the terminal shows the agents itself"],
]);

/** Reported for a setting that is written and that changes nothing. */
export function withoutEffect(path: readonly string[], why: string): Issue {
  return {
    severity: "note",
    code: "setting-without-effect",
    message: `The setting "${path.join(".")}" has no effect here: ${why}.`,
    path,
  };
}

export function isPlainKey(key: string): key is PlainKey {
  return Object.hasOwn(plainReaders, key);
}

export function readPlainSettings(
  value: JsonRecord,
  isManaged: boolean,
): {
  readonly settings: PlainSettings;
  readonly issues: readonly Issue[];
  readonly broken: readonly string[];
} {
  const entries: [string, unknown][] = [];
  const issues: Issue[] = [];
  const broken: string[] = [];
  for (const [key, reader] of Object.entries<ValueReader<unknown>>(plainReaders)) {
    if (!Object.hasOwn(value, key) || value[key] === null) continue;
    const read = reader.read(value[key]);
    if (read === undefined) {
      const part = reader.wrongPart?.(value[key]);
      const issue = part ? wrongPartOf(key, part) : wrongValue(key, reader.expected, value[key]);
      const isGuarding = guardingPlainKeys.has(key);
      issues.push(isGuarding ? { ...issue, severity: "error" } : issue);
      if (isGuarding) broken.push(key);
    } else if (managedOnlyKeys.has(key) && !isManaged) issues.push(managedOnly(key));
    else {
      entries.push([key, read]);
      const why = keysWithoutEffect.get(key);
      if (why !== undefined) issues.push(withoutEffect([key], why));
    }
  }
  // Each value comes from the reader that gives PlainSettings the type of its key.
  return { settings: Object.fromEntries(entries) as PlainSettings, issues, broken };
}

function wrongPartOf(key: string, { path, reason, advice }: WrongPart): Issue {
  return {
    severity: "warning",
    code: "wrong-setting-value",
    message: `The setting "${[key, ...path].join(".")}" cannot be read: ${reason}; "${key}" was not used.`,
    advice,
    path: [key, ...path],
  };
}

export function wrongValue(
  key: string,
  expected: string,
  value: unknown,
  path: readonly string[] = [key],
): Issue {
  return {
    severity: "warning",
    code: "wrong-setting-value",
    message: `The setting "${path.join(".")}" must be ${expected}, but here it is ${quote(value)}; it was not used.`,
    advice: `Write ${expected}, or remove "${key}".`,
    path,
  };
}

export function managedOnly(...path: readonly string[]): Issue {
  return {
    severity: "warning",
    code: "managed-only-setting",
    message: `The setting "${path.join(".")}" counts only in an organisation's managed settings; it was not used.`,
    advice: `Remove "${path.at(-1)}" from this file.`,
    path,
  };
}
