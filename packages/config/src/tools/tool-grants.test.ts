import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { builtinTools } from "./builtin-tools.ts";
import type { AvailableTool } from "./match-tools.ts";
import { type GrantRequest, grantTools } from "./tool-grants.ts";

const builtin: AvailableTool[] = builtinTools.map(({ name, effect }) => ({
  name,
  effect,
  origin: "builtin",
}));
const mcp: AvailableTool[] = [
  { name: "mcp__git__log", effect: "execute", origin: "mcp", server: "git" },
  { name: "mcp__git__blame", effect: "execute", origin: "mcp", server: "git" },
  { name: "mcp__claude_ai_Mail__send", effect: "execute", origin: "mcp", server: "claude.ai Mail" },
];
const available = [...builtin, ...mcp];

function grant(definition: GrantRequest["definition"], role: GrantRequest["role"] = "subagent") {
  const result = grantTools({ definition, available, role });
  if (result.type === "refused") throw new Error(result.reason);
  return result;
}

function names(definition: GrantRequest["definition"], role?: GrantRequest["role"]): string[] {
  return grant(definition, role).tools.map((tool) => tool.name);
}

function codes(definition: GrantRequest["definition"], role?: GrantRequest["role"]): string[] {
  return grant(definition, role).notes.map((note) => `${note.path.join(".")} ${note.code}`);
}

describe("which tools are granted", () => {
  test("without `tools` everything available is granted, in its order [TLS-1]", () => {
    expect(names({}, "main")).toEqual(available.map((tool) => tool.name));
    expect(names({ tools: ["*"] }, "main")).toEqual(available.map((tool) => tool.name));
  });

  test("with `tools` only those are granted [TLS-1]", () => {
    expect(names({ tools: ["Write", "Read"] })).toEqual(["Read", "Write"]);
    expect(names({ tools: [] })).toEqual([]);
  });

  test("`disallowedTools` wins over `tools`, under old names and other letter case too [TLS-2]", () => {
    expect(names({ tools: ["Read", "Edit", "Bash"], disallowedTools: ["MultiEdit", "bash"] })).toEqual([
      "Read",
    ]);
    expect(names({ tools: ["Bash(git *)", "Read"], disallowedTools: ["Bash"] })).toEqual(["Read"]);
    expect(names({ tools: ["Bash", "Read"], disallowedTools: ["Bash(*)"] })).toEqual(["Read"]);
    expect(codes({ tools: ["Bash", "Read"], disallowedTools: ["Bash"] })).toEqual([
      "tools.0 tool-is-disallowed",
    ]);
    expect(names({ disallowedTools: ["*"] })).toEqual([]);
    const left = names({ disallowedTools: ["mcp__Git__log", "mcp__CLAUDE_AI_mail"] });
    expect(left.filter((name) => name.startsWith("mcp__"))).toEqual(["mcp__git__blame"]);
  });

  test("a denial that is malformed takes the whole tool away, a request that is malformed gives nothing [TLS-2]", () => {
    expect(names({ tools: ["Read", "Bash"], disallowedTools: ["Bash(rm *"] })).toEqual(["Read"]);
    expect(names({ tools: ["Read", "Bash(git *"] })).toEqual(["Read"]);
  });
});

describe("scoped entries [TLS-3]", () => {
  test("a specifier in `tools` narrows the tool to matching calls", () => {
    expect(grant({ tools: ["Bash(git diff *)"] }).tools).toEqual([
      { name: "Bash", allowOnly: ["git diff *"] },
    ]);
  });

  test("a specifier in `disallowedTools` denies matching calls and leaves the tool", () => {
    expect(grant({ tools: ["Bash"], disallowedTools: ["Bash(rm *)", "Bash(sudo *)"] }).tools).toEqual([
      { name: "Bash", deny: ["rm *", "sudo *"] },
    ]);
  });

  test("a comma in a denial separates and belongs to the pattern, so that neither reading gets through", () => {
    expect(grant({ tools: ["Bash"], disallowedTools: ["Bash(rm *, sudo *)"] }).tools).toEqual([
      { name: "Bash", deny: ["rm *, sudo *", "rm *", "sudo *"] },
    ]);
  });

  test("a remark in parentheses does not narrow a denial", () => {
    expect(grant({ tools: ["Write", "Read"], disallowedTools: ["Write (all files)"] })).toMatchObject({
      tools: [{ name: "Read" }],
      notes: expect.arrayContaining([expect.objectContaining({ code: "malformed-denial" })]),
    });
  });

  test("two stars in a denial mean every call", () => {
    expect(grant({ tools: ["Read", "Bash"], disallowedTools: ["Read(**)"] }).tools).toEqual([
      { name: "Bash" },
    ]);
  });

  test("a denial with a star ignores letter case where it names nothing otherwise", () => {
    expect(grant({ tools: ["Bash", "Read"], disallowedTools: ["bash*"] }).tools).toEqual([{ name: "Read" }]);
  });

  test("several entries for one tool add up, and a bare one means the whole tool", () => {
    expect(grant({ tools: ["Bash(a *)", "Bash(b *)"] }).tools).toEqual([
      { name: "Bash", allowOnly: ["a *", "b *"] },
    ]);
    expect(grant({ tools: ["Bash(a *)", "Bash"] }).tools).toEqual([{ name: "Bash" }]);
    expect(grant({ tools: ["Bash", "Bash(a *)"] }).tools).toEqual([{ name: "Bash" }]);
    expect(grant({ tools: ["MultiEdit(src/**)", "Edit(docs/**)"] }).tools).toEqual([
      { name: "Edit", allowOnly: ["src/**", "docs/**"] },
    ]);
  });

  test("prefixes between commas are one rule each, other commas belong to the rule", () => {
    expect(grant({ tools: ["Bash(git add:*, git commit:*)"] }).tools).toEqual([
      { name: "Bash", allowOnly: ["git add:*", "git commit:*"] },
    ]);
    expect(grant({ tools: ["Bash(echo a, rm *)"] }).tools).toEqual([
      { name: "Bash", allowOnly: ["echo a, rm *"] },
    ]);
  });
});

