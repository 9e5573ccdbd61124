import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { definitionKeys } from "./agent-definition.ts";
import { largestDefinition, parseAgentDefinition } from "./parse-agent-definition.ts";

function parse(frontmatter: string, options: Parameters<typeof parseAgentDefinition>[1] = {}) {
  return parseAgentDefinition(`---\n${frontmatter}\n---\nYou help.`, {
    file: "agents/my-file.md",
    ...options,
  });
}

const minimal = "name: a\ndescription: Does a thing.";

function codes(frontmatter: string, options: Parameters<typeof parseAgentDefinition>[1] = {}): string[] {
  return parse(frontmatter, options).diagnostics.map(
    ({ severity, code, line }) => `${severity} ${code}@${line}`,
  );
}

describe("[DEF-1] one file, one agent", () => {
  test("frontmatter gives the fields, the body is the prompt", () => {
    expect(parse(minimal)).toMatchObject({
      definition: {
        name: "a",
        description: "Does a thing.",
        prompt: "You help.",
        source: { scope: "project" },
      },
      diagnostics: [],
    });
  });
});

describe("[DEF-2] every field is understood", () => {
  const full = `name: full
description: Does everything. Use when asked.
tools: Read, Grep
disallowedTools: Write
model: opus
permissionMode: acceptEdits
maxTurns: 12
skills: [house-style]
mcpServers:
  - github
  - own: {command: run-it}
hooks:
  Stop:
    - type: command
      command: ./clean.sh
memory: project
color: cyan
background: true
effort: high
isolation: worktree
initialPrompt: Begin.
omitClaudeMd: true
criticalSystemReminder_EXPERIMENTAL: Do not write.
forkContext: true
limits:
  seconds: 900
  usd: 0.5
cwd: packages/api
env:
  NODE_ENV: test
  PORT: 8080
timeout: 600
verify:
  - npm test
  - run: npm run lint
    timeout: 60
    retries: 1
runner:
  acp: my-agent --acp
  env: [MY_KEY]`;

  test("all of them together, without a problem", () => {
    const { definition, diagnostics } = parse(full);
    expect(diagnostics).toEqual([]);
    expect(definition).toMatchObject({
      tools: ["Read", "Grep"],
      disallowedTools: ["Write"],
      model: "opus",
      permissionMode: "acceptEdits",
      maxTurns: 12,
      skills: ["house-style"],
      mcpServers: [
        { type: "reference", name: "github" },
        { type: "inline", name: "own", config: { command: "run-it" } },
      ],
      hooks: [{ event: "Stop", handler: { type: "command", command: "./clean.sh" } }],
      memory: "project",
      color: "cyan",
      background: true,
      effort: "high",
      isolation: "worktree",
      initialPrompt: "Begin.",
      omitClaudeMd: true,
      criticalSystemReminder_EXPERIMENTAL: "Do not write.",
      forkContext: true,
      limits: { seconds: 900, usd: 0.5 },
      cwd: "packages/api",
      env: { NODE_ENV: "test", PORT: "8080" },
      timeout: 600,
      verify: { checks: [{ run: "npm test" }, { run: "npm run lint", timeoutSeconds: 60 }], retries: 1 },
      runner: { name: "my-agent", command: ["my-agent", "--acp"], env: ["MY_KEY"] },
    });
  });

  test("each one is remembered with the line it is on", () => {
    const { definition } = parse(full);
    expect(Object.keys(definition?.written ?? {}).sort()).toEqual([...definitionKeys].sort());
    expect(definition?.written["model"]?.place).toMatchObject({ line: 6, column: 1 });
  });

  test.each([
    ["maxTurns: '15'", { maxTurns: 15 }],
    ["background: yes", { background: true }],
    ["background: off", { background: false }],
    ["omitClaudeMd: 'true'", { omitClaudeMd: true }],
    ["effort: 3", { effort: 3 }],
    ["permissionMode: manual", { permissionMode: "default" }],
    ["skills: a, b", { skills: ["a", "b"] }],
    [
      "mcpServers: one, two",
      {
        mcpServers: [
          { type: "reference", name: "one" },
          { type: "reference", name: "two" },
        ],
      },
    ],
    ["mcpServers: {x: {url: u}}", { mcpServers: [{ type: "inline", name: "x", config: { url: "u" } }] }],
    [
      "mcpServers: [{serverName: s, tools: [t]}]",
      { mcpServers: [{ type: "reference", name: "s", tools: ["t"] }] },
    ],
    ["color: '#FF6B35'", { color: "#FF6B35" }],
    ["isolation: container", { isolation: "container" }],
  ])("reads %s", (line, expected) => {
    expect(parse(`${minimal}\n${line}`).definition).toMatchObject(expected);
  });

  test.each([
    "maxTurns: many",
    "maxTurns: 0",
    "maxTurns: 1.5",
    "memory: everywhere",
    "background: perhaps",
    "skills: {a: b}",
  ])("a value that makes no sense is left out with a warning: %s", (line) => {
    const { definition, diagnostics } = parse(`${minimal}\n${line}`);
    const key = line.split(":")[0] ?? "";
    expect(definition).toBeDefined();
    expect(definition).not.toHaveProperty(key);
    expect(diagnostics).toMatchObject([{ severity: "warning", code: "unreadable-field", line: 4 }]);
  });
});

