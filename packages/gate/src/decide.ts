import {
  isMcpTool,
  type KnownCall,
  type McpIdentity,
  onlyReads,
  type PathFact,
  type PermissionRequest,
  readMcpName,
  touchedPaths,
  withFacts,
} from "./call-facts.ts";
import { grantShell } from "./grant-shell.ts";
import { type CallGuards, guardCall } from "./guard-call.ts";
import {
  type AllowedBy,
  isInside,
  isUnavailableInBackground,
  type PermissionPolicy,
  type PolicyRule,
} from "./permission-policy.ts";
import { matchesText } from "./rules/grants-unit.ts";
import {
  findRestrictions,
  findRule,
  matchesMcpName,
  matchesPath,
  namesTool,
  restrictsTools,
} from "./rules/matches-call.ts";
import { formatRule, parseRule } from "./rules/parse-rule.ts";
import { whyNotAccepted } from "./why-not-accepted.ts";

export type { PermissionRequest } from "./call-facts.ts";
export type { AllowedBy, PermissionPolicy, PolicyRule } from "./permission-policy.ts";

export interface Decision {
  readonly type: "allow" | "deny" | "ask";
  readonly reason: string;
  /** Present when the call is allowed. */
  readonly allowedBy?: AllowedBy;
  /** The rule that decided, if one did. */
  readonly rule?: PolicyRule;
  /** What runs in place of the command that was given: the command as it was judged. */
  readonly run?: JudgedCommand;
  /** It is asked about for these files alone, which steer programs: a yes holds for them as long as the session lasts. */
  readonly steering?: readonly string[];
}

export interface JudgedCommand {
  readonly command: string;
  /** For the result: what the judged form does differently. */
  readonly notes: readonly string[];
}

export interface DecideOptions {
  /** Whether a person can be asked; absent means yes, and the caller asks. */
  readonly attended?: boolean;
  /** Questions wait until they are answered, so that also one in the background is asked. */
  readonly parks?: boolean;
  /** What hooks said about the call: their word lifts no rule and no guard. */
  readonly hooks?: "allow" | "ask" | "deny";
  /**
   * Why something is asked about that is no call by itself, such as several calls that are decided about already: no rule
   * matches it, and only whether a person can be asked counts.
   */
  readonly question?: string | undefined;
}

/**
 * Decides about one call: input and granted tools, deny rules, ask rules, guards, the mode, allow rules, then asking.
 * Deny always wins. Where no person can be asked, asking is refusing.
 */
export function decide(
  request: PermissionRequest,
  policy: PermissionPolicy,
  options: DecideOptions = {},
): Decision {
  const call = withFacts(request);
  // Nothing of this depends on the mode.
  const judging: Judging = {
    call,
    guards: guardCall(call, policy),
    ...findRestrictions(call, policy),
    options,
  };
  for (const mode of policy.outerModes ?? []) {
    const above = denyInsteadOfAsking(decideIn({ ...policy, mode }, judging), { ...policy, mode });
    if (above.type === "deny") return above;
  }
  const judged = withSteering(decideIn(policy, judging), judging, policy);
  const decision = withCommand(denyInsteadOfAsking(judged, policy), call, policy);
  const isAlone = isUnavailableInBackground(policy, "questions") && options.parks !== true;
  if (decision.type !== "ask" || (options.attended !== false && !isAlone)) return decision;
  return { ...decision, type: "deny", reason: `${decision.reason}, and no one can be asked here` };
}

/** Whether a policy allows every call of a tool beforehand, whatever its input: for tools that others run without asking. */
export function allowsTool(tool: string, effect: string, policy: PermissionPolicy): boolean {
  return decide({ tool, effect, paths: [], input: {} }, policy).type === "allow";
}

/** One call with everything that is known of it. */
interface Judging {
  readonly call: KnownCall;
  readonly guards: CallGuards;
  /** The rules that restrict it. */
  readonly denied: PolicyRule | undefined;
  readonly asked: PolicyRule | undefined;
  readonly options: DecideOptions;
}

/** Names the files because of which `acceptEdits` asks, where it would allow the call but for them. */
function withSteering(decision: Decision, judging: Judging, policy: PermissionPolicy): Decision {
  if (decision.type !== "ask" || policy.mode !== "acceptEdits") return decision;
  const files = touchedPaths(judging.call.facts).flatMap((path) => {
    const why = path.use === "read" || !isWithin(path, policy) ? undefined : whyNotAccepted(path, policy);
    return why === undefined ? [] : [{ path, why }];
  });
  const [first] = files;
  if (first === undefined) return decision;
  const steering = [...new Set(files.flatMap(({ path: { forms } }) => forms))];
  const acceptedFiles = [...(policy.acceptedFiles ?? []), ...steering];
  if (decideIn({ ...policy, acceptedFiles }, judging).type !== "allow") return decision;
  return {
    ...decision,
    reason: `accepting edits does not cover ${first.path.forms[0]}: ${first.why}`,
    steering,
  };
}

