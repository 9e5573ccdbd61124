/** The names of all tools that rules can speak of; the built-in ones, and those of other systems that have a grammar here. */
export const toolNames = [
  "Agent",
  "AskUserQuestion",
  "Bash",
  "Cd",
  "Edit",
  "EnterPlanMode",
  "ExitPlanMode",
  "Glob",
  "Grep",
  "ListMcpResourcesTool",
  "NotebookEdit",
  "PowerShell",
  "Read",
  "ReadMcpResourceTool",
  "SendMessage",
  "Skill",
  "TaskCreate",
  "TaskGet",
  "TaskList",
  "TaskOutput",
  "TaskStop",
  "TaskUpdate",
  "TeamCreate",
  "TeamDelete",
  "TodoWrite",
  "WebFetch",
  "WebSearch",
  "Write",
] as const;

export type ToolName = (typeof toolNames)[number];

/**
 * Names that people's files still have, and the tool that does that work today. This is the only such table: rules, lists of
 * tools, flags, skills and hook matchers all read it, so that a name means the same everywhere.
 */
export const toolAliases: ReadonlyMap<string, string> = new Map([
  ["Task", "Agent"],
  ["KillShell", "TaskStop"],
  ["KillBash", "TaskStop"],
  ["BashOutput", "TaskOutput"],
  ["BashOutputTool", "TaskOutput"],
  ["AgentOutputTool", "TaskOutput"],
  ["MultiEdit", "Edit"],
  ["LS", "Glob"],
  ["GlobTool", "Glob"],
  ["GrepTool", "Grep"],
  ["View", "Read"],
  ["NotebookRead", "Read"],
  ["NotebookEditCell", "NotebookEdit"],
  ["ListMcpResources", "ListMcpResourcesTool"],
  ["ReadMcpResource", "ReadMcpResourceTool"],
  // No tool here does the work of these, but their old and new names are one.
  ["ListPeers", "ListAgents"],
  ["Brief", "SendUserMessage"],
  ["ReadMcpResourceDir", "ReadMcpResourceDirTool"],
]);

/** Today's name of a tool, for names that changed and for other letter case; any other name as it is. */
export function canonicalToolName(name: string): string {
  return byLowerCase.get(name.toLowerCase()) ?? name;
}

/** Today's name of a tool and all its old ones. */
export function namesOfTool(name: string): readonly string[] {
  const today = toolAliases.get(name) ?? name;
  return oldNames.has(today) ? [today, ...(oldNames.get(today) ?? [])] : [name];
}

const byLowerCase: ReadonlyMap<string, string> = new Map([
  ...toolNames.map((name) => [name.toLowerCase(), name] as const),
  ...[...toolAliases].map(([old, today]) => [old.toLowerCase(), today] as const),
]);

const oldNames: ReadonlyMap<string, readonly string[]> = new Map(
  [...Map.groupBy(toolAliases, ([, today]) => today)].map(([today, entries]) => [
    today,
    entries.map(([old]) => old),
  ]),
);
