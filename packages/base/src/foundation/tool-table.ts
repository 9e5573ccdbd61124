/** What using a tool does; modes and background rules ask for this, never for a tool's name. */
export type ToolEffect = (typeof toolEffects)[number];
export const toolEffects = ["read", "edit", "execute", "network", "interact", "spawn", "coordinate"] as const;

/** How the text in a rule's parentheses is read. */
export type SubjectKind = "command" | "path" | "web" | "agent" | "skill" | "workflow" | "mcp" | "other";

/** Everything that is known about a tool by its name: what rules, grants, hook matchers, explanations and docs need. */
export interface ToolFacts {
  readonly name: string;
  /** Names that people's files still use. */
  readonly oldNames?: readonly string[];
  readonly effect: ToolEffect;
  /** One line for people who list tools; what the model reads is part of the tool itself. */
  readonly description: string;
  /** Rules may name it, but this product has no such tool. */
  readonly isAbsent?: true;
  /** It works on child agents, so only agents that can start some have it. */
  readonly needsChildren?: true;
  /** What a specifier in a rule describes; `other` if absent. */
  readonly subject?: SubjectKind;
  /** The input field that a specifier describes; a rule cannot name it as a parameter. */
  readonly mainField?: string;
  /** The field that a call written as `Tool(text)` fills; the main field if absent. */
  readonly callField?: string;
  readonly pathFields?: readonly string[];
  /** Text fields without which a call is invalid. */
  readonly requiredFields?: readonly string[];
  /** Fields that a rule can name as `Tool(field:value)`; absent means any, where the subject allows it. */
  readonly parameters?: readonly string[];
  /** It searches below a folder; `pattern` is the field whose literal beginning is part of that folder. */
  readonly searches?: { readonly pattern?: string };
  /** A rule about it applies to every tool that reads or edits files. */
  readonly coversEffect?: "read" | "edit";
  /** An allow rule with a path also covers shell commands that use the path in this way. */
  readonly grantsUse?: "read" | "write";
  /** A deny or ask rule with a path also covers other tools and shell commands that use the path in this way. */
  readonly restrictsUse?: "read" | "write";
  /** Whether calls of one answer may run at the same time; absent means: if it only reads. */
  readonly isConcurrencySafe?: boolean;
  /** What running a call twice does; absent means: nothing if it only reads or fetches, else it is unsafe. */
  readonly repeats?: "pure" | "idempotent" | "unsafe";
}

const shellParameters = ["run_in_background", "timeout", "description", "dangerouslyDisableSandbox"] as const;
const file = {
  subject: "path",
  mainField: "file_path",
  pathFields: ["file_path"],
  requiredFields: ["file_path"],
} as const;
const search = {
  subject: "path",
  mainField: "path",
  callField: "pattern",
  pathFields: ["path"],
  requiredFields: ["pattern"],
} as const;
const shell = {
  effect: "execute",
  subject: "command",
  mainField: "command",
  requiredFields: ["command"],
  parameters: shellParameters,
} as const;

/**
 * The only table of tools. A tool's own code adds what it does when called; everything that other code has to know
 * about it is declared here, once.
 */
