import { describe, expect, test } from "vitest";
import type { FormatId } from "./format-places.ts";
import { readForeignFile } from "./read-foreign-file.ts";

const fenced = (fields: string): string => `---\n${fields}\n---\n\nHelp.\n`;
const named = "name: helper\ndescription: Helps.";

/** What a file gives at run time: the tools of its agent (nothing is every tool), and what is said about it. */
function read(format: FormatId, name: string, text: string) {
  const parsed = readForeignFile(text, `/p/folder/${name}`, { scope: "project", path: "/p/folder", format });
  return {
    tools: parsed.flatMap(({ definition }) =>
      definition === undefined ? [] : [definition.tools?.toSorted() ?? "all"],
    ),
    codes: [...new Set(parsed.flatMap(({ diagnostics }) => diagnostics.map(({ code }) => code)))].sort(),
  };
}

/** Shapes that are common in public repositories: read as meant, or reported. */
const shapes: readonly (readonly [
  what: string,
  FormatId,
  name: string,
  text: string,
  tools: readonly unknown[],
  codes: readonly string[],
])[] = [
  [
    "Copilot, with the words of older versions of VS Code",
    "copilot",
    "helper.agent.md",
    fenced(
      "description: Helps.\ntools: ['codebase', 'editFiles', 'runCommands', 'fetch', 'usages', 'vscodeAPI']",
    ),
    [["Bash", "Edit", "Glob", "Grep", "NotebookEdit", "WebFetch", "Write"]],
    ["unknown-tool"],
  ],
  [
    "Copilot, with a list that continues without indentation",
    "copilot",
    "helper.agent.md",
    fenced("description: Helps.\ntools: ['read',\n'search']"),
    [["Glob", "Grep", "LS", "Read"]],
    ["yaml-repaired"],
  ],
  [
    "Copilot, with servers whose YAML is broken",
    "copilot",
    "helper.agent.md",
    fenced('description: Helps.\nmcp-servers:\n  a:\n    args: [\'x\n    tools: ["*"]'),
    [],
    ["unreadable-restriction"],
  ],
  [
    "Copilot, without a description",
    "copilot",
    "helper.agent.md",
    fenced("tools: ['read']"),
    [["Read"]],
    ["no-description"],
  ],
  [
    "Gemini CLI, with the names of another product",
    "gemini",
    "helper.md",
    fenced(`${named}\ntools:\n  - Read\n  - Bash\n  - read_file`),
    [["Read"]],
    ["unknown-tool"],
  ],
  [
    "Gemini CLI, an agent elsewhere",
    "gemini",
    "helper.md",
    fenced(`${named}\nkind: remote`),
    [],
    ["remote-agent"],
  ],
  [
    "opencode, with a list where a mapping belongs",
    "opencode",
    "helper.md",
    fenced("description: Helps.\ntools: [read, grep]"),
    [],
    ["unreadable-restriction"],
  ],
  [
    "opencode, with a misspelt permission, which limits nothing there",
    "opencode",
    "helper.md",
    fenced("description: Helps.\npermissions:\n  edit: deny"),
    ["all"],
    ["unknown-kept"],
  ],
  [
    "Cursor, with a list of tools, which Cursor ignores",
    "cursor",
    "helper.md",
    fenced(`${named}\ntools: Read`),
    ["all"],
    ["unknown-kept"],
  ],
  ["Kiro, a prompt beside the agents", "kiro-md", "prompts/helper.md", "# Prompt\n", [], ["no-frontmatter"]],
  [
    "Kiro, with tools and what needs no question",
    "kiro",
    "helper.json",
    '{"name": "helper", "description": "Helps.", "prompt": "p", "tools": ["read", "code"], "allowedTools": ["read"]}',
    [["Read"]],
    ["mode-dropped", "unknown-tool"],
  ],
  [
    "Codex, a role in a table of its own",
    "codex",
    "helper.toml",
    '[agent]\nname = "helper"\n',
    [],
    ["no-description", "no-name", "unknown-kept"],
  ],
  [
    "Factory, one category",
    "factory",
    "helper.md",
    fenced(`${named}\ntools: read-only`),
    [["Glob", "Grep", "LS", "Read", "TodoWrite"]],
    [],
  ],
  [
    "Qwen Code, a list and no mode",
    "qwen",
    "helper.md",
    fenced(`${named}\ntools:\n  - read_file\n  - grep_search`),
    [["Grep", "Read"]],
    [],
  ],
];

describe("files as they are in public repositories", () => {
  test.each(shapes)("%s [PRT-1]", (_what, format, name, text, tools, codes) => {
    expect(read(format, name, text)).toEqual({ tools, codes });
  });
});
