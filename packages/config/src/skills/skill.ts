import type { PolicyRule } from "@retinue/gate/permission-policy.ts";
import { parseRule, type RuleList, warnOfRule } from "@retinue/gate/rules/parse-rule.ts";
import { mayWiden } from "../agents/agent-source.ts";
import type { HookRule } from "../hooks/read-hooks.ts";
import { builtinTools } from "../tools/builtin-tools.ts";
import { hasCommands } from "./skill-pieces.ts";

export type SkillScope = "managed" | "user" | "project" | "plugin";

/** Where a skill came from. A command file of `commands/` is a skill by another name. */
export interface SkillSource {
  readonly scope: SkillScope;
  readonly kind: "skill" | "command";
  /** The SKILL.md, or the command's own file. */
  readonly file: string;
  /** The folder that `${CLAUDE_SKILL_DIR}` means. */
  readonly directory: string;
  readonly plugin?: SkillPlugin;
  /** Its folder is not trusted by itself, whatever the working folder is. */
  readonly untrusted?: true;
}

export interface SkillPlugin {
  readonly name: string;
  readonly root: string;
  readonly marketplace?: string;
}

/** One skill: instructions that an agent or a person calls up when they are needed. Plain data. */
export interface Skill {
  /** What it is called by: the folder's name, `plugin:name` for those of plugins. */
  readonly name: string;
  /** The name written in the file, where it is another. */
  readonly displayName?: string;
  readonly description: string;
  readonly whenToUse?: string;
  readonly argumentHint?: string;
  /** Names for `$name`, in the order of the words given. */
  readonly arguments?: readonly string[];
  /** Only a person may call it, and no agent preloads it. */
  readonly disableModelInvocation: boolean;
  /** False: only a model may call it. */
  readonly userInvocable: boolean;
  /** Rules that allow calls while the turn lasts that called it; not a restriction. */
  readonly allowedTools?: readonly string[];
  /** Rules that forbid calls for as long. */
  readonly disallowedTools?: readonly string[];
  readonly model?: string;
  readonly effort?: string | number;
  /** It runs in a child agent, with its text as the task. */
  readonly context?: "fork";
  /** The type of that child. */
  readonly agent?: string;
  readonly background?: boolean;
  readonly hooks?: readonly HookRule[];
  /** Patterns of files it is meant for; it is listed only where one of them was touched. */
  readonly paths?: readonly string[];
  readonly shell?: "bash" | "powershell";
  /** The text below the frontmatter. */
  readonly body: string;
  readonly source: SkillSource;
}

/** What a skill does besides giving its text, in a few words each. */
export function describePowers({
  allowedTools = [],
  hooks = [],
  body,
  context,
  agent,
}: Skill): readonly string[] {
  return [
    ...(context === "fork" ? [`runs in ${agent ?? "general-purpose"}`] : []),
    ...(allowedTools.length === 0 ? [] : [`allows ${allowedTools.join(", ")}`]),
    ...(hasCommands(body) ? ["runs commands"] : []),
    ...(hooks.length === 0 ? [] : [hooks.length === 1 ? "1 hook" : `${hooks.length} hooks`]),
  ];
}

/** What a skill changes about the rights of the one that calls it, for as long as the turn lasts. */
export interface SkillGrants {
  readonly allow: readonly PolicyRule[];
  readonly deny: readonly PolicyRule[];
  /** What was written and does not count, each as one sentence. */
  readonly notes: readonly string[];
}

const interactiveTools: ReadonlySet<string> = new Set(
  builtinTools.filter(({ effect }) => effect === "interact").map(({ name }) => name),
);

/** Reads `allowed-tools` and `disallowed-tools` as rules. Files of a folder that is not trusted only take rights away. */
export function skillGrants(
  skill: Skill,
  { trusted, directory }: { readonly trusted: boolean; readonly directory: string },
): SkillGrants {
  const deny = readRules(skill, "deny", directory);
  if (!mayGrant(skill, trusted)) {
    const notes =
      skill.allowedTools === undefined
        ? deny.notes
        : [...deny.notes, `The folder is not trusted, so \`allowed-tools\` of ${skill.name} has no effect.`];
    return { allow: [], deny: deny.rules, notes };
  }
  const allow = readRules(skill, "allow", directory);
  return { allow: allow.rules, deny: deny.rules, notes: [...allow.notes, ...deny.notes] };
}

/** Whether the file that a skill is in may run commands, register hooks and grant calls. */
export function mayGrant({ source }: Pick<Skill, "source">, trusted: boolean): boolean {
  return mayWiden(source, trusted);
}

function readRules(
  skill: Skill,
  list: Extract<RuleList, "allow" | "deny">,
  anchor: string,
): { readonly rules: readonly PolicyRule[]; readonly notes: readonly string[] } {
  const key = list === "allow" ? "allowed-tools" : "disallowed-tools";
  const rules: PolicyRule[] = [];
  const notes: string[] = [];
  for (const text of (list === "allow" ? skill.allowedTools : skill.disallowedTools) ?? []) {
    const reading = parseRule(text, { list });
    if (reading.type === "invalid")
      notes.push(`In \`${key}\` of ${skill.name} a rule was ignored: ${reading.reason}.`);
    else if (list === "allow" && interactiveTools.has(reading.rule.canonicalTool))
      notes.push(
        `\`${key}\` of ${skill.name} cannot allow ${reading.rule.canonicalTool}: a user has to answer it.`,
      );
    else {
      const warning = warnOfRule(reading.rule);
      if (warning !== undefined)
        notes.push(`In \`${key}\` of ${skill.name}: ${warning.message} ${warning.advice}`);
      rules.push({ rule: reading.rule, anchor, from: `the skill ${skill.name}` });
    }
  }
  return { rules, notes };
}
