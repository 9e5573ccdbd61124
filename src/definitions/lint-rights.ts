import type { Issue } from "../foundation/diagnostic.ts";
import { parseToolEntry } from "../tools/tool-entry.ts";
import { resolveToolName } from "../tools/tool-names.ts";
import type { AgentDefinition } from "./agent-definition.ts";
import type { LintRule } from "./lint-definition.ts";

/** Fields by which a definition asks for more than its reader may expect, or for more than it will get. */
export const lintRights: LintRule = (definition, { trusted }) =>
  cases
    .filter(({ applies }) => applies(definition, isHeldBack(definition, trusted)))
    .map(({ applies: _applies, ...issue }) => issue);

interface RightsCase extends Issue {
  readonly applies: (definition: AgentDefinition, isHeldBack: boolean) => boolean;
}

const howToTrust =
  "Trust the folder (`--trust` for one run; `retinue doctor` tells more) once you have read it.";

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
