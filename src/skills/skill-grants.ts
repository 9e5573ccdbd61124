import type { PolicyRule } from "../permissions/permission-policy.ts";
import { parseRule, type RuleList } from "../permissions/rules/parse-rule.ts";
import { warnOfRule } from "../permissions/rules/rule-warning.ts";
import { builtinTools } from "../tools/grants/builtin-tools.ts";
import type { Skill } from "./skill.ts";

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
        : [...deny.notes, `The folder is not trusted, so \`allowed-tools\` of ${skill.name} does not count.`];
    return { allow: [], deny: deny.rules, notes };
  }
  const allow = readRules(skill, "allow", directory);
  return { allow: allow.rules, deny: deny.rules, notes: [...allow.notes, ...deny.notes] };
}

/** Whether the file that a skill is in may run commands, register hooks and grant calls. */
export function mayGrant({ source }: Pick<Skill, "source">, trusted: boolean): boolean {
  return source.scope !== "project" || trusted;
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
      notes.push(`In \`${key}\` of ${skill.name} a rule does not count: ${reading.reason}.`);
    else if (list === "allow" && interactiveTools.has(reading.rule.canonicalTool))
      notes.push(
        `\`${key}\` of ${skill.name} cannot allow ${reading.rule.canonicalTool}: a person answers it.`,
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
