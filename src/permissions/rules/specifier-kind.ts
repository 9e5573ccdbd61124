import type { ToolName } from "../../foundation/tool-aliases.ts";

/** How the text in a rule's parentheses is read, by tool. */
export type SpecifierKind = "command" | "path" | "web" | "agent" | "skill" | "mcp" | "other";

export function specifierKind(canonicalTool: string): SpecifierKind {
  if (canonicalTool.startsWith("mcp__")) return "mcp";
  return kinds.get(canonicalTool) ?? "other";
}

/** The field a tool's own specifier speaks of; a rule cannot name it as a parameter. */
export function mainField(canonicalTool: string): string | undefined {
  return mainFields.get(canonicalTool);
}

/**
 * Whether `name:value` in parentheses means an input field. Where other things have colons too (commands, paths,
 * names of plugin agents) only the tool's known fields do.
 */
export function isParameterName(canonicalTool: string, name: string): boolean {
  if (!/^[A-Za-z_]\w*$/.test(name)) return false;
  const known = parameters.get(canonicalTool);
  if (known !== undefined) return known.includes(name);
  const kind = specifierKind(canonicalTool);
  return kind === "mcp" || kind === "other";
}

const kinds: ReadonlyMap<string, SpecifierKind> = new Map<ToolName, SpecifierKind>([
  ["Bash", "command"],
  ["PowerShell", "command"],
  ["Read", "path"],
  ["Edit", "path"],
  ["Write", "path"],
  ["NotebookEdit", "path"],
  ["Glob", "path"],
  ["Grep", "path"],
  ["Cd", "path"],
  ["WebFetch", "web"],
  ["Agent", "agent"],
  ["Skill", "skill"],
]);

const mainFields: ReadonlyMap<string, string> = new Map([
  ["Bash", "command"],
  ["PowerShell", "command"],
  ["Read", "file_path"],
  ["Edit", "file_path"],
  ["Write", "file_path"],
  ["NotebookEdit", "notebook_path"],
  ["Glob", "path"],
  ["Grep", "path"],
  ["WebFetch", "url"],
]);

const shellParameters = ["run_in_background", "timeout", "description", "dangerouslyDisableSandbox"];

const parameters: ReadonlyMap<string, readonly string[]> = new Map([
  ["Bash", shellParameters],
  ["PowerShell", shellParameters],
  ["Read", ["offset", "limit", "pages"]],
  ["Edit", ["replace_all"]],
  ["Write", []],
  ["NotebookEdit", ["cell_type", "edit_mode"]],
  ["Glob", ["pattern"]],
  ["Grep", ["pattern", "output_mode", "multiline"]],
  ["WebFetch", ["prompt"]],
  [
    "Agent",
    [
      "model",
      "isolation",
      "run_in_background",
      "mode",
      "effort",
      "max_turns",
      "name",
      "resume",
      "subagent_type",
    ],
  ],
  ["Skill", ["args"]],
]);
