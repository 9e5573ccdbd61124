import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import type { FormatId } from "./format-facts.ts";
import { readForeignFile } from "./read-foreign-file.ts";

const fenced = (fields: string): string => `---\n${fields}\n---\n\nHelp.\n`;
const named = "name: helper\ndescription: Helps.";

/** What a file gives at run time: the tools of its agent (nothing is every tool), and what is reported about it. */
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
    [["Bash", "Edit", "Grep", "NotebookEdit", "WebFetch", "Write"]],
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
    "Cursor, with a list of tools, which Cursor ignores",
    "cursor",
    "helper.md",
    fenced(`${named}\ntools: Read`),
    [["Read"]],
    ["tools-not-expressible"],
  ],
  [
    "Copilot, with servers whose lists end at the margin of their key",
    "copilot",
    "helper.agent.md",
    fenced("description: Helps.\ntools: ['a/*']\nmcp-servers:\n  a:\n    args: [\n      'x',\n    ]"),
    [["mcp__a"]],
    ["yaml-repaired"],
  ],
  [
    "Gemini CLI, several agents elsewhere",
    "gemini",
    "helper.md",
    fenced("- kind: remote\n  name: a\n  agent_card_url: https://a.example"),
    [],
    ["remote-agent"],
  ],
  [
    "Kiro, with all that it has built in, which is neither a skill nor a question",
    "kiro",
    "helper.json",
    '{"name": "helper", "description": "Helps.", "prompt": "p", "tools": ["@builtin"]}',
    [
      [
        "Agent",
        "Bash",
        "Edit",
        "Glob",
        "Grep",
        "LS",
        "NotebookEdit",
        "Read",
        "TodoWrite",
        "WebFetch",
        "WebSearch",
        "Write",
      ],
    ],
    [],
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

/** Restrictions that a product does not read, or not in this spelling. What is written limits here. */
const restricted: readonly (readonly [
  what: string,
  FormatId,
  text: string,
  limits: { readonly tools?: readonly string[]; readonly denied?: readonly string[]; readonly mode?: string },
  codes: readonly string[],
])[] = [
  [
    "Cursor, with denials and a mode",
    "cursor",
    fenced(`${named}\ndisallowedTools: Write, Edit\npermissionMode: plan`),
    { denied: ["Edit", "Write"], mode: "plan" },
    ["deny-dropped", "mode-dropped"],
  ],
  [
    "Cursor, with a mode that would open something",
    "cursor",
    fenced(`${named}\npermissionMode: bypassPermissions`),
    {},
    ["unknown-kept"],
  ],
  [
    "Gemini CLI, with denials",
    "gemini",
    fenced(`${named}\ntools: [read_file, write_file]\ndisallowedTools: [Write]`),
    { tools: ["Read", "Write"], denied: ["Write"] },
    ["deny-dropped"],
  ],
  [
    "Codex, with a list of tools",
    "codex",
    'name = "helper"\ndescription = "Helps."\ndeveloper_instructions = "p"\ntools = ["read_file"]\n',
    { tools: ["Read"] },
    ["tools-not-expressible"],
  ],
  [
    "opencode, with a misspelt permission",
    "opencode",
    fenced("description: Helps.\npermissions:\n  edit: deny"),
    { denied: ["Edit", "NotebookEdit", "Write"] },
    ["deny-dropped"],
  ],
  [
    "opencode, with the list of its next version",
    "opencode",
    fenced("description: Helps.\npermissions:\n  - { permission: bash, resource: 'rm *', effect: deny }"),
    { denied: ["Bash(rm *)"] },
    [],
  ],
  [
    "opencode, with a list of rules that is none",
    "opencode",
    fenced("description: Helps.\npermissions:\n  - deny edit"),
    {},
    ["unreadable-restriction"],
  ],
  [
    "opencode, with names of tools where keys belong",
    "opencode",
    fenced("description: Helps.\npermission:\n  write: deny\n  Bash: deny\n  frobnicate: allow"),
    { denied: ["Bash", "Edit", "NotebookEdit", "Write"] },
    ["deny-dropped", "unknown-tool"],
  ],
  [
    "opencode, with rules for all agents of its file, which one of them opens again",
    "opencode-json",
    '{"permission": {"edit": "deny", "bash": "deny"}, "agent": {"helper": {"description": "d", "prompt": "p", "permission": {"edit": "allow"}}}}',
    { denied: ["Bash"] },
    [],
  ],
  [
    "opencode, in the form of its next version",
    "opencode-json",
    '{"agents": {"helper": {"description": "d", "system": "p", "permissions": [{"action": "bash", "effect": "deny"}]}}}',
    { denied: ["Bash"] },
    [],
  ],
  [
    "Cursor, with another spelling",
    "cursor",
    fenced(`${named}\nread-only: true`),
    { denied: ["Bash", "Edit", "NotebookEdit", "Write"] },
    ["misspelt-key"],
  ],
  [
    "Copilot, with another spelling",
    "copilot",
    fenced("description: d\nTools: [read]"),
    { tools: ["Read"] },
    ["misspelt-key"],
  ],
  [
    "Copilot, with a limit from elsewhere in the file",
    "copilot",
    fenced("description: d\nshared: &s { tools: [read] }\n<<: *s"),
    { tools: ["Read"] },
    ["unknown-kept"],
  ],
  [
    "Copilot, with two lists",
    "copilot",
    fenced("description: d\ntools: [read]\ntools: ['*']"),
    {},
    ["unreadable-restriction"],
  ],
  [
    "Copilot, with the same list twice",
    "copilot",
    fenced("description: d\ntools: [read]\ntools: [read]"),
    { tools: ["Read"] },
    ["duplicate-key"],
  ],
  [
    "Qwen Code, with a mode in another case",
    "qwen",
    fenced(`${named}\napproval_mode: Plan`),
    { mode: "plan" },
    ["misspelt-key"],
  ],
  [
    "Kiro, with what needs no question, which is no limit",
    "kiro-md",
    fenced(`${named}\ntools: [read]\nallowedTools: [read]`),
    { tools: ["Read"] },
    ["mode-dropped"],
  ],
  [
    "Kiro, with the same tool under two names",
    "kiro",
    '{"name": "helper", "description": "d", "prompt": "p", "tools": ["shell"], "toolsSettings": {"shell": {}, "execute_bash": {"allowedCommands": ["git .*"]}}}',
    { tools: ["Bash(git *)"] },
    [],
  ],
  [
    "Kiro, with settings that are none",
    "kiro",
    '{"name": "helper", "description": "d", "prompt": "p", "tools": ["*"], "toolsSettings": {"shell": ["git .*"]}}',
    {},
    ["unreadable-restriction"],
  ],
  [
    "Codex, with a switch that is none",
    "codex",
    'name = "helper"\ndescription = "d"\ndeveloper_instructions = "p"\nfeatures.shell_tool = "false"\n',
    {},
    ["unreadable-restriction"],
  ],
];

describe("restrictions that a product would not see", () => {
  test.each(restricted)("%s [PRT-1]", (_what, format, text, limits, codes) => {
    const parsed = readForeignFile(text, "/p/folder/helper", { scope: "project", path: "/p/folder", format });
    const found = parsed.find(({ definition }) => definition !== undefined)?.definition;
    const { tools, disallowedTools, permissionMode: mode } = found ?? {};
    expect({
      ...(tools === undefined ? {} : { tools: tools.toSorted() }),
      ...(disallowedTools === undefined ? {} : { denied: disallowedTools.toSorted() }),
      ...(mode === undefined ? {} : { mode }),
    }).toEqual(limits);
    expect(
      [...new Set(parsed.flatMap(({ diagnostics }) => diagnostics.map(({ code }) => code)))].sort(),
    ).toEqual(codes);
    expect(found === undefined).toBe(codes.includes("unreadable-restriction"));
  });

  test("a colon in the name of a model is no effort in pi, unless it is one [PRT-1]", () => {
    const modelOf = (model: string) =>
      readForeignFile(fenced(`${named}\nmodel: ${model}`), "/p/h.md", {
        scope: "project",
        path: "/p",
        format: "pi",
      }).find(({ definition }) => definition !== undefined)?.definition;
    expect(modelOf("ollama/llama3:8b")).toMatchObject({ model: "ollama/llama3:8b" });
    expect(modelOf("openai/gpt-5:high")).toMatchObject({ model: "openai/gpt-5", effort: "high" });
  });
});

describe("files that were made to harm", () => {
  const deep = `${"[".repeat(100_000)}${"]".repeat(100_000)}`;
  const long = `${"a_".repeat(20_000)}x`;
  test.each<[string, FormatId, string, string]>([
    ["nested JSON", "opencode-json", `{"agent": {"helper": {"prompt": "p", "x": ${deep}}}}`, "invalid-json"],
    ["nested TOML", "codex", `name = "helper"\nx = ${deep}\n`, "invalid-toml"],
    ["nested YAML", "gemini", fenced(`${named}\nx: ${deep}`), "unknown-kept"],
    ["a name of thousands of parts", "gemini", fenced(`${named}\ntools: [mcp_${long}]`), "unknown-tool"],
    ["a denial of such a name", "opencode", fenced(`permission:\n  ${long}: deny`), "no-description"],
  ])("%s costs no more than its file [PRT-1]", (_what, format, text, code) => {
    expect(read(format, "helper", text).codes).toContain(code);
  });

  test("a denial that is too long to be understood denies all servers [PRT-1]", () => {
    const parsed = readForeignFile(fenced(`description: d\npermission:\n  ${long}: deny`), "/p/folder/h.md", {
      scope: "project",
      path: "/p/folder",
      format: "opencode",
    });
    expect(parsed.find(({ definition }) => definition !== undefined)?.definition).toMatchObject({
      disallowedTools: ["mcp__*"],
    });
  });
});

describe("files as they are in public repositories", () => {
  test.each(shapes)("%s [PRT-1]", (_what, format, name, text, tools, codes) => {
    expect(read(format, name, text)).toEqual({ tools, codes });
  });
});

describe("opencode.json beside agents in files of their own", () => {
  const write = (settings: string, name = "opencode.json") => {
    const root = realpathSync(mkdtempSync(join(tmpdir(), "retinue-opencode-")));
    onTestFinished(() => rmSync(root, { recursive: true, force: true }));
    const path = join(root, ".opencode", "agents");
    mkdirSync(join(path, "team"), { recursive: true });
    writeFileSync(join(root, name), settings);
    const text = "---\ndescription: H.\npermission:\n  webfetch: allow\n---\nHelp.\n";
    return readForeignFile(text, join(path, "team", "a.md"), {
      scope: "project",
      path,
      format: "opencode",
      within: root,
    });
  };
  const denials = (parsed: ReturnType<typeof write>) =>
    parsed.flatMap(({ definition }) => (definition === undefined ? [] : [definition.disallowedTools]));

  test.each([
    ["opencode.json", '{"permission": {"bash": "deny", "webfetch": "deny"}}'],
    [".opencode/opencode.jsonc", '{"permission": {"bash": "deny", /* here too */ },}'],
    ["opencode.json", '{"tools": {"bash": false}}'],
  ])("what %s denies holds for them, until they allow it [PRT-1]", (name, settings) => {
    expect(denials(write(settings, name))).toEqual([["Bash"]]);
  });

  test.each([
    ["opencode.json", '{"agent": {"team/a": {"permission": {"bash": "deny"}}}}'],
    ["opencode.json", '{"mode": {"team/a": {"tools": {"bash": false}}}}'],
    [
      ".opencode/opencode.json",
      '{"agents": {"team/a": {"permission": {"bash": "deny", "webfetch": "deny"}}}}',
    ],
  ])("what %s denies an agent of the same name holds too, until its file allows it [PRT-1]", (name, settings) => {
    const parsed = write(settings, name);
    expect(denials(parsed)).toEqual([["Bash"]]);
    expect(parsed.flatMap(({ diagnostics }) => diagnostics.map(({ code }) => code))).toContain(
      "settings-count-too",
    );
  });

  test("an agent that settings switch off is none, unless its file switches it on [PRT-1]", () => {
    expect(denials(write('{"agent": {"team/a": {"disable": true}}}'))).toEqual([]);
  });

  test("settings between the root of the repository and the agent count, and what lies above does not [PRT-1]", () => {
    const outside = realpathSync(mkdtempSync(join(tmpdir(), "retinue-opencode-")));
    onTestFinished(() => rmSync(outside, { recursive: true, force: true }));
    const within = join(outside, "repository", "packages", "shop");
    const path = join(within, ".opencode", "agents");
    mkdirSync(path, { recursive: true });
    mkdirSync(join(outside, "repository", ".git"));
    const deny = (folder: string, key: string) =>
      writeFileSync(join(folder, "opencode.json"), JSON.stringify({ permission: { [key]: "deny" } }));
    deny(outside, "edit");
    deny(join(outside, "repository"), "bash");
    deny(join(outside, "repository", "packages"), "webfetch");
    const text = "---\ndescription: H.\n---\nHelp.\n";
    const place = { scope: "project", path, format: "opencode", within } as const;
    expect(denials(readForeignFile(text, join(path, "a.md"), place))).toEqual([["Bash", "WebFetch"]]);
  });

  test("one that cannot be read lets none of them be loaded [PRT-1]", () => {
    expect(denials(write('{"permission": '))).toEqual([]);
    expect(denials(write('{"permission": {"bash": "no"}}'))).toEqual([]);
  });
});