/** What was judged is what runs; only where nothing restricts commands, there was nothing to judge. */
function withCommand(decision: Decision, { facts }: KnownCall, policy: PermissionPolicy): Decision {
  const analysis = facts.shell?.analysis;
  if (decision.type !== "allow" || analysis?.judged === undefined) return decision;
  const isFree = policy.mode === "bypassPermissions" && policy.deny.length === 0 && policy.ask.length === 0;
  return isFree ? decision : { ...decision, run: { command: analysis.judged, notes: analysis.notes ?? [] } };
}

function denyInsteadOfAsking(
  decision: Decision,
  { mode, deniesInsteadOfAsking }: PermissionPolicy,
): Decision {
  if (decision.type !== "ask") return decision;
  if (mode === "dontAsk")
    return { ...decision, type: "deny", reason: `${decision.reason}, and this mode asks nothing` };
  if (deniesInsteadOfAsking !== true) return decision;
  const reason = `${decision.reason}, and settings deny calls that would need approval (\`denyInsteadOfPrompting\`)`;
  return { ...decision, type: "deny", reason };
}

function decideIn(policy: PermissionPolicy, judging: Judging): Decision {
  const { call, guards, asked, options } = judging;
  if (options.question !== undefined) return { type: "ask", reason: options.question };
  const refusal = refuse(judging, policy);
  if (refusal !== undefined) return refusal;
  const outOfMode = refuseByMode(call, policy);
  if (outOfMode !== undefined) return { type: "deny", reason: outOfMode };
  if (asked !== undefined) return byRule("ask", "asks for it", asked);
  if (options.hooks === "ask") return { type: "ask", reason: "a hook requires approval for it" };
  if (guards.alwaysAsks !== undefined) return { type: "ask", reason: guards.alwaysAsks };
  if (policy.mode === "bypassPermissions") return allow("mode", "permissions are bypassed");
  if (guards.isInMemory) return allow("memory", "it stays in the agent's own memory");
  if (guards.asksDespiteRules !== undefined) return { type: "ask", reason: guards.asksDespiteRules };
  return grant(call, policy, options);
}

function refuse({ call, guards, denied, options }: Judging, policy: PermissionPolicy): Decision | undefined {
  const { attended = true, hooks, parks = false } = options;
  const { invalid, mcp } = call.facts;
  if (invalid !== undefined) return { type: "deny", reason: `the call is not valid: ${invalid}` };
  if (guards.outOfScope !== undefined) return { type: "deny", reason: guards.outOfScope };
  if (isUnavailableInBackground(policy, "mcpTools") && (call.isMcp || mcp !== undefined))
    return { type: "deny", reason: "agents in the background have no MCP tools" };
  if (denied !== undefined) return byRule("deny", "denies it", denied);
  if (guards.answersApprovals !== undefined) return { type: "deny", reason: guards.answersApprovals };
  if (guards.outside !== undefined) return { type: "deny", reason: guards.outside };
  if (hooks === "deny") return { type: "deny", reason: "a hook refuses it" };
  const isAlone = (!attended || isUnavailableInBackground(policy, "questions")) && !parks;
  const isSilent = isAlone || policy.mode === "dontAsk";
  if (call.effect === "interact" && isSilent) return { type: "deny", reason: "no one can answer here" };
  if (call.input["dangerouslyDisableSandbox"] === true && policy.sandbox?.allowUnsandboxed === false)
    return { type: "deny", reason: "settings do not allow commands outside the sandbox" };
  return undefined;
}

/** Planning only reads, delegating only coordinates; no rule changes that, so that none can turn a refusal into a question. */
function refuseByMode(
  { effect, facts: { shell } }: KnownCall,
  { mode }: PermissionPolicy,
): string | undefined {
  if (mode === "delegate") {
    const coordinates = effect === "coordinate" || effect === "interact" || effect === "spawn";
    return coordinates ? undefined : "this mode only coordinates other agents";
  }
  if (mode !== "plan" || effect === "read" || effect === "network") return undefined;
  if (effect === "coordinate" || effect === "interact" || effect === "spawn") return undefined;
  return shell !== undefined && onlyReads(shell) ? undefined : "plan mode only reads";
}

