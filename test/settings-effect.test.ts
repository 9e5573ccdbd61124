import { switchesWithoutEffect } from "@retinue/config/settings/permission-settings.ts";
import { keysWithoutEffect, plainReaders } from "@retinue/config/settings/plain-settings.ts";
import { type Member, settingMembers } from "@retinue/config/settings/read-members.ts";
import { readSettings } from "@retinue/config/settings/settings.ts";
import { describe, expect, test } from "vitest";
import { readProjectFile, readProjectFiles } from "./project-files.ts";

/** For each key, the test that shows its effect. A new key gets a row here, or in keysWithoutEffect with why it has none. */
const effectTests: Readonly<Record<string, string>> = {
  disableBundledSkills: "test/agent-sdk/workflow-rights.test.ts",
  disableWorkflows: "test/agent-sdk/workflow-rights.test.ts",
  enableWorkflows: "test/agent-sdk/workflow-rights.test.ts",
  workflowKeywordTriggerEnabled: "test/agent-sdk/workflow-rights.test.ts",
  workflowSizeGuideline: "test/agent-sdk/workflow-rights.test.ts",
  workflows: "packages/core/src/kernel/workflows/start-workflow.test.ts",
  agent: "test/scenarios/mcp-server.test.ts",
  agentSources: "test/scenarios/prompt-settings.test.ts",
  allowManagedHooksOnly: "packages/core/src/kernel/hooks/session-hooks.rules.test.ts",
  allowManagedMcpServersOnly: "packages/config/src/settings/load-mcp-entries.policy.test.ts",
  allowManagedPermissionRulesOnly: "packages/config/src/settings/settings-layer.test.ts",
  allowedHttpHookUrls: "packages/core/src/hooks/run-http-hook.test.ts",
  allowedMcpServers: "packages/config/src/settings/load-mcp-entries.policy.test.ts",
  alwaysThinkingEnabled: "test/scenarios/prompt-settings.test.ts",
  apiKeyHelper: "packages/core/src/kernel/create-runtime.options.test.ts",
  approvals: "test/scenarios/approvals.test.ts",
  autoCompactEnabled: "test/scenarios/compaction.test.ts",
  autoCompactWindow: "test/scenarios/compaction.test.ts",
  autoMemoryEnabled: "test/scenarios/memory.test.ts",
  availableModels: "packages/config/src/models/select-subagent-model.model-limits.test.ts",
  backgroundAgents: "test/scenarios/background-agents.test.ts",
  bashOutputMaxChars: "packages/core/src/kernel/create-runtime.settings.test.ts",
  claudeMd: "test/scenarios/prompt-settings.test.ts",
  claudeMdExcludes: "packages/config/src/instructions/load-session-instructions.test.ts",
  cleanupPeriodDays: "packages/core/src/kernel/create-runtime.tidying.test.ts",
  deniedMcpServers: "packages/config/src/settings/load-mcp-entries.policy.test.ts",
  deniedModels: "packages/core/src/kernel/create-runtime.settings.test.ts",
  disableAllHooks: "packages/core/src/kernel/hooks/session-hooks.test.ts",
  disableSkillShellExecution: "test/scenarios/skills.test.ts",
  disabledMcpjsonServers: "packages/config/src/settings/choose-mcp-servers.test.ts",
  durability: "packages/core/src/kernel/runtime-source.test.ts",
  effortLevel: "test/scenarios/prompt-settings.test.ts",
  enableAllProjectMcpServers: "packages/core/src/kernel/servers/gather-mcp-servers.test.ts",
  enabledMcpjsonServers: "packages/core/src/kernel/servers/gather-mcp-servers.test.ts",
  enabledPlugins: "packages/config/src/plugins/discover-plugins.test.ts",
  fallbackModel: "packages/core/src/kernel/create-runtime.fallback.test.ts",
  httpHookAllowedEnvVars: "test/scenarios/prompt-settings.test.ts",
  includeGitInstructions: "test/scenarios/prompt-settings.test.ts",
  language: "test/scenarios/prompt-settings.test.ts",
  outputStyle: "test/scenarios/prompt-settings.test.ts",
  limits: "test/scenarios/limits.test.ts",
  managedMcpServers: "packages/core/src/kernel/servers/gather-mcp-servers.test.ts",
  maxEffortLevel: "test/scenarios/prompt-settings.test.ts",
  mcpServers: "test/scenarios/mcp-sessions.test.ts",
  model: "packages/core/src/kernel/choose-model.test.ts",
  modelOverrides: "test/scenarios/mixed-providers.test.ts",
  pluginConfigs: "packages/config/src/plugins/load-plugin.servers.test.ts",
  promptCacheTtl: "test/scenarios/prompt-settings.test.ts",
  quota: "test/scenarios/quota.test.ts",
  quotes: "test/scenarios/quotes.test.ts",
  resumeInterruptedAgents: "test/scenarios/recovery.test.ts",
  sandbox: "packages/core/src/kernel/create-runtime.approver.test.ts",
  skillListingBudgetFraction: "test/scenarios/prompt-settings.test.ts",
  skillListingMaxDescChars: "test/scenarios/prompt-settings.test.ts",
  skillOverrides: "test/scenarios/skill-powers.test.ts",
  statusLine: "test/terminal/status-line.test.ts",
  strictPluginOnlyCustomization: "packages/config/src/skills/skill-catalog.test.ts",
  subagentPromptCacheTtl: "test/scenarios/prompt-settings.test.ts",
  teammateMode: "test/scenarios/team-processes.test.ts",
  teams: "test/scenarios/teams.test.ts",
  verify: "test/scenarios/verified-results.test.ts",
  worktree: "test/scenarios/session-places.test.ts",
};

