import { agentFormats } from "@retinue/config/formats/agent-formats.ts";
import { definitionOf } from "@retinue/config/formats/definition-of.ts";
import { type FormatId, formatIds } from "@retinue/config/formats/format-facts.ts";
import type { PortableAgent, ReadAgent } from "@retinue/config/formats/portable-agent.ts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { findWidenings, levelOf, rightsOf } from "../../../planning/agent-rights.ts";
import { convertAgent } from "./convert-agent.ts";

const entry = fc.constantFrom(
  ..."Read Write Edit Bash Glob Grep WebFetch WebSearch Agent TodoWrite Skill NotebookEdit AskUserQuestion LS".split(
    " ",
  ),
  "Bash(git diff *)",
  "Bash(npm test)",
  "Edit(src/**)",
  "Write(src/**)",
  "Read(docs/**)",
  "mcp__github",
  "mcp__github__create_issue",
  "mcp__my_server__do_it",
);
const list = fc.uniqueArray(entry, { maxLength: 6 });
const word = fc.constantFrom(
  "Reviews changes: finds bugs. Use after edits.",
  "Writes tests",
  'Says "yes" #1',
  "Zwei\nZeilen",
);

/** Our own file of an agent with some fields. */
const ownFile = fc
  .record(
    {
      description: word,
      tools: list,
      disallowedTools: list,
      model: fc.constantFrom("sonnet", "inherit", "claude-opus-4-1", "openai/gpt-5"),
      permissionMode: fc.constantFrom("plan", "default", "acceptEdits", "dontAsk", "bypassPermissions"),
      maxTurns: fc.integer({ min: 1, max: 90 }),
      background: fc.boolean(),
      skills: fc.constantFrom(["pdf"], ["pdf", "docx"]),
      memory: fc.constantFrom("user", "project"),
      isolation: fc.constant("worktree"),
      color: fc.constantFrom("red", "blue"),
      effort: fc.constantFrom("low", "high", "max"),
      limits: fc.constantFrom({ seconds: 120 }, { seconds: 90, usd: 1 }),
      hooks: fc.constant({
        PreToolUse: [{ matcher: "Bash", hooks: [{ type: "command", command: "./guard" }] }],
      }),
      mcpServers: fc.constantFrom(
        ["github"],
        [{ own: { command: "npx", args: ["own"] } }],
        [{ serverName: "github", tools: ["read"] }],
      ),
    },
    { requiredKeys: ["description"] },
  )
  .map((fields) => {
    const lines = Object.entries(fields).map(([key, value]) => `${key}: ${JSON.stringify(value)}`);
    return `---\nname: helper\n${lines.join("\n")}\n---\n\nYou help.\n\n---\nWith "quotes" and \\ and '''.\n`;
  });

function read(
  format: FormatId,
  text: string,
  relative = agentFormats[format].fileName({ id: "helper" } as PortableAgent),
): ReadAgent {
  const reading = agentFormats[format].read(text, { file: `/p/${relative}`, relative });
  const [agent] = reading.agents;
  if (agent === undefined) throw new Error(`${format}: ${JSON.stringify(reading.diagnostics)}\n${text}`);
  return agent;
}

const rights = (agent: ReadAgent, others: readonly ReadAgent[] = []) => {
  const definitions = [agent, ...others].map(
    (each) => definitionOf(each, { scope: "user" }).definition ?? { tools: [] },
  );
  return rightsOf(definitions[0] ?? { tools: [] }, definitions.slice(1));
};

const pairs = formatIds.flatMap((from) => formatIds.map((to) => [from, to] as const));

