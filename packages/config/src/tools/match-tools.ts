import type { DocumentPath, Issue } from "@retinue/base/foundation/diagnostic.ts";
import { matchesPattern } from "@retinue/base/foundation/match-pattern.ts";
import { nearestName } from "@retinue/base/foundation/nearest-name.ts";
import type { ToolEffect } from "@retinue/base/foundation/tool-table.ts";
import { type McpIdentity, mcpServerPart, mcpToolPattern } from "@retinue/gate/call-facts.ts";
import { parseRule, warnOfRule } from "@retinue/gate/rules/parse-rule.ts";
import {
  knownToolNames,
  parseToolEntries,
  resolveToolName,
  splitEntries,
  type ToolEntry,
  type ToolNameMeaning,
} from "./tool-entry.ts";

/** A tool that a run could be given, before its definition narrows it. */
export interface AvailableTool {
  readonly name: string;
  readonly effect: ToolEffect;
  readonly origin: "builtin" | "mcp" | "program";
  readonly server?: string;
  /** It works on child agents, so only agents that can start some have it. */
  readonly needsChildren?: true;
  /** It belongs to a team: a lead has it, and members get it with their membership. */
  readonly forTeams?: true;
  /** The pair as rules know it; its tool is whole where the name had to be shortened. */
  readonly mcp?: McpIdentity;
}

/** What of a tool decides whether a definition grants it. */
interface GrantableTool extends Pick<AvailableTool, "name" | "effect" | "origin"> {
  readonly mcp?: (McpIdentity & { readonly serverName: string }) | undefined;
}

export function availableTool({ name, effect, origin, mcp }: GrantableTool): AvailableTool {
  if (mcp === undefined) return { name, effect, origin };
  return { name, effect, origin, server: mcp.serverName, mcp: { server: mcp.server, tool: mcp.tool } };
}

interface ToolMatch {
  readonly tools: readonly AvailableTool[];
  readonly meaning: ToolNameMeaning;
}

/** One entry of a list of tools, with what it means among the tools there are. */
export interface MatchedEntry extends ToolMatch {
  readonly text: string;
  readonly entry: ToolEntry;
  readonly path: DocumentPath;
  /** What a person should know about how it was understood. */
  readonly notes: readonly Issue[];
}

function matchEntries(
  texts: readonly string[],
  available: readonly AvailableTool[],
  list: "tools" | "disallowedTools",
): readonly MatchedEntry[] {
  if (texts.length === 0) return [];
  return parseToolEntries(texts).map(({ entry, meaning }, at) => {
    const text = texts[at] ?? "";
    const path = [list, at];
    const match =
      list === "tools"
        ? matchTools(entry.name, available, meaning)
        : matchDenied(entry.name, available, meaning);
    return { ...match, entry, text, path, notes: describeMatch(text, match, path) };
  });
}

/** A list that takes tools of servers away does so in whatever letter case. */
function matchDenied(name: string, available: readonly AvailableTool[], known: ToolNameMeaning): ToolMatch {
  const match = matchTools(name, available, known);
  if (!/^mcp__/i.test(name)) return match;
  const lower = name.toLowerCase();
  const folded = available.filter(
    (tool) => match.tools.includes(tool) || isMcpMatch(lower, inLowerCase(tool)),
  );
  return folded.length === match.tools.length ? match : { tools: folded, meaning: { type: "mcp" } };
}

function inLowerCase(tool: AvailableTool): AvailableTool {
  const { name, server, mcp } = tool;
  return {
    ...tool,
    name: name.toLowerCase(),
    server: server?.toLowerCase(),
    mcp: mcp && { ...mcp, server: mcp.server.toLowerCase(), tool: mcp.tool.toLowerCase() },
  };
}

