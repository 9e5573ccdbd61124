import { checkArgument, checks } from "@retinue/base/foundation/check-arguments.ts";
import { isRecord, kindOf, quote } from "@retinue/base/foundation/json-record.ts";
import { nearestName } from "@retinue/base/foundation/nearest-name.ts";
import { canonicalToolName, knownToolNames } from "@retinue/base/foundation/tool-table.ts";
import {
  type PermissionRule,
  type RuleList,
  type RuleReading,
  type RuleSpecifier,
  readSpecifier,
} from "../permission-rule.ts";

export type { PermissionRule, RuleList, RuleReading, RuleSpecifier } from "../permission-rule.ts";

export interface RuleOptions {
  /** The list the rule is in; some forms only restrict, and are invalid in `allow`. */
  readonly list?: RuleList | undefined;
}

const ruleShape = checks.shape({ list: checks.oneOf(["allow", "ask", "deny"]) });
const formatShape = checks.shape({ tool: checks.filled }, ["tool"]);

/** Reads `Tool` or `Tool(specifier)`. A rule that could be taken for something other than was meant is invalid. */
export function parseRule(text: string, options: RuleOptions = {}): RuleReading {
  checkArgument("The first argument of parseRule()", checks.text, text);
  checkArgument("The options of parseRule()", ruleShape, options);
  const parts = splitRule(text);
  if (parts.type === "invalid") return parts;
  const complaint = toolComplaint(parts.tool, parts.specifier);
  if (complaint !== undefined) return complaint;
  const canonicalTool = canonicalToolName(parts.tool);
  // A bare name under `allow` may be a tool of the program itself; there, parentheses mean something only for built-in tools.
  const canBeMisspelt = options.list === "allow" ? parts.specifier !== undefined : options.list !== undefined;
  const meant = canBeMisspelt ? meantTool(parts) : undefined;
  if (meant !== undefined)
    return invalid(`there is no tool ${quote(parts.tool)}`, `Did you mean ${quote(meant)}?`);
  const specifier = readSpecifier({
    tool: parts.tool,
    canonicalTool,
    text: parts.specifier,
    list: options.list,
  });
  if (specifier.type === "invalid") return specifier;
  return { type: "rule", rule: { tool: parts.tool, canonicalTool, specifier: specifier.specifier } };
}

/** The tool that was meant by a name with one wrong letter, or by what other products call Bash. */
function meantTool({
  tool,
  specifier,
}: {
  readonly tool: string;
  readonly specifier?: string;
}): string | undefined {
  if (tool.startsWith("mcp__") || tool.includes("*") || knownToolNames.has(canonicalToolName(tool)))
    return undefined;
  const isShell =
    specifier !== undefined && /^(?:shell|sh|zsh|terminal|exec|execute|command|cmd)$/i.test(tool);
  const nearest = isShell ? "Bash" : nearestName(tool, knownToolNames, 1);
  // Rules are matched whatever the case.
  return nearest?.toLowerCase() === tool.toLowerCase() ? undefined : nearest;
}

/** Reads a rule from a file: a text, `{"tool", "args"}`, or `{"toolName", "ruleContent"}`. */
export function readRule(value: unknown, options: RuleOptions = {}): RuleReading {
  if (typeof value === "string") return parseRule(value, options);
  const text = ruleText(value);
  if (text !== undefined) return parseRule(text, options);
  return {
    type: "invalid",
    reason: `a rule must be a string such as "Bash(git status)", but here it is ${kindOf(value)}`,
    advice: "Write it as one text in double quotes.",
  };
}

/** The canonical text of a rule; parsing it gives the same rule again. */
export function formatRule(rule: PermissionRule): string {
  checkArgument("The first argument of formatRule()", formatShape, rule);
  const inner = specifierText(rule.specifier);
  return inner === undefined ? rule.tool : `${rule.tool}(${inner})`;
}

/** An object with any other key specifies more than is understood here; taken for the whole tool, it could allow too much. */
function ruleText(value: unknown): string | undefined {
  if (!isRecord(value) || !Object.keys(value).every((key) => ruleKeys.has(key))) return undefined;
  const tool = value["tool"] ?? value["toolName"];
  const inner = value["args"] ?? value["ruleContent"];
  if (typeof tool !== "string") return undefined;
  if (inner === undefined || inner === null) return tool;
  return typeof inner === "string" ? `${tool}(${inner})` : undefined;
}

const ruleKeys: ReadonlySet<string> = new Set(["tool", "args", "toolName", "ruleContent"]);

function toolComplaint(tool: string, specifier: string | undefined): RuleReading | undefined {
  if (toolName.test(tool)) return undefined;
  const inner = specifier === undefined ? "" : `(${specifier})`;
  if (tool === "") {
    return invalid(
      "there is no tool before the parenthesis",
      `Write the tool first, as in ${quote(`Bash${inner}`)}.`,
    );
  }
  const [name = ""] = tool.split(":");
  if (tool.endsWith(":*") && toolName.test(name)) {
    const advice = name.startsWith("mcp__") ? `Write ${name}*.` : `Write ${name} or ${name}(*).`;
    return invalid(`the colon is outside parentheses in ${quote(tool)}`, advice);
  }
  if (/\s/.test(tool) && specifier === undefined) {
    return invalid(
      `${quote(tool)} is not a tool's name`,
      `If it is a shell command, write ${quote(`Bash(${tool})`)}.`,
    );
  }
  return invalid(
    `${quote(tool)} is not a tool's name`,
    'Write a name such as Bash or mcp__server__tool, then "(".',
  );
}

