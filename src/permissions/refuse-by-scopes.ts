import { factsOf, type PermissionRequest } from "./call-facts.ts";
import {
  isInside,
  type PermissionPolicy,
  type PolicyRule,
  type ToolScope,
  type ToolScopes,
} from "./permission-policy.ts";
import { protectionOf } from "./protection-of.ts";
import { grantsUnit } from "./rules/grants-unit.ts";
import { matchesCall, type RuleUse } from "./rules/matches-call.ts";
import { parseRule } from "./rules/parse-rule.ts";

/**
 * Why a call is outside what the agent's definition grants, or excluded by it or by one above, or undefined. The tools of
 * an agent above say what that agent uses; they do not limit the agents it starts.
 */
export function refuseByScopes(request: PermissionRequest, policy: PermissionPolicy): string | undefined {
  const { toolScopes = [] } = policy;
  const own = toolScopes.at(-1);
  for (const above of toolScopes.slice(0, -1)) {
    const refusal = refuseExcluded(request, above, policy);
    if (refusal !== undefined) return refusal;
  }
  return own === undefined ? undefined : refuseByScope(request, own, policy);
}

/** Whether a call stays in the agent's own memory directory, where it needs no rule. */
export function isInMemory(request: PermissionRequest, policy: PermissionPolicy): boolean {
  const directory = policy.toolScopes?.at(-1)?.memoryDirectory;
  if (directory === undefined || !staysIn(request, directory)) return false;
  // Notes are no `.envrc` and no `.git`: what other programs obey is asked for here as elsewhere.
  return (
    request.effect === "read" ||
    factsOf(request).paths.every(({ forms }) =>
      forms.every((form) => !isSteering(form.slice(directory.length), policy)),
    )
  );
}

function isSteering(path: string, { platform }: PermissionPolicy): boolean {
  const places = { workingDirectories: [], ...(platform === undefined ? {} : { platform }) };
  return protectionOf(path, places) !== undefined;
}

function staysIn(request: PermissionRequest, directory: string): boolean {
  const { paths } = factsOf(request);
  if (paths.length === 0 || (request.effect !== "read" && request.effect !== "edit")) return false;
  return paths.every(
    ({ forms, unknown, hasOtherNames }) =>
      unknown === undefined && hasOtherNames !== true && forms.every((form) => isInside(form, [directory])),
  );
}

function refuseByScope(
  request: PermissionRequest,
  scopes: ToolScopes,
  policy: PermissionPolicy,
): string | undefined {
  const scope = scopes.tools.find(({ name }) => name === request.tool);
  if (scope === undefined) return "it is not among the tools of this agent";
  const isMemory = scopes.memoryDirectory !== undefined && staysIn(request, scopes.memoryDirectory);
  if (scope.confinedTo === "memory" && !isMemory) {
    return scopes.memoryDirectory === undefined
      ? "it works only inside the agent's memory directory, and there is none"
      : `it works only inside the agent's memory directory ${scopes.memoryDirectory}`;
  }
  const excluded = refuseExcluded(request, scopes, policy);
  if (excluded !== undefined) return excluded;
  if (scope.allowOnly === undefined || (scope.alsoIn === "memory" && isMemory)) return undefined;
  const isCovered = coversAll(scope, request, { anchor: scopes.anchor, policy });
  return isCovered ? undefined : `the agent may only make calls that match ${scope.allowOnly.join(", ")}`;
}

/** What a definition excludes of one reading or editing tool, it excludes of all of them. */
function refuseExcluded(
  request: PermissionRequest,
  { anchor, tools, deny: rules = [] }: ToolScopes,
  policy: PermissionPolicy,
): string | undefined {
  const excluding = [
    ...rules,
    ...tools.flatMap(({ name, deny = [] }) => deny.map((text) => `${name}(${text})`)),
  ];
  return excluding.some((text) => excludes(text, request, { anchor, policy }))
    ? "the agent's definition excludes such calls"
    : undefined;
}

interface ScopeContext {
  readonly anchor: string;
  readonly policy: PermissionPolicy;
}

function excludes(text: string, request: PermissionRequest, context: ScopeContext): boolean {
  const reading = parseRule(text, { list: "deny" });
  if (reading.type === "invalid") return text.startsWith(`${request.tool}(`);
  return matches({ rule: reading.rule, anchor: context.anchor }, request, "restrict", context);
}

/** One specifier must cover the call; for a shell call, each of its commands may have another. */
function coversAll(
  { name, allowOnly = [] }: ToolScope,
  request: PermissionRequest,
  context: ScopeContext,
): boolean {
  const rules = allowOnly.flatMap((text): PolicyRule[] => {
    const reading = parseRule(`${name}(${text})`, { list: "allow" });
    return reading.type === "rule" ? [{ rule: reading.rule, anchor: context.anchor }] : [];
  });
  if (rules.some((rule) => matches(rule, request, "grant", context))) return true;
  const analysis = factsOf(request).shell?.analysis;
  if (analysis === undefined || analysis.opaque !== undefined || analysis.units.length === 0) return false;
  return analysis.units.every((unit) =>
    rules.some(({ rule }) => rule.specifier.type === "command" && grantsUnit(rule.specifier, unit)),
  );
}

function matches(
  rule: PolicyRule,
  request: PermissionRequest,
  use: RuleUse,
  { policy }: ScopeContext,
): boolean {
  return matchesCall(rule, request, { use, policy });
}