const inSandbox = "packages/core/src/tools/sandbox/sandbox-settings.test.ts";
const inWorktrees = "packages/core/src/tasks/worktree/make-worktree.test.ts";
/** The same for what is inside settings whose value is an object. */
const memberTests: Readonly<Record<string, string>> = {
  "modelOverrides.*.contextWindow": "packages/core/src/models/look-up-model.test.ts",
  "modelOverrides.*.maxOutputTokens": "packages/core/src/models/look-up-model.test.ts",
  "modelOverrides.*.price.cacheRead": "packages/core/src/models/look-up-model.test.ts",
  "modelOverrides.*.price.cacheWrite": "packages/core/src/models/look-up-model.test.ts",
  "modelOverrides.*.price.input": "packages/core/src/models/look-up-model.test.ts",
  "modelOverrides.*.price.output": "packages/core/src/models/look-up-model.test.ts",
  "pluginConfigs.*.options": "packages/config/src/plugins/load-plugin.servers.test.ts",
  "sandbox.allowUnsandboxedCommands": inSandbox,
  "sandbox.autoAllowBashIfSandboxed": "test/scenarios/one-policy.test.ts",
  "sandbox.enableWeakerNestedSandbox": inSandbox,
  "sandbox.enabled": inSandbox,
  "sandbox.excludedCommands": inSandbox,
  "sandbox.failIfUnavailable": "packages/core/src/kernel/create-runtime.approver.test.ts",
  "sandbox.filesystem.allowRead": inSandbox,
  "sandbox.filesystem.allowWrite": "packages/core/src/tools/sandbox/sandbox-limits.test.ts",
  "sandbox.filesystem.denyRead": "packages/core/src/tools/sandbox/sandbox-limits.test.ts",
  "sandbox.filesystem.denyWrite": "packages/core/src/tools/sandbox/sandbox-limits.test.ts",
  "sandbox.isolateReadOnlyCommands": "packages/core/src/kernel/agent/create-authorize.test.ts",
  "sandbox.network.allowAllUnixSockets": inSandbox,
  "sandbox.network.allowLocalBinding": inSandbox,
  "sandbox.network.allowManagedDomainsOnly": "packages/config/src/settings/settings-layer.test.ts",
  "sandbox.network.allowUnixSockets": inSandbox,
  "sandbox.network.allowedDomains": inSandbox,
  "sandbox.network.deniedDomains": inSandbox,
  "worktree.baseRef": inWorktrees,
  "worktree.location": inWorktrees,
  "worktree.symlinkDirectories": inWorktrees,
};

/** The dotted names of all members, a star for names that people choose, and whether each has an effect. */
function membersBelow(path: string, member: Member): readonly { path: string; hasEffect: boolean }[] {
  if ("each" in member) return membersBelow(`${path}.*`, member.each);
  if ("members" in member)
    return Object.entries(member.members).flatMap(([name, each]) => membersBelow(`${path}.${name}`, each));
  // Of these the key itself is what has an effect.
  if (!path.includes(".") || path.endsWith("*")) return [];
  return [{ path, hasEffect: !("why" in member) }];
}