/** Servers and programs choose their tools' names; what cannot are in any is refused. */
const toolName = /^(?:mcp__[^\s()[\]{}:,"'`<>|;&$\\]+|[A-Za-z_*][\w.*-]*)$/;

function invalid(reason: string, advice: string): RuleReading {
  return { type: "invalid", reason, advice };
}

function specifierText(specifier: RuleSpecifier): string | undefined {
  switch (specifier.type) {
    case "whole":
    case "mcp":
    case "toolGlob":
      return undefined;
    case "command":
      return specifier.match === "prefix" ? `${specifier.text} *` : specifier.text;
    case "path":
      return `${anchorSigns[specifier.anchor]}${specifier.pattern}`;
    case "domain":
      return `domain:${specifier.domain}`;
    case "agent":
      return specifier.names.join(", ");
    case "skill":
      return specifier.anyArguments ? `${specifier.name} *` : specifier.name;
    case "workflow":
      return specifier.name;
    case "parameter":
      return `${specifier.name}:${specifier.value}`;
    case "text":
      return specifier.text;
  }
}

const anchorSigns = { root: "//", home: "~/", settings: "/", cwd: "" } as const;

type RuleParts =
  | { readonly type: "parts"; readonly tool: string; readonly specifier?: string }
  | { readonly type: "invalid"; readonly reason: string; readonly advice: string };

/** Parts the tool's name from what is in the parentheses after it. */
export function splitRule(text: string): RuleParts {
  const rule = text.trim();
  if (rule === "") return unreadable("the rule is empty", "Remove it, or write a tool such as Read.");
  if (forbiddenCharacters.test(rule)) {
    return unreadable(
      `${quote(rule)} has a control character in it`,
      "Remove the character; it is often left from copying.",
    );
  }
  const open = rule.indexOf("(");
  if (open === -1) {
    if (rule.includes(")"))
      return unreadable(`${quote(rule)} closes a parenthesis that was not opened`, 'Add "(" after the tool.');
    return { type: "parts", tool: rule };
  }
  const end = closingParenthesis(rule, open);
  if (end === undefined)
    return unreadable(`${quote(rule)} is missing the closing parenthesis`, 'End the rule with ")".');
  // Saved shell commands hold `:)` or `case x in a)`; where a parenthesis opens again, two things were pasted into one.
  if (
    end !== rule.length - 1 &&
    !(/^(?:Bash|PowerShell)\(/.test(rule) && rule.endsWith(")") && !rule.includes("(", end))
  ) {
    return unreadable(
      `in ${quote(rule)} there is text after the closing parenthesis`,
      "Write one rule per entry.",
    );
  }
  const specifier = rule.slice(open + 1, -1);
  if (specifier.trim() === "") {
    return unreadable(
      `${quote(rule)} has nothing in its parentheses`,
      `Write ${rule.slice(0, open)} for every call of the tool.`,
    );
  }
  return { type: "parts", tool: rule.slice(0, open), specifier };
}

/** Tabs and line ends are in saved multi-line commands; no other control character belongs into a rule. */
const forbiddenCharacters = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/;

/**
 * Where the first parenthesis closes. Saved commands have lone parentheses inside quotes, so where plain counting does
 * not come out at the end of the rule, quoted text is left aside.
 */
function closingParenthesis(rule: string, open: number): number | undefined {
  const plain = countToEnd(rule, open, false);
  if (plain === rule.length - 1) return plain;
  const quoted = countToEnd(rule, open, true);
  return quoted === rule.length - 1 ? quoted : plain;
}

function countToEnd(rule: string, open: number, skipQuoted: boolean): number | undefined {
  let depth = 0;
  let quote: string | undefined;
  for (let at = open; at < rule.length; at += 1) {
    const character = rule[at];
    if (character === "\\") at += 1;
    else if (quote !== undefined) quote = character === quote ? undefined : quote;
    else if (skipQuoted && (character === '"' || character === "'")) quote = character;
    else if (character === "(") depth += 1;
    else if (character === ")") {
      depth -= 1;
      if (depth === 0) return at;
    }
  }
  return undefined;
}

function unreadable(reason: string, advice: string): RuleParts {
  return { type: "invalid", reason, advice };
}

/** What a person should know of a rule that is valid and yet hardly means what was written. */
interface RuleWarning {
  readonly message: string;
  readonly advice: string;
}

/** `:*` means "with any arguments" only at the end; elsewhere it is a colon, which no command has there. */
export function warnOfRule(rule: PermissionRule): RuleWarning | undefined {
  const { specifier } = rule;
  if (specifier.type !== "command" || !specifier.text.includes(":*")) return undefined;
  const meant = specifier.text.replaceAll(/\s*:\*/g, " *");
  return {
    message: `${quote(formatRule(rule))} matches no command: \`:*\` represents any arguments only at the end of a rule.`,
    advice: `Write ${quote(`${rule.tool}(${meant})`)}.`,
  };
}