describe("[DEF-3] lists", () => {
  test.each([
    ["tools: Read, Grep", ["Read", "Grep"]],
    ["tools: [Read, Grep]", ["Read", "Grep"]],
    ["tools:\n  - Read\n  - Grep", ["Read", "Grep"]],
    ["tools: Read Grep Glob", ["Read", "Grep", "Glob"]],
    ["tools: Task(worker, researcher), Read", ["Task(worker, researcher)", "Read"]],
    ["tools: [Read, Bash(git add:*, git commit:*), Edit]", ["Read", "Bash(git add:*, git commit:*)", "Edit"]],
    ["tools:\n  - Read, Write\n  - Bash(a, b)", ["Read", "Write", "Bash(a, b)"]],
    ["tools: []", []],
    ['tools: ""', []],
    ["tools: none", []],
    ["tools: *", undefined],
    ['tools: "*"', undefined],
    ["tools: ['*']", undefined],
    ["tools: all", undefined],
    ["tools:", undefined],
  ])("%s", (line, expected) => {
    expect(parse(`${minimal}\n${line}`).definition?.tools).toEqual(expected);
  });
});

describe("[DEF-4] names", () => {
  test("without a name the file's name serves, with a warning", () => {
    const { definition, diagnostics } = parse("description: Does a thing.");
    expect(definition?.name).toBe("my-file");
    expect(diagnostics).toMatchObject([{ severity: "warning", code: "no-name" }]);
  });

  test.each([
    "../x",
    "a/../b",
    "/etc/x",
    "a/b",
    "~/x",
    "a\\b",
    "-x",
    "..",
    ".",
    '""',
    '"a\\0b"',
    "a:b",
    "x".repeat(300),
  ])("refuses %s", (name) => {
    const { definition, diagnostics } = parse(`name: ${name}\ndescription: d`);
    expect(definition).toBeUndefined();
    expect(
      diagnostics.some(
        (diagnostic) => diagnostic.severity === "error" && diagnostic.code.startsWith("name-"),
      ),
    ).toBe(true);
  });

  test.each([
    "code-reviewer",
    "Release Captain",
    "4.1-Beast",
    "macOS Spatial/Metal Engineer",
    "审查",
  ])("accepts %s", (name) => {
    expect(parse(`name: ${name}\ndescription: d`).definition?.name).toBe(name);
  });

  test("a number keeps its writing", () => {
    expect(parse("name: 007\ndescription: d").definition?.name).toBe("007");
  });

  test("a name that is not of the advised form loads with memory too, and an unsafe one does not [MEM-1, DEF-4]", () => {
    for (const name of ["UI/UX Designer", "Reviewer", "a b", "ünsafe", "a_b", ".a", "a.", "CON"])
      expect(parse(`name: ${name}\ndescription: d\nmemory: user`).definition, name).toBeDefined();
    for (const name of ["__proto__", "../x", "/etc", "-x"])
      expect(parse(`name: ${name}\ndescription: d\nmemory: user`).definition, name).toBeUndefined();
  });
});

