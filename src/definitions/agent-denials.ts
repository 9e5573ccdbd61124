import { matchesPattern } from "../foundation/match-pattern.ts";
import { formatRule, type PermissionRule } from "../permissions/parse-rule.ts";
import type { AgentDenial } from "./registry.ts";

/** The agents that deny rules speak of: `Task(name)`, `Agent(name)`, the whole tool, or all tools. */
export function denialsOf(rules: readonly PermissionRule[]): AgentDenial[] {
  return rules.flatMap((rule) => patternsOf(rule).map((pattern) => ({ pattern, rule: formatRule(rule) })));
}

/** Denying the tool denies every agent; a rule on a field such as `model:opus` is decided per call, not here. */
function patternsOf({ tool, canonicalTool, specifier }: PermissionRule): readonly string[] {
  if (specifier.type === "toolGlob")
    return ["Agent", "Task"].some((name) => matchesPattern(tool, name)) ? ["*"] : [];
  if (canonicalTool !== "Agent") return [];
  if (specifier.type === "agent") return specifier.names;
  return specifier.type === "whole" || specifier.type === "text" ? ["*"] : [];
}
