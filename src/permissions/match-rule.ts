import { matchesPattern } from "../foundation/match-pattern.ts";
import type { PermissionPolicy, PermissionRequest, PolicyRule } from "./decide.ts";
import type { RuleSpecifier } from "./parse-rule.ts";
import { coversPath } from "./path-pattern.ts";

/** A rule that restricts matches when in doubt; one that grants does not. */
export type RuleUse = "grant" | "restrict";

interface MatchOptions {
  readonly use: RuleUse;
  readonly policy: Pick<PermissionPolicy, "home" | "workingDirectories">;
}

export function matchesCall(
  { rule, anchor }: PolicyRule,
  request: PermissionRequest,
  options: MatchOptions,
): boolean {
  const { specifier } = rule;
  if (specifier.type === "toolGlob")
    return options.use === "restrict" && matchesPattern(rule.tool, request.tool);
  if (specifier.type === "mcp") return matchesMcp(specifier, request.tool);
  if (!speaksOf(rule.canonicalTool, request, options.use)) return false;
  switch (specifier.type) {
    case "whole":
      return true;
    case "command":
      return matchesCommand(specifier, request.command ?? "", options.use);
    case "path":
      return matchesPaths(specifier, anchor, request, options);
    case "domain":
      return request.host !== undefined && matchesDomain(specifier.domain, request.host);
    case "parameter":
      return matchesParameter(specifier, request.input);
    case "agent":
      return specifier.names.some((name) =>
        matchesPattern(name, String(request.input["subagent_type"] ?? "")),
      );
    case "skill":
      return String(request.input["skill"] ?? "") === specifier.name;
    case "text":
      return options.use === "restrict";
  }
}

/** `Edit` speaks of every editing tool and `Read` of every reading one; what may not be read may not be written either. */
function speaksOf(ruleTool: string, request: PermissionRequest, use: RuleUse): boolean {
  if (ruleTool === request.tool) return true;
  if (ruleTool === "Edit" || ruleTool === "Write") return request.effect === "edit";
  if (ruleTool !== "Read" || request.paths.length === 0) return false;
  return request.effect === "read" || (use === "restrict" && request.effect === "edit");
}

function matchesMcp(specifier: Extract<RuleSpecifier, { type: "mcp" }>, tool: string): boolean {
  const prefix = `mcp__${specifier.server}`;
  if (specifier.tool === undefined) return tool === prefix || tool.startsWith(`${prefix}__`);
  return matchesPattern(`${prefix}__${specifier.tool}`, tool);
}

/** Letters, digits and what stands in plain arguments; anything else could start a second command. */
const plainCommand = /^[\w./:=@,+%^~ -]+$/;

function matchesCommand(
  specifier: Extract<RuleSpecifier, { type: "command" }>,
  command: string,
  use: RuleUse,
): boolean {
  const text = command.trim();
  if (use === "grant") return plainCommand.test(text) && matchesText(specifier, text);
  if (!plainCommand.test(text.replace(/[;&|\n]+/g, " "))) return true;
  return text.split(/[;&|\n]+/).some((part) => matchesText(specifier, part.trim()));
}

function matchesText({ match, text }: Extract<RuleSpecifier, { type: "command" }>, command: string): boolean {
  switch (match) {
    case "exact":
      return command === text;
    case "prefix":
      return command === text || command.startsWith(`${text} `);
    case "wildcard":
      return matchesPattern(text, command);
  }
}

function matchesPaths(
  { anchor, pattern }: Extract<RuleSpecifier, { type: "path" }>,
  ruleAnchor: string,
  request: PermissionRequest,
  { use, policy }: MatchOptions,
): boolean {
  if (request.paths.length === 0) return false;
  const bases = {
    root: "/",
    home: policy.home,
    settings: ruleAnchor,
    cwd: policy.workingDirectories[0] ?? "/",
  };
  const covered = (path: string): boolean => coversPath(pattern, bases[anchor], path);
  return use === "grant" ? request.paths.every(covered) : request.paths.some(covered);
}

function matchesDomain(domain: string, host: string): boolean {
  const name = host.toLowerCase().replace(/\.$/, "");
  if (domain.startsWith("*.")) return name.endsWith(domain.slice(1)) && name !== domain.slice(2);
  return name === domain;
}

function matchesParameter(
  { name, value }: Extract<RuleSpecifier, { type: "parameter" }>,
  input: Readonly<Record<string, unknown>>,
): boolean {
  if (!Object.hasOwn(input, name)) return false;
  const given = input[name];
  return typeof given === "object" ? false : matchesPattern(value, String(given));
}