describe("[DEF-5] descriptions", () => {
  test("a file without one does not load and says so", () => {
    const { definition, diagnostics } = parse("name: a\ntools: Read");
    expect(definition).toBeUndefined();
    expect(diagnostics).toMatchObject([
      { severity: "error", code: "no-description", file: "agents/my-file.md" },
    ]);
    expect(diagnostics[0]?.advice).toContain("description:");
  });

  test("a plugin's agent loads without one, with a warning, since its user cannot fix it", () => {
    const { definition, diagnostics } = parse("name: a", { scope: "plugin" });
    expect(definition).toMatchObject({ name: "a", description: "" });
    expect(diagnostics).toMatchObject([{ severity: "warning", code: "no-description" }]);
  });

  test.each([
    ["description: 'one\\ntwo'", "one\ntwo"],
    ["description: >\n  folded\n  text", "folded text"],
    ["description: |\n  kept\n  lines", "kept\nlines"],
    ["description:\n  Use: when asked", "Use: when asked"],
    ["description: [one, two]", "[one, two]"],
    ["description: 42", "42"],
  ])("reads %s", (line, expected) => {
    expect(parse(`name: a\n${line}`).definition?.description).toBe(expected);
  });
});

describe("[DEF-7] problems say where and what to do", () => {
  test("an unclosed block names its opening line", () => {
    const { diagnostics } = parseAgentDefinition("---\nname: a\n", { file: "x.md" });
    expect(diagnostics).toMatchObject([
      { severity: "error", code: "frontmatter-unclosed", file: "x.md", line: 1, column: 1 },
    ]);
    expect(diagnostics[0]?.advice).toBeDefined();
  });

  test("a field that limits the agent and cannot be read makes the file an error, with the line", () => {
    for (const line of [
      "tools: {Read: true}",
      "tools: [Read",
      "tools: 7",
      "disallowedTools: {Bash: false}",
      "disallowedTools:\n  - {a: b}",
      "permissionMode: [plan]",
      "hooks: run-me.sh",
      "isolation: {type: worktree}",
    ]) {
      const { definition, diagnostics } = parse(`${minimal}\n${line}`);
      expect(definition, line).toBeUndefined();
      expect(diagnostics, line).toContainEqual(
        expect.objectContaining({ severity: "error", code: "unreadable-restriction", line: 4 }),
      );
    }
  });

  test.each([
    ["limits: 5"],
    ["limits: [a, b]"],
    ["limits: {max_retries: 3}"],
    ["limits: {tokens: 10k, time: 5m}"],
    ["limit: {retries: 1}"],
  ])("%s of another program is warned of and ignored [DEF-8]", (line) => {
    const { definition, diagnostics } = parse(`${minimal}\n${line}`);
    expect(definition).toBeDefined();
    expect(definition?.limits).toBeUndefined();
    expect(diagnostics).toMatchObject([{ severity: "warning", line: 4 }]);
  });

  test("limits of which one can be kept are meant for us, so a slip in another is an error [LIM-3]", () => {
    const { definition, diagnostics } = parse(`${minimal}\nlimits: {seconds: 900, tokns: 5}`);
    expect(definition).toBeUndefined();
    expect(diagnostics).toMatchObject([
      {
        severity: "error",
        code: "unreadable-restriction",
        message: expect.stringContaining("did you mean tokens?"),
      },
    ]);
  });

  test("a file above the size limit is refused without looking further", () => {
    const { definition, diagnostics } = parseAgentDefinition("x".repeat(largestDefinition + 1), {
      file: "big.md",
    });
    expect(definition).toBeUndefined();
    expect(diagnostics).toMatchObject([{ severity: "error", code: "too-large", file: "big.md" }]);
  });

  test("documentation beside agents is a note or a warning, not an error", () => {
    const severity = (file: string) => parseAgentDefinition("# Hello", { file }).diagnostics[0]?.severity;
    expect(severity("agents/README.md")).toBe("note");
    expect(severity("agents/other.md")).toBe("warning");
  });

  test("no text makes it throw, and what does not load has a problem", () => {
    const line = fc.constantFrom(
      "name: a",
      "description: d",
      "tools: [",
      "tools: {a: b}",
      "hooks:",
      "  Stop: x",
      "permissionMode: x",
      "name: ../x",
      "isolation: []",
      "mcpServers: 3",
    );
    fc.assert(
      fc.property(fc.array(fc.oneof(line, fc.string({ maxLength: 30 })), { maxLength: 12 }), (lines) => {
        const { definition, diagnostics } = parse(lines.join("\n"));
        if (definition === undefined) expect(diagnostics.length).toBeGreaterThan(0);
        else expect(diagnostics.every((diagnostic) => diagnostic.severity !== "error")).toBe(true);
      }),
      { numRuns: 120 },
    );
  });
});