const members = Object.entries(settingMembers).flatMap(([key, member]) => membersBelow(key, member));

/** Code without what is only said about it. */
const withoutComments = (text: string): string => text.replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, "");

describe("settings that are read", () => {
  const sources = readProjectFiles("packages")
    .filter(({ path }) => /^packages\/.*\.ts$/.test(path) && !path.endsWith(".test.ts"))
    .filter(
      ({ path }) =>
        !/(?:settings\/(?:plain-settings|permission-settings|read-members|limit-sandbox)|schemas\/setting-docs)\.ts$/.test(
          path,
        ),
    )
    .map(({ text }) => withoutComments(text));
  const isUsed = (key: string): boolean => sources.some((text) => new RegExp(`\\b${key}\\b`).test(text));
  const readers = (file: string, name: string): readonly string[] => {
    const block = readProjectFile(file).split(`const ${name} = {`)[1]?.split("} as const")[0] ?? "";
    return [...block.matchAll(/^ {2}(\w+):/gm)].flatMap(([, key]) => key ?? []);
  };
  const switches = readers("packages/config/src/settings/permission-settings.ts", "switchReaders");
  const keys = Object.keys(plainReaders);
  // `auto` asks like `default`: there is nothing that these two could switch off.
  const trivially = ["disableAutoMode"];

  test("have an effect, or a diagnostic says that they have none", () => {
    expect(keys.length).toBeGreaterThan(40);
    expect(switches.length).toBeGreaterThan(5);
    const silent = [...keys, ...switches].filter(
      (key) =>
        !isUsed(key) &&
        !keysWithoutEffect.has(key) &&
        !switchesWithoutEffect.has(key) &&
        !trivially.includes(key),
    );
    expect(silent).toEqual([]);
  });

  test("and have an effect have a test that shows it", () => {
    const expected = keys.filter((key) => !keysWithoutEffect.has(key) && !trivially.includes(key));
    expect(Object.keys(effectTests).toSorted()).toEqual(expected.toSorted());
    const files = [...new Set(Object.values(effectTests))];
    const texts = new Map(files.map((file) => [file, readProjectFile(file)]));
    const unnamed = Object.entries(effectTests).filter(
      ([key, file]) => !new RegExp(`\\b${key}\\b`).test(texts.get(file) ?? ""),
    );
    expect(unnamed).toEqual([]);
  });

  test("as part of another and have an effect have a test that shows it", () => {
    const expected = members.filter(({ hasEffect }) => hasEffect).map(({ path }) => path);
    expect(Object.keys(memberTests).toSorted()).toEqual(expected.toSorted());
    const silent = expected.filter((path) => !isUsed(path.split(".").at(-1) ?? ""));
    expect(silent).toEqual([]);
    const unnamed = Object.entries(memberTests).filter(
      ([path, file]) => !new RegExp(`\\b${path.split(".").at(-1)}\\b`).test(readProjectFile(file)),
    );
    expect(unnamed).toEqual([]);
  });

  test("and have none are listed in the docs, and noted where they are written", () => {
    const page = readProjectFile("docs/settings.md");
    const listed = page.split("`setting-without-effect`:")[1]?.split("\nThe note")[0] ?? "";
    const names = [...listed.matchAll(/`([\w.]+)`/g)].flatMap(([, name]) => name ?? []);
    const unsupported = [
      ...keysWithoutEffect.keys(),
      ...[...switchesWithoutEffect.keys()].map((key) => `permissions.${key}`),
      ...members.filter(({ hasEffect }) => !hasEffect).map(({ path }) => path),
    ];
    expect(names.toSorted()).toEqual(unsupported.toSorted());
    const read = (value: unknown) =>
      readSettings(value, { scope: "user" }).issues.map(({ code, path }) => [code, path.join(".")]);
    expect(read({ subagentStatusLine: { type: "command", command: "x" } })).toEqual([
      ["setting-without-effect", "subagentStatusLine"],
    ]);
    expect(read({ permissions: { workingDirectoriesAsGiven: true } })).toEqual([
      ["setting-without-effect", "permissions.workingDirectoriesAsGiven"],
    ]);
  });
});
