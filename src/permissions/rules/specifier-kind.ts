import { type SubjectKind, toolFacts } from "../../foundation/tool-table.ts";

/** How the text in a rule's parentheses is read, by tool. */
export function specifierKind(canonicalTool: string): SubjectKind {
  return canonicalTool.startsWith("mcp__") ? "mcp" : (toolFacts(canonicalTool)?.subject ?? "other");
}

/**
 * Whether `name:value` in parentheses means an input field. Where other things have colons too (commands, paths,
 * names of plugin agents) only the tool's known fields do.
 */
export function isParameterName(canonicalTool: string, name: string): boolean {
  if (!/^[A-Za-z_]\w*$/.test(name)) return false;
  const known = toolFacts(canonicalTool)?.parameters;
  if (known !== undefined) return known.includes(name);
  const kind = specifierKind(canonicalTool);
  return kind === "mcp" || kind === "other";
}