describe("names [TLS-4]", () => {
  test.each<[string, string[]]>([
    ["mcp__git", ["mcp__git__log", "mcp__git__blame"]],
    ["mcp__git__*", ["mcp__git__log", "mcp__git__blame"]],
    ["mcp__git__log", ["mcp__git__log"]],
    ["mcp__git__b*", ["mcp__git__blame"]],
    ["mcp__claude_ai_Mail", ["mcp__claude_ai_Mail__send"]],
    ["mcp__claude.ai Mail", ["mcp__claude_ai_Mail__send"]],
    ["mcp__*", mcp.map((tool) => tool.name)],
  ])("%s names MCP tools, to grant and to deny", (entry, expected) => {
    expect(names({ tools: [entry] })).toEqual(expected);
    const left = names({ disallowedTools: [entry] });
    expect(left.filter((name) => expected.includes(name))).toEqual([]);
    expect(left).toHaveLength(available.length - 1 - expected.length);
  });

  test("a server's name is not the beginning of another's", () => {
    expect(grantTools({ definition: { tools: ["mcp__gi"] }, available, role: "subagent" }).type).toBe(
      "refused",
    );
  });

  test("old, absent and unknown names are notes while one entry still resolves", () => {
    const tools = ["Read", "LS", "KillShell", "LSP", "grep", "Wirte", "mcp__absent"];
    expect(names({ tools })).toEqual(["Glob", "Grep", "Read", "TaskStop"]);
    expect(codes({ tools })).toEqual([
      "tools.1 old-tool-name",
      "tools.2 old-tool-name",
      "tools.3 absent-tool",
      "tools.4 tool-letter-case",
      "tools.5 unknown-tool",
      "tools.6 unavailable-mcp-tool",
    ]);
  });

  test("a tool of the host's own is known by its name, whatever that name means elsewhere", () => {
    const own: AvailableTool[] = [{ name: "LS", effect: "read", origin: "builtin" }];
    const result = grantTools({ definition: { tools: ["LS"] }, available: own, role: "main" });
    expect(result).toMatchObject({ type: "granted", tools: [{ name: "LS" }], notes: [] });
  });
});

describe("a definition whose `tools` resolve to nothing [TLS-5]", () => {
  test.each<[string, GrantRequest["definition"]]>([
    ["unknown names", { tools: ["Foo", "Bar(x)"] }],
    ["absent tools", { tools: ["LSP"] }],
    ["all disallowed", { tools: ["Bash"], disallowedTools: ["Bash"] }],
    ["only malformed", { tools: ["Bash(git"] }],
    ["only the Agent tool in a subagent", { tools: ["Task(a, b)"] }],
    ["memory does not help", { tools: ["Foo"], memory: "user" }],
  ])("is refused and the entries are named: %s", (_case, definition) => {
    const result = grantTools({ definition, available, role: "subagent" });
    expect(result).toMatchObject({ type: "refused", entries: definition.tools });
    for (const entry of definition.tools ?? []) {
      expect(result.type === "refused" && result.reason).toContain(`\`${entry}\``);
    }
  });
});

