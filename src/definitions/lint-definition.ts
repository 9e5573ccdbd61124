import type { Diagnostic, DocumentPath, Issue, Place } from "../foundation/diagnostic.ts";
import { type AliasTable, shippedAliases } from "../model/alias-table.ts";
import { resolveToolName } from "../tools/grants/resolve-tool-name.ts";
import { parseToolEntry } from "../tools/grants/tool-entry.ts";
import type { AgentDefinition } from "./agent-definition.ts";
import { lintColor, lintDescription, lintModel, lintPrompt } from "./lint-description.ts";
import { lintTools } from "./lint-tools.ts";

/** Fields by which a definition asks for more than its reader may expect, or for more than it will get. */
const lintRights: LintRule = (definition, { trusted }) =>
  cases
    .filter(({ applies }) => applies(definition, isHeldBack(definition, trusted)))
    .map(({ applies: _applies, ...issue }) => issue);

interface RightsCase extends Issue {
  readonly applies: (definition: AgentDefinition, isHeldBack: boolean) => boolean;
}

const howToTrust =
  "Trust the folder (`--trust` for one run; `retinue doctor` shows more) once you have read it.";

const cases: readonly RightsCase[] = [
  {
    severity: "warning",
    code: "bypass-not-granted",
    message: "No file can give `bypassPermissions`: the agent gets it only from a parent that has it.",
    advice: "Remove it, or write `acceptEdits` if only edits should need no question.",
    path: ["permissionMode"],
    applies: ({ permissionMode }) => permissionMode === "bypassPermissions",
  },
  {
    severity: "warning",
    code: "mode-needs-trust",
    message: "`acceptEdits` from a project file holds only in a trusted folder; here the agent asks.",
    advice: howToTrust,
    path: ["permissionMode"],
    applies: ({ permissionMode }, isHeldBack) => permissionMode === "acceptEdits" && isHeldBack,
  },
  {
    severity: "warning",
    code: "edits-and-shell",
    message: "The agent edits without asking and may propose any shell command.",
    advice: "Narrow the shell to what it needs, such as `Bash(npm test *)`, or leave out `acceptEdits`.",
    path: ["permissionMode"],
    applies: (definition) => definition.permissionMode === "acceptEdits" && namesWholeShell(definition),
  },
  {
    severity: "note",
    code: "hooks-need-trust",
    message: "Hooks of a project file run only in a trusted folder; here they are held back.",
    advice: howToTrust,
    path: ["hooks"],
    applies: ({ hooks = [] }, isHeldBack) => hooks.length > 0 && isHeldBack,
  },
  {
    severity: "note",
    code: "servers-need-trust",
    message:
      "An MCP server that a project file brings starts only in a trusted folder; here it is held back.",
    advice: howToTrust,
    path: ["mcpServers"],
    applies: ({ mcpServers = [] }, isHeldBack) =>
      isHeldBack && mcpServers.some((server) => server.type === "inline"),
  },
];

function isHeldBack({ source }: AgentDefinition, trusted: boolean): boolean {
  return source.scope === "project" && !trusted;
}

function namesWholeShell({ tools = [] }: AgentDefinition): boolean {
  return tools.map(parseToolEntry).some((entry) => {
    const meaning = resolveToolName(entry.name);
    return entry.type === "whole" && "name" in meaning && meaning.name === "Bash";
  });
}

export interface LintFacts {
  /** Whether the folder is trusted; what only trust puts in force is reported otherwise. */
  readonly trusted?: boolean;
  readonly aliases?: AliasTable;
  /** The text of the definition's file, so that one entry of a list can be pointed at. */
  readonly text?: string;
}

export type LintRule = (definition: AgentDefinition, facts: Required<Omit<LintFacts, "text">>) => Issue[];

/** What a person should know about a definition that can be read: mistakes, contradictions and weak spots. */
export function lintDefinition(definition: AgentDefinition, facts: LintFacts = {}): Diagnostic[] {
  const known = { trusted: facts.trusted ?? false, aliases: facts.aliases ?? shippedAliases };
  const { file } = definition.source;
  return rules
    .flatMap((rule) => rule(definition, known))
    .map(({ path, ...issue }) => ({
      ...issue,
      ...(file === undefined ? {} : { file }),
      ...placeOf(path, definition, facts.text),
    }));
}

const rules: readonly LintRule[] = [lintDescription, lintTools, lintModel, lintRights, lintColor, lintPrompt];

function placeOf([key, index]: DocumentPath, definition: AgentDefinition, text?: string): Place | undefined {
  const field = String(key);
  const place = Object.hasOwn(definition.written, field) ? definition.written[field]?.place : undefined;
  if (place === undefined || text === undefined || typeof index !== "number") return place;
  const list = field === "tools" ? definition.tools : definition.disallowedTools;
  return placeOfEntry(text, place, list?.[index] ?? "") ?? place;
}

/** Where an entry of a list is in the text, from the place of the list's key on; undefined when it is spelt otherwise there. */
export function placeOfEntry(text: string, key: Place, entry: string): Place | undefined {
  if (entry === "") return undefined;
  const lines = text.split("\n");
  for (let index = key.line - 1; index < lines.length; index += 1) {
    const line = lines[index] ?? "";
    const isFirst = index === key.line - 1;
    if (!isFirst && endsField(line, key.column)) return undefined;
    const at = findWhole(line, entry, isFirst ? key.column - 1 + (key.length ?? 0) : 0);
    if (at !== -1) return { line: index + 1, column: at + 1, length: entry.length };
  }
  return undefined;
}

/** A list continues while lines are indented deeper than its key, or begin with a dash. */
function endsField(line: string, keyColumn: number): boolean {
  const indent = line.search(/\S/);
  if (indent === -1) return false;
  return indent < keyColumn && !/^\s*-(?:\s|$)/.test(line) && !/^\s*[\]#]/.test(line);
}

/** `Edit` must not be found inside `NotebookEdit`. */
function findWhole(line: string, entry: string, from: number): number {
  for (let at = line.indexOf(entry, from); at !== -1; at = line.indexOf(entry, at + 1)) {
    const before = line[at - 1] ?? " ";
    const after = line[at + entry.length] ?? " ";
    if (!/[\w(]/.test(before) && !/[\w(]/.test(after)) return at;
  }
  return -1;
}
