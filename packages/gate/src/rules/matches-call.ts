import { posix } from "node:path";
import { matchesPattern } from "@retinue/base/foundation/match-pattern.ts";
import { toolFacts } from "@retinue/base/foundation/tool-table.ts";
import {
  isMcpTool,
  type KnownCall,
  mcpServerPart,
  mcpToolPattern,
  type PathCopy,
  type PathFact,
  readMcpName,
  type ShellFacts,
} from "../call-facts.ts";
import { coversPath } from "../covers-path.ts";
import type { PermissionPolicy, PolicyRule } from "../permission-policy.ts";
import type { PermissionRule, RuleSpecifier } from "../permission-rule.ts";
import { matchesDomain } from "../web-target.ts";
import { grantsUnit, matchesWholeCall } from "./grants-unit.ts";
import { indexStarted, restrictsLine, restrictsUnit, type StartedIndex } from "./restricts-unit.ts";

/** A rule that restricts matches when in doubt; one that grants does not. */
export type RuleUse = "grant" | "restrict";

export interface MatchOptions {
  readonly use: RuleUse;
  readonly policy: Pick<PermissionPolicy, "home" | "workingDirectories" | "platform">;
}

/** Whether a rule matches a call. For a shell call, a rule that grants must cover every command in it. */
export function matchesCall(candidate: PolicyRule, request: KnownCall, options: MatchOptions): boolean {
  const { facts } = request;
  if (appliesToTool(candidate, request, options.use) && matchesSpecifier(candidate, request, options))
    return true;
  if (facts.shell === undefined || options.use === "grant") return false;
  // Rules about commands say nothing about paths.
  if (candidate.rule.specifier.type === "command") return false;
  const { paths } = comparedOf(facts.shell);
  const restricting = { ...options, homes: facts.otherHomes };
  return paths.some((path) => restrictsPath(candidate, path, restricting));
}

/** The first of these rules that matches a call. */
export function findRule(
  rules: readonly PolicyRule[],
  call: KnownCall,
  options: MatchOptions,
): PolicyRule | undefined {
  return rules.find((candidate) => matchesCall(candidate, call, options));
}

/** The first deny rule and the first ask rule that match a call. */
export function findRestrictions(
  call: KnownCall,
  policy: PermissionPolicy,
): { readonly denied: PolicyRule | undefined; readonly asked: PolicyRule | undefined } {
  const options: MatchOptions = { use: "restrict", policy };
  return { denied: findRule(policy.deny, call, options), asked: findRule(policy.ask, call, options) };
}

/** Whether a rule about reading or editing covers one path that is read or written. */
export function matchesPath(
  candidate: PolicyRule,
  path: PathFact,
  options: MatchOptions & { readonly homes?: readonly string[] | undefined },
): boolean {
  if (options.use === "restrict") return restrictsPath(candidate, path, options);
  return appliesToUse(candidate.rule.canonicalTool, path, "grant") && coversForms(candidate, path, options);
}

function restrictsPath(
  candidate: PolicyRule,
  path: PathFact,
  options: MatchOptions & { readonly homes?: readonly string[] | undefined },
): boolean {
  return (
    appliesToUse(candidate.rule.canonicalTool, path, "restrict") && coversForms(candidate, path, options)
  );
}

/** What may not be read may not be written either; what may be edited need not be readable. */
function appliesToUse(ruleTool: string, { use }: PathFact, ruleUse: RuleUse): boolean {
  const { grantsUse, restrictsUse } = toolFacts.get(ruleTool) ?? {};
  const covered = ruleUse === "grant" ? grantsUse : restrictsUse;
  if (covered === "read") return use === "read" || ruleUse === "restrict";
  return covered === "write" && use !== "read";
}

function coversForms(
  { rule, anchor, otherAnchors = [] }: PolicyRule,
  { forms, unknown, copies = [] }: PathFact,
  { use, policy, homes = [] }: MatchOptions & { readonly homes?: readonly string[] | undefined },
): boolean {
  const { specifier } = rule;
  if (specifier.type === "whole") return true;
  if (specifier.type === "text") return use === "restrict";
  if (specifier.type !== "path") return false;
  const bases = {
    root: ["/"],
    home: [policy.home, ...homes],
    settings: [anchor, ...otherAnchors],
    // What is forbidden by a name is forbidden in every working directory.
    cwd: use === "restrict" ? policy.workingDirectories : policy.workingDirectories.slice(0, 1),
  }[specifier.anchor];
  const comparison = {
    foldsCase: use === "restrict" && (policy.platform === "darwin" || policy.platform === "win32"),
    floats: use === "restrict",
  };
  const covered = (form: string): boolean =>
    bases.some((base) => coversPath(specifier.pattern, base, form, comparison));
  if (use === "grant") return unknown === undefined && forms.every(covered);
  return forms.some(covered) || copies.some((copy) => coversCopy(copy, covered));
}