const rows = [
  {
    name: "Agent",
    oldNames: ["Task"],
    effect: "spawn",
    description: "Hands a piece of work to a child agent.",
    subject: "agent",
    callField: "subagent_type",
    parameters: [
      "model",
      "isolation",
      "cwd",
      "timeout",
      "run_in_background",
      "mode",
      "effort",
      "max_turns",
      "name",
      "resume",
      "subagent_type",
    ],
    isConcurrencySafe: true,
  },
  { name: "AskUserQuestion", effect: "interact", description: "Asks the person a question with choices." },
  { name: "Bash", ...shell, description: "Runs a shell command." },
  {
    name: "Cd",
    effect: "read",
    description: "Changes the working directory.",
    isAbsent: true,
    subject: "path",
  },
  {
    name: "Edit",
    oldNames: ["MultiEdit"],
    effect: "edit",
    description: "Replaces a piece of text in a file.",
    ...file,
    parameters: ["replace_all"],
    coversEffect: "edit",
    grantsUse: "write",
    restrictsUse: "write",
  },
  { name: "EnterPlanMode", effect: "interact", description: "Asks the person to switch to planning." },
  {
    name: "ExitPlanMode",
    effect: "interact",
    description: "Shows a finished plan and asks to carry it out.",
  },
  {
    name: "Glob",
    oldNames: ["LS", "GlobTool"],
    effect: "read",
    description: "Finds files by name pattern.",
    ...search,
    parameters: ["pattern"],
    searches: { pattern: "pattern" },
  },
  {
    name: "Grep",
    oldNames: ["GrepTool"],
    effect: "read",
    description: "Searches file contents.",
    ...search,
    parameters: ["pattern", "output_mode", "multiline"],
    searches: {},
  },
  {
    name: "ListMcpResourcesTool",
    oldNames: ["ListMcpResources"],
    effect: "read",
    description: "Lists what MCP servers offer for reading.",
  },
  {
    name: "NotebookEdit",
    oldNames: ["NotebookEditCell"],
    effect: "edit",
    description: "Changes a cell of a notebook.",
    subject: "path",
    mainField: "notebook_path",
    pathFields: ["notebook_path"],
    requiredFields: ["notebook_path"],
    parameters: ["cell_type", "edit_mode"],
    restrictsUse: "write",
  },
  { name: "PowerShell", ...shell, description: "Runs a PowerShell command.", isAbsent: true },
  {
    name: "Read",
    oldNames: ["View", "NotebookRead"],
    effect: "read",
    description: "Reads a file.",
    ...file,
    parameters: ["offset", "limit", "pages"],
    coversEffect: "read",
    grantsUse: "read",
    restrictsUse: "read",
  },
  {
    name: "ReadMcpResourceTool",
    oldNames: ["ReadMcpResource"],
    effect: "network",
    description: "Reads a resource of an MCP server.",
    isConcurrencySafe: true,
  },
  {
    name: "RunnerTool",
    effect: "execute",
    description: "What another vendor's agent asks for and no other tool describes.",
    isAbsent: true,
    mainField: "title",
  },
  {
    name: "SendMessage",
    effect: "coordinate",
    description: "Sends a message to a child agent or a member of the team.",
    needsChildren: true,
    isConcurrencySafe: true,
  },
  {
    name: "Skill",
    effect: "read",
    description: "Loads a skill's instructions.",
    subject: "skill",
    callField: "skill",
    parameters: ["args"],
    // It may change what later calls may do, so the calls of an answer keep their order.
    isConcurrencySafe: false,
    // Its text may be made by commands, and it may run in an agent that changes things.
    repeats: "unsafe",
  },
  {
    name: "TaskCreate",
    effect: "coordinate",
    description: "Adds an item to the shared task list.",
  },
  {
    name: "TaskGet",
    effect: "coordinate",
    description: "Shows one item of the task list.",
    isConcurrencySafe: true,
    repeats: "pure",
  },
  {
    name: "TaskList",
    effect: "coordinate",
    description: "Shows the task list.",
    isConcurrencySafe: true,
    repeats: "pure",
  },
  {
    name: "TaskOutput",
    oldNames: ["BashOutput", "BashOutputTool", "AgentOutputTool"],
    effect: "coordinate",
    description: "Reads what a background task has written.",
    isConcurrencySafe: true,
    repeats: "pure",
  },
  {
    name: "TaskStop",
    oldNames: ["KillShell", "KillBash"],
    effect: "coordinate",
    description: "Stops a background task.",
  },
  {
    name: "TaskUpdate",
    effect: "coordinate",
    description: "Changes an item of the task list.",
  },
  { name: "TeamCreate", effect: "coordinate", description: "Creates a team of agents." },
  { name: "TeamDelete", effect: "coordinate", description: "Deletes a team." },
  {
    name: "TodoWrite",
    effect: "coordinate",
    description: "Keeps the agent's own list of steps.",
    repeats: "pure",
  },
  {
    name: "ToolSearch",
    effect: "read",
    description: "Finds tools of MCP servers and loads them.",
    callField: "query",
  },
  {
    name: "WebFetch",
    effect: "network",
    description: "Reads a web page.",
    subject: "web",
    mainField: "url",
    parameters: ["prompt"],
    isConcurrencySafe: true,
  },
  { name: "WebSearch", effect: "network", description: "Searches the web.", callField: "query" },
  {
    name: "Workflow",
    effect: "execute",
    description: "Runs a script that starts many agents and decides while they work.",
    subject: "workflow",
    callField: "name",
    parameters: [],
    needsChildren: true,
    // The run it starts takes up what it finds of an earlier one.
    repeats: "unsafe",
  },
  {
    name: "Write",
    effect: "edit",
    description: "Writes a whole file.",
    ...file,
    parameters: [],
    grantsUse: "write",
    restrictsUse: "write",
    repeats: "idempotent",
  },
] as const satisfies readonly ToolFacts[];

