import type { ToolName } from "../../foundation/tool-aliases.ts";

/** What using a tool does to the world; modes and background rules ask this, never a tool's name. */
export type ToolEffect = "read" | "edit" | "execute" | "network" | "interact" | "spawn" | "coordinate";

export interface ToolSummary {
  readonly name: ToolName;
  readonly effect: ToolEffect;
  /** It works on child agents, so only those who can start some have it. */
  readonly needsChildren?: true;
  /** One line for people who list tools; what the model reads stands with the tool itself. */
  readonly description: string;
}

export const builtinTools: readonly ToolSummary[] = [
  { name: "Agent", effect: "spawn", description: "Hands a piece of work to a child agent." },
  { name: "AskUserQuestion", effect: "interact", description: "Puts a question with choices to the person." },
  { name: "Bash", effect: "execute", description: "Runs a shell command." },
  { name: "Edit", effect: "edit", description: "Replaces a piece of text in a file." },
  { name: "EnterPlanMode", effect: "interact", description: "Asks the person to switch to planning." },
  {
    name: "ExitPlanMode",
    effect: "interact",
    description: "Shows a finished plan and asks to carry it out.",
  },
  { name: "Glob", effect: "read", description: "Finds files by name pattern." },
  { name: "Grep", effect: "read", description: "Searches file contents." },
  {
    name: "ListMcpResourcesTool",
    effect: "read",
    description: "Lists what MCP servers offer for reading.",
  },
  { name: "NotebookEdit", effect: "edit", description: "Changes a cell of a notebook." },
  { name: "Read", effect: "read", description: "Reads a file." },
  { name: "ReadMcpResourceTool", effect: "network", description: "Reads a resource of an MCP server." },
  { name: "SendMessage", effect: "coordinate", needsChildren: true, description: "Writes to a child agent." },
  { name: "Skill", effect: "read", description: "Loads a skill's instructions." },
  { name: "TaskCreate", effect: "coordinate", description: "Puts an item on the shared task list." },
  { name: "TaskGet", effect: "coordinate", description: "Shows one item of the task list." },
  { name: "TaskList", effect: "coordinate", description: "Shows the task list." },
  { name: "TaskOutput", effect: "coordinate", description: "Reads what a background task has written." },
  { name: "TaskStop", effect: "coordinate", description: "Stops a background task." },
  { name: "TaskUpdate", effect: "coordinate", description: "Changes an item of the task list." },
  { name: "TeamCreate", effect: "coordinate", description: "Founds a team of agents." },
  { name: "TeamDelete", effect: "coordinate", description: "Dissolves a team." },
  { name: "TodoWrite", effect: "coordinate", description: "Keeps the agent's own list of steps." },
  { name: "WebFetch", effect: "network", description: "Reads a web page." },
  { name: "WebSearch", effect: "network", description: "Searches the web." },
  { name: "Write", effect: "edit", description: "Writes a whole file." },
];

/** Tools that Claude Code has or had and this product has not. */
export const absentToolNames: ReadonlySet<string> = new Set(
  `Artifact ClaudeDesign CronCreate CronDelete CronList EndConversation EnterWorktree ExitWorktree LSP ListAgents
  Monitor OfferChromeSetup PowerShell Projects ProposeGoal
  PushNotification ReadMcpResourceDirTool ReadNotifications
  RemoteTrigger ReportFindings ScheduleWakeup SendFeedback SendUserFile SendUserMessage ShareOnboardingGuide
  ShowOnboardingRolePicker SlashCommand SubagentHandback TodoRead ToolSearch WaitForMcpServers Workflow
  propose_skills`.split(/\s+/),
);