/** The available tools that a name from a file means: the literal name first, then today's name for an old one. */
export function matchTools(
  name: string,
  available: readonly AvailableTool[],
  known?: ToolNameMeaning,
): ToolMatch {
  const literal = available.filter((tool) => tool.name === name);
  if (literal.length > 0) return { tools: literal, meaning: { type: "known", name } };
  const meaning = known ?? resolveToolName(name);
  if (meaning.type === "mcp") return { tools: available.filter((tool) => isMcpMatch(name, tool)), meaning };
  if (name.includes("*")) {
    const exact = available.filter((tool) => matchesPattern(name, tool.name));
    const lower = name.toLowerCase();
    const tools =
      exact.length > 0 ? exact : available.filter((tool) => matchesPattern(lower, tool.name.toLowerCase()));
    return {
      tools,
      meaning: tools.length > 0 || name === "*" ? { type: "known", name } : { type: "unknown" },
    };
  }
  if (meaning.type === "known" || meaning.type === "renamed") {
    return { tools: available.filter((tool) => tool.name === meaning.name), meaning };
  }
  return matchLetterCase(name, available, meaning);
}

function matchLetterCase(
  name: string,
  available: readonly AvailableTool[],
  meaning: ToolNameMeaning,
): ToolMatch {
  const lower = name.toLowerCase();
  const tools = available.filter((tool) => tool.name.toLowerCase() === lower);
  const first = tools[0];
  if (first !== undefined) {
    return { tools, meaning: { type: "renamed", name: first.name, reason: "letter-case" } };
  }
  if (meaning.type !== "unknown") return { tools: [], meaning };
  const nearest = nearestName(name, [...available.map((tool) => tool.name), ...knownToolNames()]);
  return { tools: [], meaning: { type: "unknown", nearest } };
}

/** `mcp__server` and `mcp__server__*` mean the whole server; stars may also mean a part of a name. */
function isMcpMatch(entry: string, tool: AvailableTool): boolean {
  if (tool.origin !== "mcp") return false;
  if (matchesPattern(entry, tool.name) || namesPair(entry, tool)) return true;
  // Where the server is known, the name of another that begins alike is not taken for it.
  if (tool.server === undefined || entry.includes("*")) {
    if (matchesPattern(`${entry}__*`, tool.name)) return true;
  }
  return tool.server !== undefined && serverEntries(tool.server).includes(entry);
}

/** Servers are named freely, tools are not: what a tool name cannot hold becomes an underscore. */
function serverEntries(server: string): readonly string[] {
  const spelled = `mcp__${mcpServerPart(server)}`;
  return [spelled, `${spelled}__*`, `mcp__${server}`, `mcp__${server}__*`];
}

/** One tool of one server, as they are configured or as names spell them. */
function namesPair(entry: string, { mcp }: AvailableTool): boolean {
  const rest = entry.slice("mcp__".length);
  const end = rest.indexOf("__");
  if (mcp === undefined || end === -1 || mcpServerPart(rest.slice(0, end)) !== mcp.server) return false;
  return matchesPattern(mcpToolPattern(rest.slice(end + 2)), mcp.tool);
}

type NoteCode =
  | "malformed-entry"
  | "malformed-denial"
  | "tool-is-disallowed"
  | "subagent-cannot-spawn"
  | "subagent-names-no-agents"
  | "needs-agent-tool"
  | "needs-team"
  | "memory-tool-disallowed";

/** A finding about one entry, in words that name it. */
export function issue(code: NoteCode, entry: string, path: DocumentPath): Issue {
  return { code, path, ...notes[code](shorten(entry)) };
}

/** What a person should know about how an entry was understood; nothing when it was taken as written. */
function describeMatch(entry: string, { meaning, tools }: ToolMatch, path: DocumentPath): Issue[] {
  const shown = shorten(entry);
  switch (meaning.type) {
    case "known":
      return tools.length > 0 ? [] : [unavailable(shown, path)];
    case "mcp":
      return tools.length > 0 ? [] : [noSuchMcpTool(shown, path)];
    case "renamed":
      return [renamed(shown, meaning, path), ...(tools.length > 0 ? [] : [unavailable(shown, path)])];
    case "absent":
      return [
        {
          severity: "note",
          code: "absent-tool",
          path,
          message: `No tool does what \`${shown}\` does; the entry has no effect.`,
        },
      ];
    case "unknown":
      return [unknown(shown, meaning.nearest, path)];
  }
}

/** A specifier that narrows a tool to calls that cannot be made. */
export function describeSpecifiers(
  tool: string,
  specifiers: readonly string[],
  path: DocumentPath,
): readonly Issue[] {
  return specifiers.flatMap((text): Issue[] => {
    const reading = parseRule(`${tool}(${text})`);
    const warning = reading.type === "rule" ? warnOfRule(reading.rule) : undefined;
    return warning === undefined
      ? []
      : [{ severity: "warning", code: "rule-matches-nothing", ...warning, path }];
  });
}

