import { matchesPattern } from "@retinue/base/foundation/match-pattern.ts";
import { canonicalToolName, type ToolFacts, toolTable } from "@retinue/base/foundation/tool-table.ts";
import { type KnownCall, onlyReads } from "./call-facts.ts";
import {
  isInside,
  type PermissionPolicy,
  type PolicyRule,
  type ToolScope,
  type ToolScopes,
} from "./permission-policy.ts";
import { grantsUnit } from "./rules/grants-unit.ts";
import { matchesCall, type RuleUse } from "./rules/matches-call.ts";
import { parseRule } from "./rules/parse-rule.ts";

/**
 * Why a call is outside what the agent's definition grants, or excluded by it or by one above, or undefined. The tools of
 * an agent above say what that agent uses; they do not limit the agents it starts.
 */
export function refuseByScopes(request: KnownCall, policy: PermissionPolicy): string | undefined {
  const { toolScopes = [] } = policy;
  const own = toolScopes.at(-1);
  for (const above of toolScopes.slice(0, -1)) {
    const refusal = refuseExcluded(request, above, policy);
    if (refusal !== undefined) return refusal;
  }
  return own === undefined ? undefined : refuseByScope(request, own, policy);
}

/** Whether a call reads or edits nothing outside a directory. */
export function staysIn(request: KnownCall, directory: string): boolean {
  const { paths } = request.facts;
  if (paths.length === 0 || (request.effect !== "read" && request.effect !== "edit")) return false;
  return paths.every(
    ({ forms, unknown, hasOtherNames }) =>
      unknown === undefined && hasOtherNames !== true && forms.every((form) => isInside(form, [directory])),
  );
}

function refuseByScope(request: KnownCall, scopes: ToolScopes, policy: PermissionPolicy): string | undefined {
  const scope = scopes.tools.find(({ name }) => name === request.tool);
  if (scope === undefined) return "it is not among the tools of this agent";
  const isMemory = scopes.memoryDirectory !== undefined && staysIn(request, scopes.memoryDirectory);
  if (scope.confinedTo === "memory" && !isMemory) {
    return scopes.memoryDirectory === undefined
      ? "it works only inside the agent's memory directory, and there is none"
      : `it works only inside the agent's memory directory ${scopes.memoryDirectory}`;
  }
  const excluded = refuseExcluded(request, scopes, policy) ?? refuseChange(request, scopes);
  if (excluded !== undefined) return excluded;
  if (scope.allowOnly === undefined || (scope.alsoIn === "memory" && isMemory)) return undefined;
  const isCovered = coversAll(scope, request, { anchor: scopes.anchor, policy });
  return isCovered ? undefined : `the agent may only make calls that match ${scope.allowOnly.join(", ")}`;
}

/** Why an agent that promises to change nothing may not make a call. */
function refuseChange({ effect, facts: { shell } }: KnownCall, { onlyReads: isReader }: ToolScopes) {
  if (isReader !== true) return undefined;
  if (effect === "edit") return "this agent only reads";
  return shell === undefined || onlyReads(shell)
    ? undefined
    : "this agent only reads, and that is not known of the command";
}

/** What a definition excludes of one reading or editing tool, it excludes of all of them, and of commands. */
function refuseExcluded(
  request: KnownCall,
  { anchor, tools, deny: rules = [], removes = [] }: ToolScopes,
  policy: PermissionPolicy,
): string | undefined {
  const excluding = [
    ...rules,
    ...(request.facts.shell === undefined ? [] : removedFileTools(removes)),
    ...tools.flatMap(({ name, deny = [] }) => deny.map((text) => `${name}(${text})`)),
  ];
  return excluding.some((text) => excludes(text, request, { anchor, policy }))
    ? "the agent's definition excludes such calls"
    : undefined;
}

/** The tools for files that entries of `disallowedTools` take away whole: commands do not do their work either. */
function removedFileTools(entries: readonly string[]): readonly string[] {
  return fileTools.filter((name) =>
    entries.some((entry) => canonicalToolName(entry.trim()) === name || matchesPattern(entry.trim(), name)),
  );
}

const fileTools = toolTable.flatMap(({ name, grantsUse }: ToolFacts) =>
  grantsUse === undefined ? [] : [name],
);

interface ScopeContext {
  readonly anchor: string;
  readonly policy: PermissionPolicy;
}

function excludes(text: string, request: KnownCall, context: ScopeContext): boolean {
  const reading = parseRule(text, { list: "deny" });
  if (reading.type === "invalid") return text.startsWith(`${request.tool}(`);
  return matches({ rule: reading.rule, anchor: context.anchor }, request, "restrict", context);
}

/** One specifier must cover the call; for a shell call, each of its commands may have another. */
function coversAll({ name, allowOnly = [] }: ToolScope, request: KnownCall, context: ScopeContext): boolean {
  const rules = allowOnly.flatMap((text): PolicyRule[] => {
    const reading = parseRule(`${name}(${text})`, { list: "allow" });
    return reading.type === "rule" ? [{ rule: reading.rule, anchor: context.anchor }] : [];
  });
  if (rules.some((rule) => matches(rule, request, "grant", context))) return true;
  const analysis = request.facts.shell?.analysis;
  if (analysis === undefined || analysis.opaque !== undefined || analysis.units.length === 0) return false;
  return analysis.units.every((unit) =>
    rules.some(({ rule }) => rule.specifier.type === "command" && grantsUnit(rule.specifier, unit)),
  );
}

function matches(rule: PolicyRule, request: KnownCall, use: RuleUse, { policy }: ScopeContext): boolean {
  return matchesCall(rule, request, { use, policy });
}
