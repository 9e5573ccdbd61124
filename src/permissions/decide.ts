import { matchesPattern } from "../foundation/match-pattern.ts";
import { matchesCall, type RuleUse } from "./match-rule.ts";
import { formatRule, type PermissionRule } from "./parse-rule.ts";
import type { PermissionMode } from "./permission-mode.ts";

/** A rule with the directory that its `/path` form starts at. */
export interface PolicyRule {
  readonly rule: PermissionRule;
  readonly anchor: string;
  /** The file it stands in, for explanations. */
  readonly from?: string;
}

/** What a run may do, as plain data. */
export interface PermissionPolicy {
  readonly mode: PermissionMode;
  readonly allow: readonly PolicyRule[];
  readonly ask: readonly PolicyRule[];
  readonly deny: readonly PolicyRule[];
  readonly workingDirectories: readonly string[];
  readonly home: string;
}

/** One call, described without the tool itself. */
export interface PermissionRequest {
  readonly tool: string;
  readonly effect: string;
  /** Real paths the call touches. */
  readonly paths: readonly string[];
  readonly command?: string;
  readonly host?: string;
  readonly input: Readonly<Record<string, unknown>>;
}

export interface Decision {
  readonly type: "allow" | "deny" | "ask";
  readonly because: string;
}

/**
 * Deny rules, ask rules, the mode, allow rules, then asking: deny always wins. Shell commands are compared as text
 * only, so a command that is more than one plain command is never allowed by a scoped rule.
 */
export function decide(request: PermissionRequest, policy: PermissionPolicy): Decision {
  const matched = (rules: readonly PolicyRule[], use: RuleUse): PolicyRule | undefined =>
    rules.find((candidate) => matchesCall(candidate, request, { use, policy }));
  const denied = matched(policy.deny, "restrict");
  if (denied !== undefined) return { type: "deny", because: `the rule ${describe(denied)} denies it` };
  const asked = matched(policy.ask, "restrict");
  if (asked !== undefined) return { type: "ask", because: `the rule ${describe(asked)} asks for it` };
  if (policy.mode === "bypassPermissions") return { type: "allow", because: "permissions are bypassed" };
  if (request.effect === "coordinate" || request.effect === "interact" || request.effect === "spawn") {
    return { type: "allow", because: "it changes nothing outside this run" };
  }
  if (request.effect === "read" && request.paths.every((path) => isInside(path, policy.workingDirectories))) {
    return { type: "allow", because: "it reads inside the working directories" };
  }
  if (policy.mode === "plan") return { type: "deny", because: "plan mode only reads" };
  if (
    policy.mode === "acceptEdits" &&
    request.effect === "edit" &&
    request.paths.length > 0 &&
    request.paths.every((path) => isInside(path, policy.workingDirectories))
  ) {
    return { type: "allow", because: "edits inside the working directories are accepted" };
  }
  const allowed = matched(policy.allow, "grant");
  if (allowed !== undefined) return { type: "allow", because: `the rule ${describe(allowed)} allows it` };
  return { type: policy.mode === "dontAsk" ? "deny" : "ask", because: "no rule allows it" };
}

function describe({ rule, from }: PolicyRule): string {
  return from === undefined ? formatRule(rule) : `${formatRule(rule)} in ${from}`;
}

export function isInside(path: string, directories: readonly string[]): boolean {
  return directories.some(
    (directory) =>
      path === directory || path.startsWith(directory.endsWith("/") ? directory : `${directory}/`),
  );
}

/** Whether a deny rule takes a whole tool away, so that the model need not see it. */
export function removesTool(tool: string, policy: Pick<PermissionPolicy, "deny">): boolean {
  return policy.deny.some(({ rule }) => {
    if (rule.specifier.type === "toolGlob") return matchesPattern(rule.tool, tool);
    return rule.canonicalTool === tool && rule.specifier.type === "whole";
  });
}