export type ToolName = (typeof rows)[number]["name"];

export const toolTable: readonly (ToolFacts & { readonly name: ToolName })[] = rows;

/** What the table declares about each tool, by its current name. */
export const toolFacts: ReadonlyMap<string, ToolFacts> = new Map(rows.map((row) => [row.name, row]));

/** Tools of Claude Code that this product has under no name, with their old names. */
const absentTools: readonly (readonly [name: string, ...oldNames: string[]])[] = [
  ["ListAgents", "ListPeers"],
  ["SendUserMessage", "Brief"],
  ["ReadMcpResourceDirTool", "ReadMcpResourceDir"],
  ...`Artifact ClaudeDesign CronCreate CronDelete CronList EndConversation EnterWorktree ExitWorktree LSP Monitor
  OfferChromeSetup Projects ProposeGoal PushNotification ReadNotifications RemoteTrigger ReportFindings ScheduleWakeup
  SendFeedback SendUserFile ShareOnboardingGuide ShowOnboardingRolePicker SlashCommand SubagentHandback TodoRead
  WaitForMcpServers propose_skills`
    .split(/\s+/)
    .map((name) => [name] as const),
];

export const absentToolNames: ReadonlySet<string> = new Set([
  ...toolTable.filter(({ isAbsent }) => isAbsent === true).map(({ name }) => name),
  ...absentTools.map(([name]) => name),
]);

/** Old names with the tool that does the work now; some lead to tools that only other products have. */
export const toolAliases: ReadonlyMap<string, string> = new Map([
  ...toolTable.flatMap(({ name, oldNames = [] }) => oldNames.map((old) => [old, name] as const)),
  ...absentTools.flatMap(([name, ...oldNames]) => oldNames.map((old) => [old, name] as const)),
]);

/** All names of tools: current ones, old ones, and those that only other products have. */
export const knownToolNames: ReadonlySet<string> = new Set([
  ...toolTable.map(({ name }) => name),
  ...toolAliases.keys(),
  ...absentToolNames,
]);

/** The current name of a tool, for old names and for other letter case; any other name unchanged. */
export function canonicalToolName(name: string): string {
  return byLowerCase.get(name.toLowerCase()) ?? name;
}

/** The current name of a tool and all its old ones. */
export function namesOfTool(name: string): readonly string[] {
  const current = toolAliases.get(name) ?? name;
  return oldNames.has(current) ? [current, ...(oldNames.get(current) ?? [])] : [name];
}

const byLowerCase: ReadonlyMap<string, string> = new Map([
  ...toolTable.map(({ name }) => [name.toLowerCase(), name] as const),
  ...[...toolAliases].map(([old, current]) => [old.toLowerCase(), current] as const),
]);

const oldNames: ReadonlyMap<string, readonly string[]> = new Map(
  [...Map.groupBy(toolAliases, ([, current]) => current)].map(([current, entries]) => [
    current,
    entries.map(([old]) => old),
  ]),
);