/** A tool that exists and that something above the definition takes away. */
export function withheldTool(entry: string, reason: string, path: DocumentPath): Issue {
  return {
    severity: "warning",
    code: "withheld-tool",
    path,
    message: `\`${shorten(entry)}\` is not available to this agent: ${reason}.`,
  };
}

export function listNames(entries: readonly string[]): string {
  const shown = entries.slice(0, 12).map((entry) => `\`${shorten(entry)}\``);
  return entries.length > 12 ? `${shown.join(", ")} and ${entries.length - 12} more` : shown.join(", ");
}

function renamed(
  entry: string,
  meaning: Extract<ToolMatch["meaning"], { type: "renamed" }>,
  path: DocumentPath,
): Issue {
  const isOldName = meaning.reason === "old-name";
  return {
    severity: "note",
    code: isOldName ? "old-tool-name" : "tool-letter-case",
    path,
    message: isOldName
      ? `\`${entry}\` is an old name; it was taken as \`${meaning.name}\`.`
      : `Tool names are case-sensitive; \`${entry}\` was taken as \`${meaning.name}\`.`,
    advice: `Write \`${meaning.name}\`.`,
  };
}

function unavailable(entry: string, path: DocumentPath): Issue {
  return {
    severity: "note",
    code: "unavailable-tool",
    path,
    message: `\`${entry}\` names a tool that is not available in this run; the entry has no effect.`,
  };
}

function noSuchMcpTool(entry: string, path: DocumentPath): Issue {
  return {
    severity: "note",
    code: "unavailable-mcp-tool",
    path,
    message: `No connected MCP server has a tool that \`${entry}\` names; the entry has no effect.`,
    advice: "Check that the server is configured under this name and is running.",
  };
}

function unknown(entry: string, nearest: string | undefined, path: DocumentPath): Issue {
  return {
    severity: "warning",
    code: "unknown-tool",
    path,
    message: `\`${entry}\` is not a known tool; the entry has no effect.`,
    advice: nearest === undefined ? undefined : `Did you mean \`${nearest}\`?`,
  };
}

function shorten(entry: string): string {
  return entry.length > 120 ? `${entry.slice(0, 117)}...` : entry;
}

const notes: Record<NoteCode, (entry: string) => Pick<Issue, "severity" | "message" | "advice">> = {
  "malformed-entry": (entry) => ({
    severity: "warning",
    message: `\`${entry}\` is not of the form \`Tool\` or \`Tool(specifier)\`, so it grants nothing.`,
    advice: "Close the parenthesis at the end of the entry, or write the tool's name alone.",
  }),
  "malformed-denial": (entry) => ({
    severity: "warning",
    message: `\`${entry}\` is not of the form \`Tool\` or \`Tool(specifier)\`, so the whole tool is taken away.`,
    advice: "Write the parenthesis right behind the name and close it at the end, or write the name alone.",
  }),
  "tool-is-disallowed": (entry) => ({
    severity: "note",
    message: `\`${entry}\` is also in \`disallowedTools\`, which wins.`,
  }),
  "subagent-cannot-spawn": (entry) => ({
    severity: "note",
    message: `\`${entry}\` has no effect in a subagent: here a subagent never starts agents.`,
    advice: "The setting limits.depth lets subagents start the agents that their `Agent(a, b)` names.",
  }),
  "subagent-names-no-agents": (entry) => ({
    severity: "warning",
    message: `\`${entry}\` has no effect in a subagent, because it does not name the agents that may be started.`,
    advice: "Name them: `Agent(a, b)`.",
  }),
  "needs-agent-tool": (entry) => ({
    severity: "note",
    message: `\`${entry}\` has no effect in an agent that cannot start others.`,
    advice: "Add `Agent` to the list.",
  }),
  "needs-team": (entry) => ({
    severity: "note",
    message: `\`${entry}\` has no effect outside a team; a teammate has it without listing it.`,
  }),
  "memory-tool-disallowed": (entry) => ({
    severity: "note",
    message: `\`memory\` would add \`${entry}\`, but \`disallowedTools\` takes it away.`,
    advice: `Remove \`${entry}\` from \`disallowedTools\` if the agent should keep its memory with it.`,
  }),
};