/** A rule about a place in one working tree counts in the others; one about whole working trees matches those alone. */
function coversCopy({ tree, path, isMain }: PathCopy, covered: (form: string) => boolean): boolean {
  return covered(path) && !covered(isMain ? posix.dirname(tree) : tree);
}

/** `Edit` covers every editing tool and `Read` every reading one. A name as written always covers the tool of that name. */
function appliesToTool({ rule }: PolicyRule, request: KnownCall, use: RuleUse): boolean {
  const { canonicalTool, specifier } = rule;
  if (specifier.type === "toolGlob") return use === "restrict" && restrictsTools(rule.tool, request.tool);
  if (specifier.type === "mcp" || namesTool(rule, request.tool, use)) return true;
  const declared = toolFacts.get(canonicalTool);
  if (declared === undefined) return isMcpTool(canonicalTool) && namesMcpTool(canonicalTool, request, use);
  const { coversEffect, restrictsUse } = declared;
  if (coversEffect === "edit") return request.effect === "edit";
  if (restrictsUse === "write")
    return use === "restrict" && request.effect === "edit" && specifier.type === "path";
  if (coversEffect !== "read" || request.facts.paths.length === 0) return false;
  return request.effect === "read" || (use === "restrict" && request.effect === "edit");
}

/** Whether a pattern of names that restricts covers a tool, in whatever letter case either is written. */
export function restrictsTools(pattern: string, name: string): boolean {
  return matchesPattern(pattern.toLowerCase(), name.toLowerCase());
}

/**
 * Whether a rule names this tool: by its current or an old name, or exactly as it is called, since a program may bring a
 * tool under any name. A rule that restricts also does so in other letter case.
 */
export function namesTool(
  { tool, canonicalTool }: Pick<PermissionRule, "tool" | "canonicalTool">,
  name: string,
  use: RuleUse,
): boolean {
  if (canonicalTool === name || tool === name) return true;
  return use === "restrict" && tool.toLowerCase() === name.toLowerCase();
}

function matchesSpecifier(candidate: PolicyRule, request: KnownCall, options: MatchOptions): boolean {
  const { specifier } = candidate.rule;
  const { facts } = request;
  switch (specifier.type) {
    case "toolGlob":
      return true;
    case "whole":
      return request.isMcp
        ? options.use === "restrict" && namesTool(candidate.rule, request.tool, "restrict")
        : grantsWhole(request, options.use);
    case "mcp":
      return matchesMcp(specifier, request, options.use);
    case "command":
      // A command that was not looked into may be any command.
      if (facts.shell === undefined) return options.use === "restrict";
      return matchesShell(specifier, facts.shell, options);
    case "path":
      return matchesPaths(candidate, request, options);
    case "domain":
      return facts.web?.type === "web" && matchesDomain(specifier.domain, facts.web, options.use);
    case "parameter": {
      const { name, value } = specifier;
      if (!Object.hasOwn(request.input, name)) return false;
      const given = request.input[name];
      return typeof given === "object" ? false : matchesPattern(value, String(given));
    }
    case "agent":
      return matchesAgent(specifier.names, request, options.use);
    case "skill":
      return matchesSkill(specifier, request, options.use);
    case "workflow":
      return matchesWorkflow(specifier.name, request, options.use);
    case "text":
      return options.use === "restrict";
  }
}

/** A grant of all of the web is not one of this machine and its network. */
function grantsWhole(request: KnownCall, use: RuleUse): boolean {
  const { web } = request.facts;
  return (
    use === "restrict" ||
    web === undefined ||
    (web.type === "web" && !web.isPrivate && web.leadsToPrivate !== true)
  );
}

function matchesMcp(
  specifier: Extract<RuleSpecifier, { type: "mcp" }>,
  request: KnownCall,
  use: RuleUse,
): boolean {
  const { mcp } = request.facts;
  if (mcp === undefined && !request.isMcp) return false;
  const readings = mcp === undefined ? readMcpName(request.tool) : [mcp];
  if (use === "grant" && (readings.length !== 1 || mcp?.isChanged === true)) return false;
  return readings.some((identity) => matchesMcpName(specifier, identity, use));
}