describe("spawning", () => {
  test.each<[string, GrantRequest["definition"], unknown]>([
    ["no list", {}, "any"],
    ["a bare Task", { tools: ["Task", "Read"] }, "any"],
    ["a bare Agent beside a scoped one", { tools: ["Agent", "Agent(a)"] }, "any"],
    ["Task(a, b)", { tools: ["Task(a, b)", "Agent(c)"] }, { only: ["a", "b", "c"] }],
    ["absent from a given list", { tools: ["Read"] }, "none"],
    ["disallowed", { disallowedTools: ["Task"] }, "none"],
    ["one disallowed by name", { tools: ["Task(a-x, b)"], disallowedTools: ["Agent(A_X)"] }, { only: ["b"] }],
  ])("the main agent may spawn what its list says: %s [TLS-6]", (_case, definition, expected) => {
    expect(grant(definition, "main").spawn).toEqual(expected);
  });

  test("a subagent never has the Agent tool, whatever its definition lists [TLS-7]", () => {
    for (const tools of [undefined, ["*"], ["Agent", "Read"], ["Task(a)", "Read"], ["A*", "Read"]]) {
      const result = grant(tools === undefined ? {} : { tools });
      expect(result.spawn).toBe("none");
      expect(result.tools.map((tool) => tool.name)).not.toContain("Agent");
    }
    expect(codes({ tools: ["Agent", "Read"] })).toEqual(["tools.0 subagent-cannot-spawn"]);
  });
});

describe("memory [TLS-8]", () => {
  test("adds Read, Write and Edit, confined where the definition has not got them", () => {
    expect(grant({ tools: ["Read", "Write(docs/**)"], memory: "user" }).tools).toEqual([
      { name: "Edit", confinedTo: "memory" },
      { name: "Read" },
      { name: "Write", allowOnly: ["docs/**"], alsoIn: "memory" },
    ]);
    expect(grant({ tools: [], memory: "project" }).tools).toEqual([
      { name: "Edit", confinedTo: "memory" },
      { name: "Read", confinedTo: "memory" },
      { name: "Write", confinedTo: "memory" },
    ]);
  });

  test("does not bring back what `disallowedTools` takes away", () => {
    const definition = { tools: ["Read"], disallowedTools: ["Write", "Edit(secret/**)"], memory: "user" };
    expect(grant(definition).tools).toEqual([
      { name: "Edit", confinedTo: "memory", deny: ["secret/**"] },
      { name: "Read" },
    ]);
    expect(codes(definition)).toEqual(["memory memory-tool-disallowed"]);
  });

  test("is served from all tools of the session, where the definition takes its parent's", () => {
    const parents = builtin.filter(({ name }) => name === "Bash" || name === "Read");
    const result = grantTools({
      definition: { memory: "user" },
      available: parents,
      forMemory: available,
      role: "subagent",
    });
    expect(result).toMatchObject({
      tools: [
        { name: "Bash" },
        { name: "Edit", confinedTo: "memory" },
        { name: "Read" },
        { name: "Write", confinedTo: "memory" },
      ],
    });
  });

  test("is not served by tools of a program or a server that have the same names", () => {
    const own: AvailableTool[] = [{ name: "Write", effect: "edit", origin: "program" }];
    const definition = { tools: ["Bash"], memory: "user" };
    const others = builtin.filter(({ name }) => name === "Bash");
    expect(grantTools({ definition, available: [...others, ...own], role: "subagent" })).toMatchObject({
      tools: [{ name: "Bash" }],
    });
  });
});

describe("whatever a definition lists", () => {
  const entry = fc.oneof(
    fc.constantFrom(
      ...available.map((tool) => tool.name),
      "Task",
      "LS",
      "*",
      "mcp__*",
      "mcp__git",
      "Task(a, b)",
    ),
    fc.constantFrom("Bash(git *)", "Bash(rm", "Read(*)", "B*", "__proto__", "constructor(x)"),
    fc.string(),
  );
  const request = fc.record({
    definition: fc.record(
      { tools: fc.array(entry), disallowedTools: fc.array(entry), memory: fc.constant("user") },
      { requiredKeys: [] },
    ),
    available: fc.subarray(available),
    role: fc.constantFrom("main" as const, "subagent" as const),
  });

  test("nothing is granted that is not available or that `disallowedTools` names bare [TLS-2]", () => {
    fc.assert(
      fc.property(request, (input) => {
        const result = grantTools(input);
        if (result.type === "refused") return;
        const granted = result.tools.map((tool) => tool.name);
        const offered = input.available.map((tool) => tool.name);
        expect(offered).toEqual(expect.arrayContaining(granted));
        expect(new Set(granted).size).toBe(granted.length);
        for (const denied of input.definition.disallowedTools ?? [])
          expect(granted).not.toContain(denied.trim());
        if (input.role === "subagent") expect(result.spawn).toBe("none");
      }),
    );
  });
});