describe("between all pairs of formats", () => {
  test.each(pairs)("%s to %s widens nothing in silence [PRT-3]", (from, to) => {
    fc.assert(
      fc.property(ownFile, (text) => {
        const first = convertAgent(read("claude", text), from, {});
        const source = read(from, first.text, first.target);
        const result = convertAgent(source, to, {});
        const target = read(to, result.text, result.target);
        const after = {
          ...target.agent,
          ...target.agent.there,
        };
        const found = findWidenings(rights(source, [target]), rights({ ...target, agent: after }, [source]));
        expect(result.widenings).toEqual(found);
        expect(result.losses.some(({ code }) => code === "rights-widened")).toBe(found.length > 0);
        const isNew = result.rights.filter((row) => row.before === "none" && row.after !== "none");
        if (isNew.some((row) => row.class !== "todo" && row.class !== "notebook"))
          expect(found).not.toEqual([]);
      }),
      { numRuns: 15 },
    );
  });

  test.each(formatIds)("a canonical file of %s comes back byte for byte [PRT-2]", (format) => {
    fc.assert(
      fc.property(ownFile, (text) => {
        const canonical = agentFormats[format].write(read("claude", text).agent);
        expect(agentFormats[format].write(read(format, canonical).agent)).toBe(canonical);
      }),
    );
  });

  test.each([
    ["copilot", "description: d\ntools: [read/readFile, edit/editFiles, web/fetch, githubRepo, 'github/*']"],
    [
      "gemini",
      "name: helper\ndescription: d\ntools: [read_many_files, search_file_content, mcp_my_server_do_it]",
    ],
    ["factory", "name: helper\ndescription: d\ntools: [ApplyPatch, Read]"],
    ["kiro-md", "name: helper\ndescription: d\ntools: ['@builtin', '@git', knowledge]"],
  ] as const)("words of %s that are finer than ours come back as they were [PRT-2]", (format, fields) => {
    const source = read(format, `---\n${fields}\n---\n\nHelp.\n`);
    const again = read(format, agentFormats[format].write(source.agent));
    expect(rights(again, [source])).toEqual(rights(source, [again]));
    expect(again.agent.tools).toEqual(source.agent.tools);
  });

  test("a finer word of which a part is denied is not written [PRT-2, PRT-3]", () => {
    const source = read(
      "copilot",
      "---\ndescription: d\ntools: [apply_patch, edit/createFile, edit/editFiles]\ndisallowedTools: Write\n---\n\nHelp.\n",
    );
    const { widenings, text } = convertAgent(source, "copilot", {});
    expect(text).toContain("tools:\n  - edit\n  - edit/editFiles\n");
    expect(widenings.map((each) => each.text).sort()).toEqual(["NotebookEdit is new", "Write is new"]);
  });

  test.each([
    ["qwen", "Rev Iew", "rev-iew"],
    ["qwen", "a", "agent-a"],
    ["qwen", "审阅_x", "审阅_x"],
    ["agents", "Rev_Iew", "rev-iew"],
    ["agents", "rev-2", "rev-2"],
  ] as const)("%s gets %s under a name that it takes [PRT-2]", (to, id, name) => {
    const source = read("claude", `---\nname: ${id}\ndescription: d\n---\n\nHelp.\n`);
    const { text, target, losses } = convertAgent(source, to, {});
    expect(text).toContain(`name: ${name}\n`);
    expect(target).toBe(`${name}.md`);
    expect(losses.map(({ code }) => code)).toEqual(id === name ? [] : ["name-changed"]);
  });

  test("what is written from a list of folders and one of files is canonical [PRT-2]", () => {
    const source = read(
      "gemini",
      "---\nname: a\ndescription: d\ntools: [glob, list_directory]\n---\n\nHelp.\n",
    );
    const { text } = convertAgent(source, "claude", {});
    expect(agentFormats.claude.write(read("claude", text).agent)).toBe(text);
  });

  test("without a loss the way there and back is the same agent [PRT-2]", () => {
    fc.assert(
      fc.property(ownFile, fc.constantFrom(...formatIds), (text, to) => {
        const source = read("claude", text);
        const { losses, text: there, target } = convertAgent(source, to, {});
        if (losses.length > 0) return;
        const back = convertAgent(read(to, there, target), "claude", {});
        expect(rights(read("claude", back.text), [source])).toEqual(rights(source, [source]));
      }),
      { numRuns: 200 },
    );
  });
});

const reviewer =
  "---\nname: reviewer\ndescription: Reviews. Use after edits. Not for fixes.\ntools: Read, Grep, Glob, Bash(git diff *)\n---\n\nReview.\n";