/** A rule with parentheses names one tool of one server; the name a model sees may be spelled or shortened. */
function namesMcpTool(ruleTool: string, request: KnownCall, use: RuleUse): boolean {
  const { mcp } = request.facts;
  const [named] = readMcpName(ruleTool);
  return mcp !== undefined && named !== undefined && matchesMcpName(named, mcp, use);
}

/**
 * Rules may name servers and tools as they are configured, or as the names of tools spell them. One that restricts does so
 * in whatever letter case; one that grants means exactly what it says.
 */
export function matchesMcpName(
  { server, tool }: Pick<Extract<RuleSpecifier, { type: "mcp" }>, "server" | "tool">,
  identity: { readonly server: string; readonly tool: string },
  use: RuleUse,
): boolean {
  const fold = (text: string): string => (use === "restrict" ? text.toLowerCase() : text);
  if (fold(mcpServerPart(server)) !== fold(identity.server)) return false;
  return tool === undefined || matchesPattern(fold(mcpToolPattern(tool)), fold(identity.tool));
}

function matchesShell(
  specifier: Extract<RuleSpecifier, { type: "command" }>,
  shell: ShellFacts,
  { use, policy }: MatchOptions,
): boolean {
  const { analysis } = shell;
  if (use === "grant") {
    if (analysis.opaque !== undefined || analysis.units.length === 0) return false;
    return (
      matchesWholeCall(specifier, analysis) || analysis.units.every((unit) => grantsUnit(specifier, unit))
    );
  }
  if (restrictsLine(specifier, analysis.exactText) || matchesWholeCall(specifier, analysis)) return true;
  const { texts, started } = comparedOf(shell);
  return restrictsUnit(specifier, texts, started, policy.workingDirectories[0]);
}

interface Compared {
  readonly texts: readonly string[];
  readonly started: StartedIndex;
  /** All paths of the call. */
  readonly paths: readonly PathFact[];
}

const compared = new WeakMap<ShellFacts, Compared>();

/** Every text of a call once: all commands in a wrapper have the text of the wrapper in common. */
function comparedOf(shell: ShellFacts): Compared {
  const known = compared.get(shell);
  if (known !== undefined) return known;
  const { analysis, units, redirects } = shell;
  const texts = new Set<string>();
  const started = new Map<string, readonly string[]>();
  for (const [at, unit] of analysis.units.entries()) {
    for (const text of unit.restrictTexts) texts.add(text);
    for (const text of units[at]?.otherTexts ?? []) texts.add(text);
    for (const words of unit.started ?? []) started.set(words.join("\0"), words);
  }
  const paths = [...units.flatMap((unit) => unit.paths), ...redirects];
  const found = {
    texts: [...texts],
    started: indexStarted([...started.values()]),
    paths: [...new Set(paths)],
  };
  compared.set(shell, found);
  return found;
}

function matchesPaths(candidate: PolicyRule, request: KnownCall, options: MatchOptions): boolean {
  const { facts } = request;
  if (facts.paths.length === 0) return false;
  const covered = (path: PathFact): boolean =>
    coversForms(candidate, path, { ...options, homes: facts.otherHomes });
  return options.use === "grant" ? facts.paths.every(covered) : facts.paths.some(covered);
}

function matchesAgent(names: readonly string[], request: KnownCall, use: RuleUse): boolean {
  const named = [request.facts.agentType, request.input["subagent_type"]].filter(
    (type) => typeof type === "string",
  );
  const types = named.length === 0 ? ["general-purpose"] : named;
  const bare = (text: string): string =>
    use === "restrict" ? text.toLowerCase().replace(/[\s_-]/g, "") : text;
  const covered = (type: string): boolean => names.some((name) => matchesPattern(bare(name), bare(type)));
  return use === "restrict" ? types.some(covered) : types.every(covered);
}

function matchesSkill(
  { name, anyArguments }: Extract<RuleSpecifier, { type: "skill" }>,
  { input }: KnownCall,
  use: RuleUse,
): boolean {
  const called = String(input["skill"] ?? "");
  if ((use === "restrict" ? called.trim().replace(/^\//, "") : called) !== name) return false;
  return use === "restrict" || anyArguments || String(input["args"] ?? "").trim() === "";
}

/** Only a saved workflow is one of a name: what a script or a file calls itself says nothing. */
function matchesWorkflow(name: string, { input }: KnownCall, use: RuleUse): boolean {
  const { name: called, scriptPath } = input;
  if (typeof called !== "string" || typeof scriptPath === "string") return false;
  return use === "restrict" ? called.trim().toLowerCase() === name.toLowerCase() : called === name;
}
