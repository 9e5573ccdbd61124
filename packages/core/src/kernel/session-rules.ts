import { isAbsolute, join, resolve } from "node:path";
import { type Diagnostic, placeText } from "@retinue/base/foundation/diagnostic.ts";
import { findRealPaths } from "@retinue/base/foundation/find-real-path.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { DiscoveredAgents } from "@retinue/config/discovery/discover-agents.ts";
import type { LoadedSettings } from "@retinue/config/settings/load-settings.ts";
import type { Paths } from "@retinue/config/settings/paths.ts";
import type { SourcedRule } from "@retinue/config/settings/settings-layer.ts";
import { splitEntries } from "@retinue/config/tools/tool-entry.ts";
import type { PolicyFacts } from "@retinue/gate/build-policy.ts";
import type { PolicyRule } from "@retinue/gate/decide.ts";
import { createMayLoad, type MayLoad } from "@retinue/gate/may-load.ts";
import { isInside } from "@retinue/gate/permission-policy.ts";
import { parseRule, type RuleList, warnOfRule } from "@retinue/gate/rules/parse-rule.ts";
import type { SessionFiles } from "../journal/session-files.ts";
import type { AgentPlan } from "../planning/agent-plan.ts";
import type { MainFacts } from "../planning/agent-request.ts";
import type { ModeRequests } from "../planning/decide-mode.ts";
import { planAgent } from "../planning/plan-agent.ts";
import { type LimitFacts, type LimitSettings, readLimitSettings } from "../planning/plan-limits.ts";
import { readSandboxSettings, sandboxRights } from "../tools/sandbox/sandbox-settings.ts";
import type { SessionSetup } from "./options/runtime-options.ts";
import type { FolderContext, RuntimeContext } from "./runtime-context.ts";

export interface RuleFlags {
  readonly allowedTools?: readonly string[];
  readonly disallowedTools?: readonly string[];
}

/** The rules of settings and of the call together. A rule of the call that cannot be read ends the start. */
export function sessionRules(
  { settings }: Pick<LoadedSettings, "settings">,
  flags: RuleFlags,
  directory: string,
) {
  const { allow, ask, deny } = settings.permissions;
  return {
    allow: [...allow.map(fromSettings), ...fromFlags("allow", flags.allowedTools, directory)],
    ask: ask.map(fromSettings),
    deny: [...deny.map(fromSettings), ...fromFlags("deny", flags.disallowedTools, directory)],
  };
}

/** What a person should know of the rules of the call; those of settings are shown where files are checked. */
function ruleNotes({
  allow,
  deny,
}: Readonly<Record<"allow" | "deny", readonly PolicyRule[]>>): readonly string[] {
  return [...allow, ...deny].flatMap(({ rule, from }) => {
    const warning = from === undefined ? warnOfRule(rule) : undefined;
    return warning === undefined ? [] : [`${warning.message} ${warning.advice}`];
  });
}

/** The folders of a plan, as they are written and with links followed, because calls are judged by both. */
interface FolderFacts {
  readonly workingDirectories: readonly string[];
  readonly outputRules: readonly PolicyRule[];
  readonly teamRules: readonly PolicyRule[];
  readonly steering: readonly string[];
}

/** Looks up where the folders of a session are: those it works in, those of its outputs, the files of teams, and what steers it. */
export async function findFolders(
  runtime: Pick<RuntimeContext, "discovered" | "additionalDirectories" | "teams" | "optionFiles">,
  { directory, toolResults }: Pick<SessionFiles, "directory" | "toolResults">,
  outputFolder: string,
): Promise<FolderFacts> {
  const { teams, tasks } = runtime.discovered.paths;
  const working = workingFolders(runtime);
  const outputs = [...new Set([toolResults, outputFolder, join(directory, "tasks")])];
  const team = runtime.teams === undefined ? [] : [teams, tasks];
  const steering = [...steeringPlaces(runtime.discovered.paths), ...runtime.optionFiles];
  const real = new Map(await findRealPaths([...working, ...outputs, ...team, ...steering]));
  return {
    workingDirectories: withReal(working, real),
    steering: withReal(steering, real),
    outputRules: outputs.map((folder) => folderRule("Read", { folder, real, from: folder })),
    teamRules: team.flatMap((folder) =>
      ["Read", "Edit"].map((tool) => ({
        ...folderRule(tool, { folder, real, from: "agent teams" }),
        reason: teamReason,
      })),
    ),
  };
}

