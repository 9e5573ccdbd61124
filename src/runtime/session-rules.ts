import { join } from "node:path";
import { type Diagnostic, placeText } from "../foundation/diagnostic.ts";
import { RetinueError } from "../foundation/retinue-error.ts";
import type { SessionFiles } from "../journal/session-files.ts";
import type { PolicyRule } from "../permissions/decide.ts";
import { parseRule, type RuleList } from "../permissions/rules/parse-rule.ts";
import { warnOfRule } from "../permissions/rules/rule-warning.ts";
import type { LoadedSettings } from "../settings/load-settings.ts";
import type { Paths } from "../settings/paths.ts";
import type { SourcedRule } from "../settings/settings-layer.ts";
import { findRealPath } from "../tools/find-real-path.ts";
import { splitEntries } from "../tools/grants/tool-entry.ts";
import type { RuntimeContext } from "./runtime-context.ts";

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
export function ruleNotes({
  allow,
  deny,
}: Readonly<Record<"allow" | "deny", readonly PolicyRule[]>>): readonly string[] {
  return [...allow, ...deny].flatMap(({ rule, from }) => {
    const warning = from === undefined ? warnOfRule(rule) : undefined;
    return warning === undefined ? [] : [`${warning.message} ${warning.advice}`];
  });
}

/** Lets agents read what results point them to: the outputs of this session's tools and agents, and nothing beside them. */
export async function findOutputRules({
  directory,
  toolResults,
}: Pick<SessionFiles, "directory" | "toolResults">): Promise<readonly PolicyRule[]> {
  return Promise.all(
    [toolResults, join(directory, "tasks")].map(async (folder): Promise<PolicyRule> => {
      const real = await findRealPath(folder);
      return {
        rule: {
          tool: "Read",
          canonicalTool: "Read",
          specifier: { type: "path", anchor: "settings", pattern: "**" },
        },
        anchor: folder,
        ...(real === folder ? {} : { otherAnchors: [real] }),
        from: folder,
      };
    }),
  );
}

/** Team files are for the team's tools alone: whoever could write them could speak for others. */
export async function findTeamRules({
  teams,
  tasks,
}: Pick<Paths, "teams" | "tasks">): Promise<readonly PolicyRule[]> {
  const folders = await Promise.all(
    [teams, tasks].map(async (folder) => ({ folder, real: await findRealPath(folder) })),
  );
  return folders.flatMap(({ folder, real }) =>
    ["Read", "Edit"].map(
      (tool): PolicyRule => ({
        rule: { tool, canonicalTool: tool, specifier: { type: "path", anchor: "settings", pattern: "**" } },
        anchor: folder,
        ...(real === folder ? {} : { otherAnchors: [real] }),
        from: "agent teams",
        reason:
          "the files of agent teams are only for the tools of the team, such as SendMessage and TaskUpdate",
      }),
    ),
  );
}

/** What is forbidden whatever the plan says. */
export function denyRules(
  { discovered, disallowedTools }: Pick<RuntimeContext, "discovered" | "disallowedTools">,
  options: RuleFlags,
) {
  const { paths, settings } = discovered;
  const flags = { disallowedTools: [...disallowedTools, ...(options.disallowedTools ?? [])] };
  return sessionRules(settings, flags, paths.cwd).deny;
}

function fromSettings({ rule, source }: SourcedRule): PolicyRule {
  return { rule, anchor: source.anchor, ...(source.file === undefined ? {} : { from: source.file }) };
}

function fromFlags(list: RuleList, texts: readonly string[] = [], directory: string): PolicyRule[] {
  return texts.flatMap(splitEntries).map((text) => {
    const reading = parseRule(text, { list });
    if (reading.type === "rule") return { rule: reading.rule, anchor: directory };
    const option = list === "allow" ? "allowedTools" : "disallowedTools";
    throw new RetinueError("invalid-rule", `${option} holds a rule that cannot be used: ${reading.reason}.`, {
      advice: reading.advice,
    });
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
      ...(diagnostic?.advice === undefined ? {} : { advice: diagnostic.advice }),
    });
  }
  throw new RetinueError(
    "broken-settings",
    `${placeOf(diagnostic)}Settings cannot be read completely, so it is not known what is forbidden: ${what}`,
    { advice: "Run `retinue doctor` and fix the file; nothing was started." },
  );
}

function placeOf(diagnostic: Diagnostic | undefined): string {
  return diagnostic?.file === undefined ? "" : `${placeText(diagnostic)}: `;
}
