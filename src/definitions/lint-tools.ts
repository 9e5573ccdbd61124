import type { Issue } from "../foundation/diagnostic.ts";
import { builtinTools } from "../tools/grants/builtin-tools.ts";
import type { AvailableTool } from "../tools/grants/match-tools.ts";
import { parseToolEntry } from "../tools/grants/tool-entry.ts";
import { grantTools } from "../tools/grants/tool-grants.ts";
import type { AgentDefinition } from "./agent-definition.ts";

/** Entries of `tools` and `disallowedTools` that do not do what their author meant. */
export function lintTools(definition: AgentDefinition): Issue[] {
  const available = assumedTools(definition);
  const grant = grantTools({ definition, available, role: "subagent" });
  const notes = grant.notes.map((note) => (note.code === "tool-is-disallowed" ? contradiction(note) : note));
  if (grant.type === "granted") return notes;
  const asMain = grantTools({ definition, available, role: "main" });
  return [asMain.type === "granted" ? onlyForMain() : noToolLeft(), ...notes];
}

/** The built-in tools, and every MCP tool that is named: which servers will run is not known from a file. */
export function assumedTools(
  definition: Pick<AgentDefinition, "tools" | "disallowedTools">,
): readonly AvailableTool[] {
  const named = [...(definition.tools ?? []), ...(definition.disallowedTools ?? [])]
    .map((entry) => parseToolEntry(entry).name)
    .filter((name) => name.startsWith("mcp__") && name.length > "mcp__".length);
  return [
    ...builtinTools.map(({ description: _text, ...tool }): AvailableTool => ({ ...tool, origin: "builtin" })),
    ...[...new Set(named)].map((name): AvailableTool => ({ name, effect: "network", origin: "mcp" })),
  ];
}

function contradiction(note: Issue): Issue {
  return { ...note, severity: "warning", advice: "Remove it from one of the two lists." };
}

function noToolLeft(): Issue {
  return {
    severity: "error",
    code: "no-tool-left",
    message: "No entry of `tools` is a tool that this agent can have, so starting it is refused.",
    advice: "Name at least one tool, such as `tools: Read, Grep`, or remove the key to give all tools.",
    path: ["tools"],
  };
}

function onlyForMain(): Issue {
  return {
    severity: "warning",
    code: "only-for-main-agent",
    message:
      "`tools` holds nothing but starting other agents, which only a main agent may; as a subagent it is refused.",
    advice: "Add a tool that works in a subagent, such as `Read`, unless it is only started with `--agent`.",
    path: ["tools"],
  };
}