/** Where this product keeps settings, agents, sessions and what people have accepted. */
function steeringPlaces(paths: Paths): readonly string[] {
  const { configDirectory, stateFile, transcripts, managedDirectory, settings } = paths;
  const { agents, skills, commands, plugins, projects, teams, tasks } = paths;
  // Work in that folder itself lies beside these.
  const inUse = isInside(paths.cwd, [configDirectory]);
  const own = inUse
    ? [settings.user, agents.user, skills.user, commands.user, plugins.root, projects, teams, tasks]
    : [configDirectory];
  return [...own, stateFile, transcripts, managedDirectory];
}

/** An agent that could write team files could send messages as others. */
const teamReason =
  "files of agent teams may be changed only by team tools such as SendMessage and TaskUpdate";

/** A rule for everything in a folder. For its outputs: agents read what results point them to, and nothing beside that. */
function folderRule(
  tool: string,
  {
    folder,
    real,
    from,
  }: { readonly folder: string; readonly real: ReadonlyMap<string, string>; readonly from: string },
): PolicyRule {
  const other = real.get(folder) ?? folder;
  return {
    rule: { tool, canonicalTool: tool, specifier: { type: "path", anchor: "settings", pattern: "**" } },
    anchor: folder,
    ...(other === folder ? {} : { otherAnchors: [other] }),
    from,
  };
}

export type SessionRules = ReturnType<typeof sessionRules>;

/** The same for a session of a runtime, whose own deny rules hold for all of them. */
export function rulesOf(
  { discovered, disallowedTools }: Pick<RuntimeContext, "discovered" | "disallowedTools">,
  options: RuleFlags,
): SessionRules {
  const { paths, settings } = discovered;
  const denied = [...disallowedTools, ...(options.disallowedTools ?? [])];
  return sessionRules(settings, { ...options, disallowedTools: denied }, paths.cwd);
}

function fromSettings({ rule, source }: SourcedRule): PolicyRule {
  return { rule, anchor: source.anchor, from: source.file };
}

function fromFlags(list: RuleList, texts: readonly string[] = [], directory: string): PolicyRule[] {
  return texts.flatMap(splitEntries).map((text) => {
    const reading = parseRule(text, { list });
    if (reading.type === "rule") return { rule: reading.rule, anchor: directory };
    const option = list === "allow" ? "allowedTools" : "disallowedTools";
    throw new RetinueError(
      "invalid-rule",
      `${option} contains a rule that cannot be used: ${reading.reason}.`,
      {
        advice: reading.advice,
      },
    );
  });
}

/** With restrictions that could not be read, nothing may run unattended: something that should be closed is open. */
export function refuseBrokenRestrictions({
  settings,
  incomplete,
  incompleteScopes,
  diagnostics,
}: LoadedSettings): void {
  const [broken] = settings.brokenRestrictions;
  if (!incomplete && broken === undefined) return;
  const diagnostic = diagnostics.find(({ severity }) => severity === "error");
  const what = diagnostic?.message ?? broken?.text ?? "a rule is broken.";
  if (incompleteScopes.includes("flags")) {
    throw new RetinueError("invalid-settings", `The settings given to this run cannot be used: ${what}`, {
      advice: diagnostic?.advice,
    });
  }
  throw new RetinueError(
    "broken-settings",
    `${placeOf(diagnostic)}Settings could not be read completely, so it is unknown what they deny: ${what}`,
    {
      advice: [diagnostic?.advice, "Run `retinue doctor` and fix the file; nothing was started."]
        .filter((text) => text !== undefined)
        .join(" "),
    },
  );
}