function grant(request: KnownCall, policy: PermissionPolicy, options: DecideOptions): Decision {
  const { shell, paths } = request.facts;
  const byNature = grantByNature(request, policy);
  if (byNature !== undefined) return byNature;
  if (options.hooks === "allow") return allow("hook", "a hook allows it");
  if (shell !== undefined) {
    const shellGrant = grantShell(request, shell, policy);
    if (shellGrant.type === "granted") {
      if (shellGrant.rule !== undefined) return byRule("allow", "allows it", shellGrant.rule);
      return allow(onlyReads(shell) ? shellGrant.by : "mode", shellGrant.reason);
    }
    if (isSandboxed(request, policy)) return allow("sandbox", "it runs inside the sandbox");
    return { type: "ask", reason: shellGrant.reason };
  }
  const allowed = findRule(policy.allow, request, { use: "grant", policy });
  if (allowed !== undefined) return byRule("allow", "allows it", allowed);
  if (paths.length > 0 && paths.every((path) => mayUse(path, request, policy)))
    return allow("rule", "rules and the mode allow each of its paths");
  return { type: "ask", reason: "no allow rule matches" };
}

function grantByNature(request: KnownCall, policy: PermissionPolicy): Decision | undefined {
  const { effect } = request;
  if (effect === "coordinate" || effect === "interact" || effect === "spawn")
    return allow("internal", "it changes nothing outside this run");
  const { paths } = request.facts;
  const isLocal = paths.every((path) => isWithin(path, policy));
  if (request.isMcp)
    return effect === "read" && policy.mode === "plan"
      ? allow("mode", "its server says that it only reads")
      : undefined;
  if (effect === "read" && isLocal) return allow("read-only", "it reads inside the working directories");
  const accepts = policy.mode === "acceptEdits" && effect === "edit" && paths.length > 0;
  return accepts && isLocal && paths.every((path) => whyNotAccepted(path, policy) === undefined)
    ? allow("mode", "edits inside the working directories are accepted")
    : undefined;
}

function allow(allowedBy: AllowedBy, reason: string): Decision {
  return { type: "allow", reason, allowedBy };
}

function mayUse(path: PathFact, { effect }: KnownCall, policy: PermissionPolicy): boolean {
  const isAccepted =
    effect === "edit" && policy.mode === "acceptEdits" && whyNotAccepted(path, policy) === undefined;
  const isOpen = effect === "read" || isAccepted;
  if (isOpen && isWithin(path, policy)) return true;
  return (
    (effect === "read" || effect === "edit") &&
    policy.allow.some((rule) => matchesPath(rule, path, { use: "grant", policy }))
  );
}

function isWithin({ forms, unknown }: PathFact, { workingDirectories }: PermissionPolicy): boolean {
  return unknown === undefined && forms.every((form) => isInside(form, workingDirectories));
}

function isSandboxed({ input, facts }: KnownCall, { sandbox }: PermissionPolicy): boolean {
  if (sandbox?.autoAllow !== true || input["dangerouslyDisableSandbox"] === true) return false;
  const texts = facts.shell?.analysis.units.flatMap(({ restrictTexts }) => restrictTexts) ?? [];
  return !sandbox.excludedCommands.some((pattern) => {
    const reading = parseRule(`Bash(${pattern})`);
    if (reading.type === "invalid" || reading.rule.specifier.type !== "command") return true;
    const { specifier } = reading.rule;
    return texts.some((text) => matchesText(specifier, text));
  });
}

function byRule(type: Decision["type"], what: string, rule: PolicyRule): Decision {
  const reason = rule.reason ?? `the rule ${describeRule(rule)} ${what}`;
  return { type, reason, ...(type === "allow" ? { allowedBy: "rule" } : {}), rule };
}

export function describeRule({ rule, from }: PolicyRule): string {
  return from === undefined ? formatRule(rule) : `${formatRule(rule)} in ${from}`;
}

/** A tool as rules know it; for one of a server the pair counts, where it is known. */
export interface NamedTool {
  readonly name: string;
  readonly mcp?: McpIdentity;
}

/** Whether a deny rule takes a whole tool away, so that the model need not see it. */
export function removesTool({ name, mcp }: NamedTool, policy: Pick<PermissionPolicy, "deny">): boolean {
  const readings = mcp === undefined && isMcpTool(name) ? readMcpName(name) : [mcp].filter(isKnown);
  return policy.deny.some(({ rule }) => {
    const { specifier, tool } = rule;
    if (specifier.type === "toolGlob") return restrictsTools(tool, name);
    if (specifier.type === "mcp")
      return readings.some((identity) => matchesMcpName(specifier, identity, "restrict"));
    return specifier.type === "whole" && namesTool(rule, name, "restrict");
  });
}

/** Whether deny rules take everything of a server away, what it offers for reading too. */
export function removesServer(server: string, policy: Pick<PermissionPolicy, "deny">): boolean {
  return policy.deny.some(({ rule: { specifier, tool } }) => {
    // `mcp__*` matches every tool that the server could have.
    if (specifier.type === "toolGlob") return tool.endsWith("*") && restrictsTools(tool, `mcp__${server}__`);
    return (
      specifier.type === "mcp" &&
      specifier.tool === undefined &&
      matchesMcpName(specifier, { server, tool: "" }, "restrict")
    );
  });
}

function isKnown<Value>(value: Value | undefined): value is Value {
  return value !== undefined;
}
