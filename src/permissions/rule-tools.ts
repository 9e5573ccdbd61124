/** How the text in a rule's parentheses is read, by tool. */
export type SpecifierKind = "command" | "path" | "web" | "agent" | "skill" | "mcp" | "other";

export function specifierKind(canonicalTool: string): SpecifierKind {
  if (canonicalTool.startsWith("mcp__")) return "mcp";
  return kinds.get(canonicalTool) ?? "other";
}

/** Today's name of a tool, for names that changed and for other letter case. */
export function canonicalToolName(tool: string): string {
  return byLowerCase.get(tool.toLowerCase()) ?? tool;
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

const kinds: ReadonlyMap<string, SpecifierKind> = new Map([
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

/** Old names and the tool that does their work now. */
const renamed: readonly (readonly [string, string])[] = [
  ["Task", "Agent"],
  ["KillShell", "TaskStop"],
  ["KillBash", "TaskStop"],
  ["BashOutput", "TaskOutput"],
  ["AgentOutputTool", "TaskOutput"],
  ["MultiEdit", "Edit"],
  ["LS", "Glob"],
  ["NotebookRead", "Read"],
  ["ListPeers", "ListAgents"],
  ["Brief", "SendUserMessage"],
  ["ListMcpResources", "ListMcpResourcesTool"],
  ["ReadMcpResource", "ReadMcpResourceTool"],
  ["ReadMcpResourceDir", "ReadMcpResourceDirTool"],
];

const otherTools = [
  "WebSearch",
  "TodoWrite",
  "AskUserQuestion",
  "ExitPlanMode",
  "EnterPlanMode",
  "SendMessage",
];

const byLowerCase: ReadonlyMap<string, string> = new Map([
  ...[...kinds.keys(), ...otherTools].map((name) => [name.toLowerCase(), name] as const),
  ...renamed.map(([old, today]) => [old.toLowerCase(), today] as const),
]);