function placeOf(diagnostic: Diagnostic | undefined): string {
  return diagnostic?.file === undefined ? "" : `${placeText(diagnostic)}: `;
}

/** The project and the folders added to it. */
export async function findWorkingDirectories(runtime: WorkingPlaces): Promise<readonly string[]> {
  const folders = workingFolders(runtime);
  return withReal(folders, new Map(await findRealPaths(folders)));
}

type WorkingPlaces = Pick<FolderContext, "discovered" | "additionalDirectories">;

function workingFolders(runtime: WorkingPlaces): readonly string[] {
  const { paths, settings } = runtime.discovered;
  const fromSettings = settings.settings.permissions.additionalDirectories.map(({ directory, source }) =>
    directory === "~" || directory.startsWith("~/")
      ? join(paths.home, directory.slice(1))
      : resolve(source.anchor, directory),
  );
  return [paths.cwd, ...runtime.additionalDirectories, ...fromSettings].filter(isAbsolute);
}

function withReal(folders: readonly string[], real: ReadonlyMap<string, string>): readonly string[] {
  return [...new Set([...folders, ...folders.map((folder) => real.get(folder) ?? folder)])];
}

/** Whether rules of a session let a file be loaded into a prompt; `more` are deny rules of the agent it is loaded for. */
export function mayLoadIn(
  { discovered, platform }: Pick<FolderContext, "discovered" | "platform">,
  { deny, ask }: SessionRules,
  more: readonly PolicyRule[] = [],
): MayLoad | undefined {
  return createMayLoad({ deny: [...deny, ...more], ask }, { ...discovered.paths, platform });
}

/** The same by the rules of settings alone, where no session is started. */
export function mayLoadHere(
  { settings, paths }: Pick<DiscoveredAgents, "settings" | "paths">,
  platform: string,
): MayLoad | undefined {
  return createMayLoad(sessionRules(settings, {}, paths.cwd), { ...paths, platform });
}

interface PolicySource {
  readonly discovered: Pick<DiscoveredAgents, "paths" | "settings">;
  readonly trusted: boolean;
  readonly platform: string;
}

/** The rights and the mode of settings and options: the same for a run, a plan and an explanation. */
export function policyFacts(
  { discovered: { paths, settings }, trusted, platform }: PolicySource,
  rules: SessionRules,
): Omit<PolicyFacts, "workingDirectories"> & Pick<ModeRequests, "settingsMode" | "bypassForbidden"> {
  const { permissions, sources, plain } = settings.settings;
  const sandbox = plain.sandbox === undefined ? undefined : sandboxRights(plain.sandbox);
  const mode = permissions.defaultMode;
  return {
    rules,
    settingsMode:
      mode === undefined
        ? undefined
        : { mode, from: sources.get("permissions.defaultMode")?.file ?? "settings" },
    bypassForbidden: permissions.switches.disableBypassPermissionsMode === "disable",
    switches: permissions.switches,
    directory: paths.cwd,
    home: paths.home,
    platform,
    steering: steeringPlaces(paths),
    sandbox,
    trusted,
  };
}

/** Where settings have `failIfUnavailable`, a session without its sandbox does not begin. */
export async function requireSandbox({
  sandbox,
  discovered,
}: Pick<RuntimeContext, "sandbox" | "discovered">): Promise<void> {
  const settings = readSandboxSettings(discovered.settings.settings.plain.sandbox);
  if (!settings.enabled || !settings.endsStart) return;
  const start = await sandbox.start(settings);
  if (start.type === "ready") return;
  throw new RetinueError(
    "sandbox-unavailable",
    `Settings require a sandbox for commands (\`sandbox.failIfUnavailable\`), and there is none: ${start.why}.`,
    { advice: start.advice },
  );
}

