import type { DocumentPath, Issue } from "../../foundation/diagnostic.ts";
import { parseRule } from "../../permissions/rules/parse-rule.ts";
import { warnOfRule } from "../../permissions/rules/rule-warning.ts";
import type { ToolMatch } from "./match-tools.ts";

type NoteCode =
  | "malformed-entry"
  | "malformed-denial"
  | "tool-is-disallowed"
  | "subagent-cannot-spawn"
  | "needs-agent-tool"
  | "memory-tool-disallowed";

/** A finding about one entry, in words that name it. */
export function issue(code: NoteCode, entry: string, path: DocumentPath): Issue {
  return { code, path, ...notes[code](shorten(entry)) };
}

/** What a person should know about how an entry was understood; nothing when it was taken as written. */
export function describeMatch(entry: string, { meaning, tools }: ToolMatch, path: DocumentPath): Issue[] {
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
          message: `There is no tool here that does what \`${shown}\` does; the entry has no effect.`,
        },
      ];
    case "unknown":
      return [unknown(shown, meaning.nearest, path)];
  }
}

/** A specifier that narrows a tool to calls that no one can make. */
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
    ...(nearest === undefined ? {} : { advice: `Did you mean \`${nearest}\`?` }),
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
    message: `\`${entry}\` has no effect in a subagent: a subagent never starts agents.`,
  }),
  "needs-agent-tool": (entry) => ({
    severity: "note",
    message: `\`${entry}\` has no effect in an agent that cannot start others.`,
    advice: "Add `Agent` to the list.",
  }),
  "memory-tool-disallowed": (entry) => ({
    severity: "note",
    message: `\`memory\` would add \`${entry}\`, but \`disallowedTools\` takes it away.`,
    advice: `Remove \`${entry}\` from \`disallowedTools\` if the agent should keep its memory with it.`,
  }),
};