/** What the entries of `disallowedTools` say, for the agents below as well. */
export interface Exclusions {
  /** Rules about some calls of a tool, as in `Bash(rm *)`. */
  readonly deny?: readonly string[];
  /** Entries that take a whole tool away, as written. */
  readonly removes?: readonly string[];
}

/** What `disallowedTools` takes from the tools that there are. */
export interface Denials {
  readonly whole: ReadonlySet<string>;
  readonly scoped: ReadonlyMap<string, readonly string[]>;
  readonly exclusions: Exclusions;
}

const noDenials: Denials = { whole: new Set(), scoped: new Map(), exclusions: {} };

/** Both lists of a definition, with what they mean among the tools there are; without `tools` nothing is requested. */
export function matchLists(
  { tools, disallowedTools = [] }: ToolLists,
  available: readonly AvailableTool[],
  notes: Issue[],
): { readonly denied: Denials; readonly requestedRights: readonly MatchedEntry[] | undefined } {
  const denied = readDenials(disallowedTools, available, notes);
  return {
    denied,
    requestedRights: tools === undefined ? undefined : matchEntries(tools, available, "tools"),
  };
}

interface ToolLists {
  readonly tools?: readonly string[];
  readonly disallowedTools?: readonly string[];
}

function readDenials(
  entries: readonly string[],
  available: readonly AvailableTool[],
  notes: Issue[],
): Denials {
  if (entries.length === 0) return noDenials;
  const whole = new Set<string>();
  const scoped = new Map<string, readonly string[]>();
  const removes: string[] = [];
  const unmatched: string[] = [];
  for (const match of matchEntries(entries, available, "disallowedTools")) {
    const { text, path } = match;
    const entry = asDenial(match);
    notes.push(...match.notes);
    if (entry.type === "malformed") notes.push(issue("malformed-denial", text, path));
    if (entry.type !== "scoped") removes.push(text);
    else if (match.tools.length === 0) unmatched.push(text.trim());
    for (const tool of match.tools) {
      if (entry.type !== "scoped") {
        whole.add(tool.name);
        continue;
      }
      const texts = denials(tool, entry.specifier);
      notes.push(...describeSpecifiers(tool.name, texts, path));
      scoped.set(tool.name, [...(scoped.get(tool.name) ?? []), ...texts]);
    }
  }
  const rules = [...scoped].flatMap(([name, texts]) => texts.map((text) => `${name}(${text})`));
  const deny = [...rules, ...unmatched];
  const exclusions = {
    ...(deny.length === 0 ? {} : { deny }),
    ...(removes.length === 0 ? {} : { removes }),
  };
  return { whole, scoped, exclusions };
}

/** The tools that entries of `disallowedTools` take away whole. */
export function removedTools(
  entries: readonly string[],
  available: readonly AvailableTool[],
): ReadonlySet<string> {
  return readDenials(entries, available, []).whole;
}

/**
 * `Agent(a, b)` names two agents. `Bash(git add:*, git commit:*)` names two prefixes, as `:*` can only end a pattern.
 * Any other specifier is one rule, commas and all.
 */
export function specifiers(tool: AvailableTool, specifier: string): readonly string[] {
  if (tool.effect === "spawn") return splitEntries(specifier);
  if (tool.effect !== "execute" || !specifier.includes(":*,")) return [specifier];
  const patterns = specifier.split(",").map((pattern) => pattern.trim());
  return patterns.every((pattern) => pattern.endsWith(":*")) ? patterns : [specifier];
}

/** `Write (all files)` is a remark and no specifier: taken for one, it would deny nothing. `**` denies everything. */
function asDenial({ text, entry }: MatchedEntry): ToolEntry {
  if (entry.type === "scoped" && entry.specifier === "**") return { type: "whole", name: entry.name };
  return entry.type === "scoped" && /\s$/.test(text.slice(0, text.indexOf("(")))
    ? { type: "malformed", name: entry.name }
    : entry;
}

/** A comma may be part of a pattern or are between two; in a denial both readings hold. */
function denials(tool: AvailableTool, specifier: string): readonly string[] {
  const rules = specifiers(tool, specifier);
  return rules.length === 1 && specifier.includes(",") ? [...rules, ...splitEntries(specifier)] : rules;
}