/** Where the folder is not accepted, it matters whether what runs without a yes can be isolated. */
export async function findWalled({
  trusted,
  wall,
  discovered,
}: Pick<RuntimeContext, "trusted" | "wall"> & Pick<PolicySource, "discovered">): Promise<{
  readonly walled?: true;
}> {
  const { isolatesReadOnlyCommands } = readSandboxSettings(discovered.settings.settings.plain.sandbox);
  if (trusted || !isolatesReadOnlyCommands) return {};
  return (await wall.start()).type === "ready" ? { walled: true } : {};
}

/** What opening a session found out for its plan. */
type FactsFound = Pick<
  MainFacts,
  | "definition"
  | "sessionId"
  | "model"
  | "chosenModel"
  | "canSearch"
  | "available"
  | "servers"
  | "serverInstructions"
  | "system"
  | "memory"
  | "skills"
  | "workingDirectories"
  | "steering"
  | "walled"
  | "notes"
>;

/** The plan of the main agent, or the reason why there is none, as a error. */
export function decidePlan(
  runtime: RuntimeContext,
  options: SessionSetup,
  found: FactsFound & {
    readonly rules: SessionRules;
    readonly outputRules: readonly PolicyRule[];
    readonly teamRules: readonly PolicyRule[];
    readonly limits: LimitFacts;
  },
): AgentPlan {
  const rights = policyFacts(runtime, found.rules);
  const { permissionMode: mode, skipPermissions, tools, maxTurns, maxBudgetUsd, effort } = options;
  const planned = planAgent(
    {
      origin: "program",
      mode,
      skipPermissions,
      tools,
      maxTurns,
      maxBudgetUsd,
      effort,
    },
    {
      ...rights,
      ...found,
      agentId: "main",
      verify: runtime.discovered.settings.settings.plain.verify,
      ...defaultEffort(runtime),
      rules: { ...rights.rules, deny: [...rights.rules.deny, ...found.teamRules] },
      notes: [...(found.notes ?? []), ...ruleNotes(rights.rules)],
    },
  );
  if (planned.type === "planned") return planned.plan;
  const { reason, advice, code = "plan-refused" } = planned;
  throw new RetinueError(code, reason, advice === undefined ? {} : { advice });
}

/** How hard agents think by the settings, where nothing else says so. */
export function defaultEffort({ discovered }: Pick<FolderContext, "discovered">): Pick<MainFacts, "effort"> {
  const { plain, sources } = discovered.settings.settings;
  if (plain.effortLevel === undefined) return {};
  return { effort: { value: plain.effortLevel, from: sources.get("effortLevel")?.file ?? "settings" } };
}

/** When a silent agent in the background is stopped, unless the environment sets another time. */
const defaultStallMs = 600_000;

/** Everything about limits that planning asks for. */
export function limitFacts(runtime: RuntimeContext, options: Pick<SessionSetup, "limits">): LimitFacts {
  const { settings } = runtime.discovered.settings;
  const { agentStallTimeoutMs, maxSpawnDepth } = runtime.variables;
  const limits: LimitSettings = readLimitSettings(settings.plain.limits);
  return {
    settings: limits,
    settingsFrom: (name) => settings.sources.get(name)?.file,
    session: options.limits,
    ...(maxSpawnDepth === undefined
      ? {}
      : { depth: { value: maxSpawnDepth, from: "CLAUDE_CODE_MAX_SUBAGENT_SPAWN_DEPTH" } }),
    background:
      agentStallTimeoutMs === undefined
        ? { stopMs: defaultStallMs, from: "the default" }
        : { stopMs: agentStallTimeoutMs, from: "CLAUDE_ASYNC_AGENT_STALL_TIMEOUT_MS" },
  };
}