describe("[DEF-8] unknown keys", () => {
  test("an unknown key is a warning, and a near one is named", () => {
    expect(codes(`${minimal}\nfavourite: x`)).toEqual(["warning unknown-key@4"]);
    const { diagnostics } = parse(`${minimal}\nmodle: opus`);
    expect(diagnostics).toMatchObject([{ code: "unknown-key", advice: "Did you mean `model`?" }]);
  });

  test.each([
    ["allowed-tools: Read", { tools: ["Read"] }, "tools"],
    ["allowedTools: [Read]", { tools: ["Read"] }, "tools"],
    ["disallowed_tools: Bash", { disallowedTools: ["Bash"] }, "disallowedTools"],
    ["permission-mode: plan", { permissionMode: "plan" }, "permissionMode"],
    ["max_turns: 4", { maxTurns: 4 }, "maxTurns"],
  ])("a misspelt %s is honoured, because ignoring it would widen", (line, expected, key) => {
    const { definition, diagnostics } = parse(`${minimal}\n${line}`);
    expect(definition).toMatchObject(expected);
    expect(diagnostics).toMatchObject([
      { severity: "warning", code: "misspelt-key", advice: `Write \`${key}\`.` },
    ]);
  });

  test("the right spelling wins over a misspelt one", () => {
    expect(parse(`${minimal}\nallowed-tools: Bash\ntools: Read`).definition?.tools).toEqual(["Read"]);
  });

  test("of a limit that appears twice the narrower meaning holds", () => {
    expect(parse(`${minimal}\ntools: Read, Bash\ntools: Read, Write`).definition?.tools).toEqual(["Read"]);
    expect(parse(`${minimal}\ntools: Read\ntools: "*"`).definition?.tools).toEqual(["Read"]);
    expect(parse(`${minimal}\ndisallowedTools: A\ndisallowedTools: B`).definition?.disallowedTools).toEqual([
      "A",
      "B",
    ]);
  });
});

describe("[SCP-4] what a plugin's file may not decide", () => {
  const file = `${minimal}\nhooks: {Stop: [{type: command, command: x}]}\nmcpServers: [a]\npermissionMode: plan`;

  test("hooks, servers and mode are ignored with a warning each", () => {
    const { definition, diagnostics } = parse(file, { scope: "plugin", plugin: "p" });
    expect(definition).not.toHaveProperty("hooks");
    expect(definition).not.toHaveProperty("mcpServers");
    expect(definition).not.toHaveProperty("permissionMode");
    expect(diagnostics.map(({ code, line }) => `${code}@${line}`)).toEqual([
      "ignored-in-plugin@4",
      "ignored-in-plugin@5",
      "ignored-in-plugin@6",
    ]);
  });

  test("the same file of a user keeps them", () => {
    expect(parse(file, { scope: "user" }).definition).toMatchObject({ permissionMode: "plan" });
  });
});

test("[DEF-12] a model is kept as written, whatever provider it names", () => {
  for (const model of ["sonnet", "inherit", "claude-opus-5", "openai/gpt-5", "haiku[1m]"]) {
    expect(parse(`${minimal}\nmodel: ${model}`).definition?.model).toBe(model);
  }
});