describe("a restricted agent", () => {
  const codes = (to: FormatId, text = reviewer) =>
    convertAgent(read("claude", text), to, {}).losses.map(({ code }) => code);

  test("keeps its rights in opencode, with everything denied first [PRT-3]", () => {
    const { text, widenings } = convertAgent(read("claude", reviewer), "opencode", {});
    expect(widenings).toEqual([]);
    expect(text).toBe(
      "---\ndescription: Reviews. Use after edits. Not for fixes.\nmode: subagent\npermission:\n  '*': deny\n  read:\n    '*': allow\n    '*.env': deny\n    '*.env/*': deny\n    '*.env.*': deny\n  glob: allow\n  grep: allow\n  bash:\n    '*': deny\n    git diff *: allow\n---\n\nReview.\n",
    );
  });

  test.each([
    "codex",
    "cursor",
    "goose",
  ] as const)("is wider in %s, which has no list of tools [PRT-3]", (to) => {
    expect(codes(to)).toEqual(expect.arrayContaining(["rights-widened", "tools-not-expressible"]));
  });

  test("is wider in Copilot, where a command cannot be narrowed [PRT-3]", () => {
    expect(codes("copilot")).toEqual(
      expect.arrayContaining(["rights-widened", "tools-coarser", "pattern-dropped"]),
    );
  });

  test("keeps its commands in Kiro as anchored expressions [PRT-3]", () => {
    const { text, widenings } = convertAgent(read("claude", reviewer), "kiro", {});
    expect(widenings).toEqual([]);
    expect(JSON.parse(text)).toMatchObject({
      tools: ["read", "grep", "glob", "shell"],
      toolsSettings: { shell: { allowedCommands: ["^git diff .*$"] } },
    });
    expect(JSON.parse(text)).not.toHaveProperty("allowedTools");
  });

  const restricted = (fields: string) =>
    read("claude", `---\nname: a\ndescription: A. Use it. Not always.\n${fields}\n---\n\nHelp.\n`);

  test("denies in opencode whatever its words deny here [PRT-3]", () => {
    const source = restricted(
      "disallowedTools: Bash(rm:*), Read(.env), Read(//etc/**), Edit(docs/*.md), Write(docs/*.md), WebFetch(domain:a.com), Skill(x *), Grep(secret/**), Agent(a, b)",
    );
    const { text, widenings } = convertAgent(source, "opencode-json", {});
    expect(widenings).toEqual([]);
    expect(JSON.parse(text).agent.a.permission).toEqual({
      read: {
        "*": "allow",
        ".env": "deny",
        ".env/*": "deny",
        "*/.env": "deny",
        "*/.env/*": "deny",
        "/etc/**": "deny",
        "/*/etc/**": "deny",
      },
      edit: { "*": "ask", "docs/*.md": "deny", "docs/*.md/*": "deny" },
      bash: { "*": "ask", "rm *": "deny" },
      webfetch: { "*": "allow", "domain:a.com": "deny", "*a.com*": "deny" },
      skill: { "*": "allow", x: "deny" },
      // Its patterns are expressions there, and paths here.
      grep: "deny",
      task: { "*": "allow", a: "deny", b: "deny" },
    });
  });

  test("allows in opencode no more than its words allow here [PRT-3]", () => {
    const source = restricted(
      "tools: Bash(git diff:*), Read(docs/*.md), Read(src/**), Read(a?.md), Grep(src/**), WebFetch(domain:a.com), Skill(x)",
    );
    const { text, widenings } = convertAgent(source, "opencode-json", {});
    expect(widenings).toEqual([]);
    expect(JSON.parse(text).agent.a.permission).toEqual({
      "*": "deny",
      read: { "*": "deny", "src/**": "allow" },
      bash: { "*": "deny", "git diff *": "allow" },
      skill: { "*": "deny", x: "allow" },
    });
  });

  test("denies in Kiro a command wherever it is, with and without arguments [PRT-3]", () => {
    const source = restricted("tools: Bash, Read\ndisallowedTools: Bash(rm:*), Read(.env)");
    const { text, widenings } = convertAgent(source, "kiro", {});
    expect(widenings).toEqual([]);
    expect(JSON.parse(text).toolsSettings).toEqual({
      shell: { deniedCommands: ["^.*rm .*$", "^.*rm$"] },
      read: { deniedPaths: [".env", ".env/*", "*/.env", "*/.env/*"] },
    });
  });

  test.each([
    "copilot",
    "gemini",
    "qwen",
    "kiro",
    "kiro-md",
  ] as const)("in %s its list of tools names the servers that bring theirs along here [PRT-3]", (to) => {
    const source = restricted("tools: Read\nmcpServers: [{git: {command: git-server}}]");
    const { text, target, widenings } = convertAgent(source, to, {});
    expect(widenings).toEqual([]);
    expect(rights(read(to, text, target), [source])).toEqual(rights(source, [read(to, text, target)]));
  });

  test("written although it is wider, it says so in the file [PRT-3]", () => {
    const { text } = convertAgent(read("claude", reviewer), "cursor", { allowWider: true });
    expect(text).toMatch(/^---\n# rights-widened: /);
    expect(read("cursor", text).agent.id).toBe("reviewer");
  });
});

describe("what is left out means what it means in its product", () => {
  const level = (format: FormatId, text: string, kind: string) => levelOf(rights(read(format, text)), kind);

  test("opencode without permission: everything; Kiro without tools: nothing [PRT-1]", () => {
    expect(level("opencode", "---\ndescription: d\n---\np\n", "shell")).toBe("full");
    expect(level("kiro", '{"name": "helper", "description": "d", "prompt": "p"}', "read")).toBe("none");
  });

  test("Qwen without a mode edits without asking; a converter always writes the mode [PRT-1]", () => {
    expect(rights(read("qwen", "---\nname: helper\ndescription: d\n---\nprompt\n")).mode).toBe("acceptEdits");
    expect(convertAgent(read("claude", reviewer), "qwen", {}).text).toContain("approvalMode: default");
  });

  test("Codex without its shell neither runs nor reads [PRT-1]", () => {
    const text =
      'name = "helper"\ndescription = "d"\ndeveloper_instructions = "p"\n[features]\nshell_tool = false\n';
    expect(level("codex", text, "shell")).toBe("none");
    expect(level("codex", text, "change")).toBe("full");
  });

  test("a sandbox that Codex ignores still limits the agent here, and is never written [PRT-3]", () => {
    const text =
      'name = "helper"\ndescription = "d"\ndeveloper_instructions = "p"\nsandbox_mode = "read-only"\n';
    expect(rights(read("codex", text)).mode).toBe("plan");
    expect(convertAgent(read("codex", text), "qwen", {}).text).toContain("approvalMode: plan");
    expect(agentFormats.codex.write(read("codex", text).agent)).not.toContain("sandbox_mode");
  });
});
