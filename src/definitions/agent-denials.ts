import { matchesPattern } from "../foundation/match-pattern.ts";
import { formatRule, type PermissionRule } from "../permissions/parse-rule.ts";
import type { AgentDenial } from "./registry.ts";

/** The agents that deny rules speak of: `Task(name)`, `Agent(subagent_type:name)`, the whole tool, or all tools. */
export function denialsOf(rules: readonly PermissionRule[]): AgentDenial[] {
  return rules.flatMap((rule) => patternsOf(rule).map((pattern) => ({ pattern, rule: formatRule(rule) })));
}

/** Denying the tool denies every agent; a rule on a field such as `model:opus` is decided per call, not here. */
function patternsOf({ tool, canonicalTool, specifier }: PermissionRule): readonly string[] {
  if (specifier.type === "toolGlob")
    return ["agent", "task"].some((name) => matchesPattern(tool.toLowerCase(), name)) ? ["*"] : [];
  if (canonicalTool !== "Agent") return [];
  if (specifier.type === "agent") return specifier.names;
  if (specifier.type === "parameter" && specifier.name === "subagent_type") return [specifier.value];
  return specifier.type === "whole" || specifier.type === "text" ? ["*"] : [];
}
