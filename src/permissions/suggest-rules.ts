import type { McpIdentity } from "./mcp-identity.ts";
import { formatRule, type PermissionRule, parseRule } from "./parse-rule.ts";
import type { ShellAnalysis, ShellUnit } from "./shell/shell-analysis.ts";

/** What is known about a call that a person is asked about. */
export interface SuggestionFacts {
  readonly tool: string;
  readonly effect: string;
  /** Every form of the paths it touches, as written and real. */
  readonly paths: readonly string[];
  readonly host?: string;
  /** The name of the skill that is called. */
  readonly skill?: string;
  readonly shell?: ShellAnalysis;
  /** The tool of a server; its name may be shorter. */
  readonly mcp?: McpIdentity;
  readonly home: string;
}

const mostRules = 5;

/**
 * Rules that together would allow this call and little more: one for each part of a shell command, the folder of a path,
 * the host of an address. None when they could not be kept to that; `allows` says whether a set of rules is enough.
 */
export function suggestRules(
  facts: SuggestionFacts,
  allows: (rules: readonly PermissionRule[]) => boolean,
): readonly string[] {
  const rules = [...new Set(candidates(facts))].map(readBack);
  const understood = rules.filter((rule) => rule !== undefined);
  if (understood.length === 0 || understood.length !== rules.length || rules.length > mostRules) return [];
  return allows(understood) ? understood.map(formatRule) : [];
}

function candidates(facts: SuggestionFacts): readonly string[] {
  if (facts.shell !== undefined) return shellRules(facts.shell);
  if (facts.skill !== undefined) return [`${facts.tool}(${facts.skill} *)`];
  if (facts.host !== undefined) return [`${facts.tool}(domain:${facts.host})`];
  if (facts.effect === "edit") return facts.paths.map((path) => `Edit(${folderPattern(path, facts.home)})`);
  if (facts.effect === "read" && facts.paths.length > 0) {
    return facts.paths.map((path) => `Read(${folderPattern(path, facts.home)})`);
  }
  if (!facts.tool.startsWith("mcp__")) return [];
  return [facts.mcp === undefined ? facts.tool : `mcp__${facts.mcp.server}__${facts.mcp.tool}`];
}

/** A rule must say exactly what was meant: one that reads back differently is none. */
function readBack(text: string): PermissionRule | undefined {
  const reading = parseRule(text, { list: "allow" });
  if (reading.type === "invalid" || reading.rule.specifier.type === "text") return undefined;
  return formatRule(reading.rule) === text ? reading.rule : undefined;
}

function shellRules({ units, opaque }: ShellAnalysis): readonly string[] {
  if (opaque !== undefined) return [];
  return units.filter(({ readOnly }) => !readOnly).map((unit) => `Bash(${unitPattern(unit)})`);
}

/** The empty text makes an invalid rule, so that nothing is suggested for the whole command. */
function unitPattern(unit: ShellUnit): string {
  const { grantText, exactOnly, wildcardHead, words } = unit;
  if (grantText === undefined || /[*\n]/.test(grantText)) return "";
  const beginning = knownBeginning(words.map(({ text }) => text));
  if (beginning === undefined || !`${grantText} `.startsWith(`${beginning} `)) return grantText;
  const isRisky =
    exactOnly !== undefined && !(wildcardHead !== undefined && beginning.startsWith(wildcardHead));
  const isPlain = words.every(({ literal, glob }) => literal && !glob);
  return isRisky || !isPlain ? grantText : `${beginning} *`;
}

/**
 * Only for commands whose dangerous options are known to the engine: there a wildcard covers other operands, and an
 * option that executes or writes is still asked about. Anything else is suggested as it stands.
 */
function knownBeginning([command = "", first = "", second = ""]: readonly string[]): string | undefined {
  if (command === "git" && gitCommands.has(first)) return `git ${first}`;
  if (!packageManagers.has(command)) return undefined;
  if (first === "test") return `${command} test`;
  return first === "run" && /^[\w:.-]+$/.test(second) && !second.startsWith("-")
    ? `${command} run ${second}`
    : undefined;
}

const gitCommands: ReadonlySet<string> = new Set(["add", "commit", "push", "switch", "tag"]);

const packageManagers: ReadonlySet<string> = new Set(["npm", "pnpm", "yarn"]);

/** The folder a file is in; the file itself where that folder holds a whole home or more. */
function folderPattern(path: string, home: string): string {
  if (!path.startsWith("/") || /[*?[\]\\{}!()]/.test(path)) return "";
  const folder = path.slice(0, path.lastIndexOf("/"));
  const isWide = folder === "" || home === folder || home.startsWith(`${folder}/`);
  return isWide ? `/${path}` : `/${folder}/**`;
}
