import { describe, expect, test } from "vitest";
import { buildPolicy, childPolicy } from "./build-policy.ts";
import { type DecideOptions, decide, type PermissionPolicy, removesServer, removesTool } from "./decide.ts";
import { type CallToJudge, gatherCallFacts } from "./gather-call-facts.ts";
import type { PermissionMode } from "./permission-policy.ts";
import { parseRule, type RuleList } from "./rules/parse-rule.ts";

function rules(list: RuleList, ...texts: readonly string[]) {
  return texts.map((text) => {
    const reading = parseRule(text, { list });
    if (reading.type === "invalid") throw new Error(reading.reason);
    return { rule: reading.rule, anchor: "/p", from: `/p/${list}.json` };
  });
}

const open: PermissionPolicy = {
  mode: "default",
  allow: [],
  ask: [],
  deny: [],
  workingDirectories: ["/p"],
  home: "/h",
};

const calls = {
  readInside: { tool: "Read", effect: "read", input: { file_path: "/p/a.ts" } },
  readOutside: { tool: "Read", effect: "read", input: { file_path: "/q/a.ts" } },
  readSibling: { tool: "Read", effect: "read", input: { file_path: "/p-evil/a.ts" } },
  editInside: { tool: "Edit", effect: "edit", input: { file_path: "/p/a.ts" } },
  editOutside: { tool: "Write", effect: "edit", input: { file_path: "/q/a.ts" } },
  editProtected: { tool: "Write", effect: "edit", input: { file_path: "/p/.git/hooks/pre-commit" } },
  run: { tool: "Bash", effect: "execute", input: { command: "npm publish" } },
  list: { tool: "Bash", effect: "execute", input: { command: "ls src" } },
  makeFolder: { tool: "Bash", effect: "execute", input: { command: "mkdir -p src/new" } },
  removeHome: { tool: "Bash", effect: "execute", input: { command: "rm -rf ~" } },
  fetch: { tool: "WebFetch", effect: "network", input: { url: "https://example.com/" } },
  server: { tool: "mcp__x__y", effect: "execute", input: {}, mcp: { server: "x", tool: "y" } },
  readingServer: { tool: "mcp__x__z", effect: "read", input: {}, mcp: { server: "x", tool: "z" } },
  todo: { tool: "TodoWrite", effect: "coordinate", input: {} },
  spawn: { tool: "Agent", effect: "spawn", input: { subagent_type: "Explore" } },
  question: { tool: "AskUserQuestion", effect: "interact", input: {} },
} as const satisfies Record<string, CallToJudge>;

async function judge(call: CallToJudge, policy: Partial<PermissionPolicy>, options?: DecideOptions) {
  const whole = { ...open, ...policy };
  return decide(await gatherCallFacts(call, { policy: whole, directory: "/p" }), whole, options);
}

function bash(command: string): CallToJudge {
  return { tool: "Bash", effect: "execute", input: { command } };
}

const modes = [
  "default",
  "acceptEdits",
  "plan",
  "dontAsk",
  "delegate",
  "bypassPermissions",
] as const satisfies readonly PermissionMode[];

/** Attended / unattended, for a call that no rule matches. */
test.each([
  //                 default       acceptEdits    plan           dontAsk       delegate      bypassPermissions
  ["readInside     allow/allow   allow/allow    allow/allow    allow/allow   deny/deny     allow/allow"],
  ["readOutside    ask/deny      ask/deny       ask/deny       deny/deny     deny/deny     allow/allow"],
  ["readSibling    ask/deny      ask/deny       ask/deny       deny/deny     deny/deny     allow/allow"],
  ["editInside     ask/deny      allow/allow    deny/deny      deny/deny     deny/deny     allow/allow"],
  ["editOutside    ask/deny      ask/deny       deny/deny      deny/deny     deny/deny     allow/allow"],
  ["editProtected  ask/deny      ask/deny       deny/deny      deny/deny     deny/deny     allow/allow"],
  ["run            ask/deny      ask/deny       deny/deny      deny/deny     deny/deny     allow/allow"],
  ["list           allow/allow   allow/allow    allow/allow    allow/allow   deny/deny     allow/allow"],
  ["makeFolder     ask/deny      allow/allow    deny/deny      deny/deny     deny/deny     allow/allow"],
  ["removeHome     ask/deny      ask/deny       deny/deny      deny/deny     deny/deny     ask/deny"],
  ["fetch          ask/deny      ask/deny       ask/deny       deny/deny     deny/deny     allow/allow"],
  ["server         ask/deny      ask/deny       deny/deny      deny/deny     deny/deny     allow/allow"],
  ["readingServer  ask/deny      ask/deny       allow/allow    deny/deny     deny/deny     allow/allow"],
  ["todo           allow/allow   allow/allow    allow/allow    allow/allow   allow/allow   allow/allow"],
  ["spawn          allow/allow   allow/allow    allow/allow    allow/allow   allow/allow   allow/allow"],
  ["question       allow/deny    allow/deny     allow/deny     deny/deny     allow/deny    allow/deny"],
])("[PRM-2, PRM-5] without rules, attended/unattended: %s", async (row) => {
  const [name = "", ...expected] = row.split(/\s+/);
  const call = calls[name as keyof typeof calls];
  const answers = modes.map(async (mode) => {
    const attended = await judge(call, { mode }, { attended: true });
    const unattended = await judge(call, { mode }, { attended: false });
    return `${attended.type}/${unattended.type}`;
  });
  expect(await Promise.all(answers)).toEqual(expected);
});

describe("[PRM-1] the order", () => {
  const { run } = calls;

  test("deny beats ask, ask beats allow, whatever is more exact", async () => {
    const allow = rules("allow", "Bash(npm publish)");
    const ask = rules("ask", "Bash(npm *)");
    const deny = rules("deny", "Bash");
    expect(await judge(run, { allow })).toMatchObject({ type: "allow" });
    expect(await judge(run, { allow, ask })).toMatchObject({ type: "ask", rule: { from: "/p/ask.json" } });
    expect(await judge(run, { allow, ask, deny })).toMatchObject({
      type: "deny",
      rule: { from: "/p/deny.json" },
    });
  });

  test("deny and ask rules hold where permissions are bypassed", async () => {
    const mode = "bypassPermissions";
    expect((await judge(run, { mode, deny: rules("deny", "Bash(npm *)") })).type).toBe("deny");
    expect((await judge(run, { mode, ask: rules("ask", "Bash(npm *)") })).type).toBe("ask");
  });

  test("a hook's word lifts neither rules nor guards, and its ask holds in every mode", async () => {
    expect((await judge(run, {}, { hooks: "allow" })).type).toBe("allow");
    expect((await judge(run, { ask: rules("ask", "Bash") }, { hooks: "allow" })).type).toBe("ask");
    expect((await judge(calls.editProtected, { mode: "acceptEdits" }, { hooks: "allow" })).type).toBe("ask");
    expect((await judge(run, { mode: "bypassPermissions" }, { hooks: "ask" })).type).toBe("ask");
    expect((await judge(run, { mode: "bypassPermissions" }, { hooks: "deny" })).type).toBe("deny");
  });

  test.each([
    ["Bash", { command: 17 }],
    ["Bash", {}],
    ["Read", { file_path: "/p/a\0b" }],
    ["Write", { file_path: ["/p/a"] }],
    ["WebFetch", { url: "file:///etc/passwd" }],
    ["Read", "no object"],
  ])("an input that cannot be meant is refused even where permissions are bypassed: %s %j", async (tool, input) => {
    const decision = await judge({ tool, effect: "read", input }, { mode: "bypassPermissions" });
    expect(decision.type).toBe("deny");
  });
});

describe("[PRM-9] shell commands", () => {
  test.each([
    ["Bash(npm test)", "npm test", "allow"],
    ["Bash(npm test)", "npm test x", "ask"],
    ["Bash(npm *)", "npm run build", "allow"],
    ["Bash(npm:*)", "npmx", "ask"],
    ["Bash(npm *)", "npm test && rm -rf /", "ask"],
    ["Bash(npm *)", "npm $(touch x)", "ask"],
    ["Bash(npm *)", "npm test > /etc/x", "ask"],
    ["Bash(npm *)", "npm test > out.txt", "ask"],
    ["Bash(npm *)", "npm test 2>&1 | tail -5", "allow"],
    ["Bash(npm *)", "npm test\ntouch x", "ask"],
    ["Bash(cp *)", "cp a b", "allow"],
    ["Bash(cp *)", "cp a /q/b", "ask"],
    ["Bash(cd *)", "cd /q && ls", "ask"],
    ["Bash", "anything | at all", "allow"],
  ])("allow %s, call %j: %s", async (rule, command, expected) => {
    expect((await judge(bash(command), { allow: rules("allow", rule) })).type).toBe(expected);
  });

  test.each([
    ["Bash(rm *)", "rm x", "deny"],
    ["Bash(rm *)", "ls && rm x", "deny"],
    ["Bash(rm *)", "ls $(rm x)", "deny"],
    ["Bash(rm -rf *)", "rm -f -r x", "deny"],
    ["Bash(rm -rf *)", "rm x -fr", "deny"],
    ["Bash(rm -rf *)", "rm -r x", "allow"],
    ["Bash(rm *)", "ls -la", "allow"],
    ["Read(.env)", "cat .env", "deny"],
    ["Read(.env)", "cat < .env", "deny"],
    ["Read(.env)", 'cat "$FILE"', "ask"],
    ["Edit(src/**)", "echo x > src/a", "deny"],
    ["*", "ls", "deny"],
  ])("deny %s holds where permissions are bypassed, for %j: %s", async (rule, command, expected) => {
    const policy = { mode: "bypassPermissions", deny: rules("deny", rule) } as const;
    expect((await judge(bash(command), policy)).type).toBe(expected);
  });
});

describe("[PRM-10] paths", () => {
  test("a path that may not be read may not be written either, under any mode", async () => {
    const policy = { mode: "bypassPermissions", deny: rules("deny", "Read(.env)") } as const;
    expect((await judge({ ...calls.readInside, input: { file_path: "/p/.env" } }, policy)).type).toBe("deny");
    expect((await judge({ ...calls.editInside, input: { file_path: "/p/sub/.env" } }, policy)).type).toBe(
      "deny",
    );
    expect((await judge(calls.editInside, policy)).type).toBe("allow");
  });

  test("a grant of paths needs all of them, a restriction one", () => {
    const two = { tool: "Edit", effect: "edit", paths: ["/p/src/a", "/q/b"], input: {} };
    expect(decide(two, { ...open, allow: rules("allow", "Edit(src/**)") }).type).toBe("ask");
    expect(decide(two, { ...open, deny: rules("deny", "Edit(src/**)") }).type).toBe("deny");
  });

  test.each(["darwin", "win32"])("on %s a name in other letters is the same file", async (platform) => {
    const deny = rules("deny", "Read(./.env)");
    const call = { tool: "Read", effect: "read", input: { file_path: "/p/.ENV" } };
    expect((await judge(call, { deny, platform })).type).toBe("deny");
    expect((await judge(call, { deny, platform: "linux" })).type).toBe("allow");
  });
});

describe("[BGR-6] what an agent keeps in the background", () => {
  const mcp = { tool: "mcp__shop__order", effect: "execute", input: {} };
  const question = { tool: "AskUserQuestion", effect: "interact", input: {} };
  const kinds = async (policy: Partial<PermissionPolicy>) => {
    const judged = await Promise.all([bash("touch x"), mcp, question].map((call) => judge(call, policy)));
    return judged.map(({ type }) => type);
  };

  test("is only what is listed", async () => {
    expect(await kinds({ background: true })).toEqual(["deny", "deny", "deny"]);
    expect(await kinds({ background: true, backgroundKeeps: [] })).toEqual(["deny", "deny", "deny"]);
    const allow = rules("allow", "mcp__shop");
    expect(await kinds({ background: true, backgroundKeeps: ["mcpTools"], allow })).toEqual([
      "deny",
      "allow",
      "deny",
    ]);
    expect((await kinds({ background: true, backgroundKeeps: ["questions"] })).slice(0, 2)).toEqual([
      "ask",
      "deny",
    ]);
  });

  test("is for a child no more than its parent has", () => {
    const home = "/home/me";
    const base: PermissionPolicy = {
      mode: "default",
      allow: [],
      ask: [],
      deny: [],
      workingDirectories: ["/p"],
      home,
    };
    const below = (parent: Partial<PermissionPolicy>, child: object) => {
      const { background, backgroundKeeps } = childPolicy({ ...base, ...parent }, child);
      return [background === true, backgroundKeeps ?? []];
    };
    const both = { background: true, backgroundKeeps: ["mcpTools", "questions"] } as const;
    const one = { background: true, backgroundKeeps: ["questions"] } as const;
    expect(below({}, both)).toEqual([true, ["mcpTools", "questions"]]);
    expect(below(one, both)).toEqual([true, ["questions"]]);
    expect(below(both, { background: true })).toEqual([true, []]);
    expect(below(one, {})).toEqual([true, ["questions"]]);
    expect(below({ background: true }, both)).toEqual([true, []]);
  });
});

describe("[TLS-3, TLS-8, TLS-9] the tools of an agent", () => {
  const scoped = (...tools: NonNullable<PermissionPolicy["toolScopes"]>[number]["tools"]) => ({
    toolScopes: [{ anchor: "/p", tools, memoryDirectory: "/p/.claude/agent-memory/x" }],
  });

  test("a scope allows only matching calls and grants none", async () => {
    const policy = { ...scoped({ name: "Bash", allowOnly: ["git diff *", "git push *"] }), trusted: true };
    expect((await judge(bash("git diff"), policy)).type).toBe("allow");
    expect((await judge(bash("git push"), policy)).type).toBe("ask");
    expect((await judge(bash("git diff; touch x"), policy)).type).toBe("deny");
    expect((await judge(bash("npm test"), { ...policy, allow: rules("allow", "Bash") })).type).toBe("deny");
    expect((await judge(calls.readInside, policy)).type).toBe("deny");
  });

  test("an exclusion denies only matching calls, in every tool that edits", async () => {
    const policy = {
      ...scoped({ name: "Edit", deny: ["secrets/**"] }, { name: "Write" }),
      mode: "acceptEdits",
    } as const;
    expect((await judge(calls.editInside, policy)).type).toBe("allow");
    const secret = { tool: "Write", effect: "edit", input: { file_path: "/p/secrets/a" } };
    expect((await judge(secret, policy)).type).toBe("deny");
  });

  test("a tool that is there for memory works only inside the memory directory, and there without a rule", async () => {
    const policy = scoped({ name: "Write", confinedTo: "memory" });
    const write = (file_path: string) => ({ tool: "Write", effect: "edit", input: { file_path } });
    expect((await judge(write("/p/.claude/agent-memory/x/MEMORY.md"), policy)).type).toBe("allow");
    expect((await judge(write("/p/.claude/agent-memory/y/MEMORY.md"), policy)).type).toBe("deny");
    expect((await judge(write("/p/a.ts"), { ...policy, mode: "acceptEdits" })).type).toBe("deny");
  });

  describe("of a child with a memory of its own", () => {
    const write = (name: string) => ({
      tool: "Write",
      effect: "edit",
      input: { file_path: `/p/.claude/agent-memory/${name}` },
    });
    type Scope = NonNullable<PermissionPolicy["toolScopes"]>[number]["tools"][number];
    const below = (...above: Scope[]) => ({
      toolScopes: [
        { anchor: "/p", tools: above, memoryDirectory: "/p/.claude/agent-memory/lead" },
        {
          anchor: "/p",
          tools: [{ name: "Write", confinedTo: "memory" as const }],
          memoryDirectory: "/p/.claude/agent-memory/x",
        },
      ],
    });

    test.each<[string, Scope[]]>([
      ["whose parent does not have the tool", []],
      ["whose parent has it for its own memory", [{ name: "Write", confinedTo: "memory" }]],
      ["whose parent has it for some files", [{ name: "Write", allowOnly: ["docs/**"] }]],
    ])("%s: it works there and not in the parent's memory", async (_, above) => {
      expect((await judge(write("x/MEMORY.md"), below(...above))).type).toBe("allow");
      expect((await judge(write("lead/MEMORY.md"), below(...above))).type).toBe("deny");
    });

    test("what the parent's definition excludes stays excluded", async () => {
      const policy = below({ name: "Edit", deny: [".claude/**"] });
      expect((await judge(write("x/MEMORY.md"), policy)).type).toBe("deny");
    });

    test("rules to deny and to ask, and the guard of what other programs obey, hold there too", async () => {
      const file = "Write(.claude/agent-memory/x/MEMORY.md)";
      expect((await judge(write("x/MEMORY.md"), { ...below(), deny: rules("deny", file) })).type).toBe(
        "deny",
      );
      expect((await judge(write("x/MEMORY.md"), { ...below(), ask: rules("ask", file) })).type).toBe("ask");
      for (const name of ["x/.envrc", "x/.git/config", "x/.claude/settings.json", "x/.vscode/tasks.json"])
        expect((await judge(write(name), below())).type, name).toBe("ask");
    });
  });

  test("agents in the background have no MCP tools and no questions", async () => {
    const policy = { background: true, allow: rules("allow", "mcp__x", "AskUserQuestion", "Bash(npm test)") };
    expect((await judge(calls.server, policy)).type).toBe("deny");
    expect((await judge(calls.question, policy)).type).toBe("deny");
    expect((await judge(calls.run, policy)).type).toBe("deny");
    expect((await judge(bash("npm test"), policy)).type).toBe("allow");
  });
});

test("a bare deny takes the tool from the model's sight, a scoped one does not", () => {
  expect(removesTool({ name: "Bash" }, { deny: rules("deny", "Bash") })).toBe(true);
  expect(removesTool({ name: "Bash" }, { deny: rules("deny", "Bash(rm *)") })).toBe(false);
  expect(removesTool({ name: "mcp__a__b" }, { deny: rules("deny", "mcp__*") })).toBe(true);
});

describe("[TLS-4] rules about servers", () => {
  const pair = { server: "my_server", tool: "do_it" };
  const named = { name: "mcp__my_server__do_it", mcp: pair };

  test.each([
    ["mcp__my_server", true],
    ["mcp__my.server", true],
    ["mcp__my.server__*", true],
    ["mcp__my.server__do.it", true],
    ["mcp__my_server__do*", true],
    ["mcp__my_server__other", false],
    ["mcp__my", false],
    ["mcp__my_server__do_it(path:*)", false],
  ])("the denial %s takes a tool of `my.server` from sight: %s", (rule, expected) => {
    expect(removesTool(named, { deny: rules("deny", rule) })).toBe(expected);
  });

  test.each([
    ["mcp__my.server", true],
    ["mcp__my_server__*", true],
    ["mcp__*", true],
    ["*", true],
    ["mcp__my_server__get_*", false],
    ["mcp__my", false],
    ["Bash", false],
  ])("the denial %s takes all of `my.server` away: %s", (rule, expected) => {
    expect(removesServer("my_server", { deny: rules("deny", rule) })).toBe(expected);
  });

  test.each([
    "mcp__My_Server__do_it",
    "mcp__my_server__Do_It",
    "mcp__MY.server",
    "mcp__my_server__DO*",
    "MCP__my_server__do_it",
    "Mcp__*",
    "mcp__My_Server__do_it(path:*)",
  ])("%s restricts in whatever letter case, and grants nothing [PRM-2]", async (rule) => {
    const call = { tool: named.name, effect: "execute", input: { path: "/x" }, mcp: pair };
    const grants = rules("allow", "mcp__my_server");
    expect((await judge(call, { allow: grants })).type).toBe("allow");
    expect((await judge(call, { allow: grants, deny: rules("deny", rule) })).type).toBe("deny");
    expect((await judge(call, { allow: grants, ask: rules("ask", rule) })).type).toBe("ask");
    const shouting = { ...call, tool: "mcp__MY_SERVER__DO_IT", mcp: { server: "MY_SERVER", tool: "DO_IT" } };
    expect((await judge(shouting, { mode: "bypassPermissions", deny: rules("deny", rule) })).type).toBe(
      "deny",
    );
    if (!rule.includes("*")) expect((await judge(call, { allow: rules("allow", rule) })).type).toBe("ask");
  });

  const reading: CallToJudge = {
    tool: "ReadMcpResourceTool",
    effect: "network",
    input: { server: "my.server", uri: "note://1" },
    mcp: { server: "my_server", tool: "ReadMcpResourceTool" },
  };

  test("[PRM-11] a denied server's resources are not read either, whatever else is allowed", async () => {
    const allow = rules("allow", "ReadMcpResourceTool");
    expect((await judge(reading, { allow })).type).toBe("allow");
    expect((await judge(reading, { allow, deny: rules("deny", "mcp__my.server") })).type).toBe("deny");
    expect((await judge(reading, { allow, deny: rules("deny", "mcp__other") })).type).toBe("allow");
    expect((await judge(reading, { allow, ask: rules("ask", "mcp__my_server") })).type).toBe("ask");
    expect((await judge(reading, { allow, background: true })).type).toBe("deny");
  });

  test("a rule on a field finds the tool however it is spelled", async () => {
    const call = { tool: named.name, effect: "execute", input: { path: "/secret" }, mcp: pair };
    const policy = {
      allow: rules("allow", "mcp__my.server"),
      deny: rules("deny", "mcp__my.server__do.it(path:/secret)"),
    };
    expect((await judge(call, policy)).type).toBe("deny");
    expect((await judge({ ...call, input: { path: "/open" } }, policy)).type).toBe("allow");
  });
});

describe("an allowed call records what let it through", () => {
  const all = rules("allow", "Bash(npm publish)", "mcp__x__y", "Read(//q/**)", "Bash(ls *)");
  test.each([
    ["readInside", {}, {}, "read-only"],
    ["list", {}, {}, "read-only"],
    ["list", { mode: "plan" }, {}, "read-only"],
    ["list", { mode: "acceptEdits" }, {}, "read-only"],
    ["list", { allow: all }, {}, "rule"],
    ["list", { mode: "bypassPermissions" }, {}, "mode"],
    ["list", {}, { hooks: "allow" }, "hook"],
    ["run", { allow: all }, {}, "rule"],
    ["run", {}, { hooks: "allow" }, "hook"],
    ["run", { sandbox: { autoAllow: true, excludedCommands: [], allowUnsandboxed: false } }, {}, "sandbox"],
    ["server", { allow: all }, {}, "rule"],
    ["readOutside", { allow: all }, {}, "rule"],
    ["makeFolder", { mode: "acceptEdits" }, {}, "mode"],
    ["editInside", { mode: "acceptEdits" }, {}, "mode"],
    ["readingServer", { mode: "plan" }, {}, "mode"],
    ["todo", {}, {}, "internal"],
    ["run", {}, {}, undefined],
    ["editInside", {}, {}, undefined],
  ] as const)("%s under %j with %j: %s [PRM-1]", async (name, policy, options, allowedBy) => {
    const decision = await judge(calls[name], policy, options);
    expect(decision.allowedBy).toBe(allowedBy);
    expect(decision.type === "allow").toBe(allowedBy !== undefined);
  });

  test.each([
    ["cat a.ts && npm publish", "rule"],
    ["cat a.ts && mkdir -p b", "mode"],
    ["cat a.ts 2>/dev/null | head -n 3", "read-only"],
    ["cat a.ts > b.ts", "mode"],
  ])("one part that does more than read makes %j more than that [PRM-9]", async (command, allowedBy) => {
    const policy = { mode: "acceptEdits", allow: rules("allow", "Bash(npm publish)") } as const;
    expect(await judge(bash(command), policy)).toMatchObject({ type: "allow", allowedBy });
  });
});

describe("settings that confine calls to the working directories [PRM-8, PRM-10]", () => {
  const everything = rules("allow", "Bash", "Read", "Edit", "Read(//**)", "Edit(//**)");
  const facts = {
    rules: { allow: everything, ask: [], deny: [] },
    workingDirectories: ["/p"],
    directory: "/p",
    home: "/h",
    platform: "linux",
    trusted: true,
  };
  const reads = {
    blockReadsOutsideWorkingDirectories: true,
    blockReadsExemptPaths: ["~/notes", "../common/**"],
  };
  const confined = buildPolicy({ ...facts, switches: reads }, "bypassPermissions");
  const writing = buildPolicy(
    { ...facts, switches: { blockWritesOutsideWorkingDirectories: true } },
    "bypassPermissions",
  );

  test.each<[CallToJudge, "allow" | "deny"]>([
    [calls.readInside, "allow"],
    [calls.readOutside, "deny"],
    [calls.readSibling, "deny"],
    [{ tool: "Read", effect: "read", input: { file_path: "/h/notes/a.md" } }, "allow"],
    [{ tool: "Read", effect: "read", input: { file_path: "/common/a.md" } }, "allow"],
    [{ tool: "Read", effect: "read", input: { file_path: "/h/notes/../secret" } }, "deny"],
    [{ tool: "Grep", effect: "read", input: { pattern: "x", path: "/q" } }, "deny"],
    [{ tool: "Glob", effect: "read", input: { pattern: "../**" } }, "deny"],
    [bash("cat /q/a.ts"), "deny"],
    [bash("cat src/a.ts 2>/dev/null"), "allow"],
    [bash('cat "$FILE"'), "deny"],
    [bash("ls /q/*"), "deny"],
    [bash('eval "$X"'), "deny"],
    [bash("echo a > /q/a.ts"), "allow"],
    [calls.todo, "allow"],
  ])("reads: %j is answered with %s, whatever rules and mode allow", async (call, expected) => {
    expect((await judge(call, confined)).type).toBe(expected);
  });

  test.each<[CallToJudge, "allow" | "deny"]>([
    [calls.editOutside, "deny"],
    [{ tool: "Write", effect: "edit", input: { file_path: "/p/a.ts" } }, "allow"],
    [calls.readOutside, "allow"],
    [bash("echo a > /q/a.ts"), "deny"],
    [bash("echo a > /dev/null"), "allow"],
    [bash("cp src/a.ts /q/"), "deny"],
    [bash("mkdir -p src/new"), "allow"],
  ])("writes: %j is answered with %s", async (call, expected) => {
    expect((await judge(call, writing)).type).toBe(expected);
  });

  test("the outputs of the session stay readable", async () => {
    const rule = { ...everything[3], anchor: "/h/out", from: "/h/out" } as (typeof everything)[number];
    const policy = buildPolicy({ ...facts, outputRules: [rule], switches: reads }, "default");
    const call = { tool: "Read", effect: "read", input: { file_path: "/h/out/1.txt" } };
    expect((await judge(call, policy)).type).toBe("allow");
  });

  test("denyInsteadOfPrompting denies what would be asked, and nothing else", async () => {
    const policy = buildPolicy(
      { ...facts, rules: { allow: [], ask: [], deny: [] }, switches: { denyInsteadOfPrompting: true } },
      "default",
    );
    expect(await judge(calls.run, policy)).toMatchObject({
      type: "deny",
      reason: expect.stringContaining("denyInsteadOfPrompting"),
    });
    expect((await judge(calls.readInside, policy)).type).toBe("allow");
  });
});

describe("accepting edits", () => {
  const policy = { ...open, mode: "acceptEdits" as const };
  const edit = (path: string, over: Partial<PermissionPolicy> = {}) =>
    decide(
      { tool: "Write", effect: "edit", paths: [path], input: { file_path: path } },
      { ...policy, ...over },
    );

  test("a file that steers programs is asked about, by its name and why [PRM-1]", () => {
    expect(edit("/p/src/a.ts").type).toBe("allow");
    expect(edit("/p/package.json")).toMatchObject({
      type: "ask",
      reason: expect.stringMatching(/^accepting edits does not cover \/p\/package\.json: /),
      steering: ["/p/package.json"],
    });
  });

  test("what a person has allowed in the session is allowed again, and nothing else [PRM-1]", () => {
    const acceptedFiles = ["/p/package.json"];
    expect(edit("/p/package.json", { acceptedFiles }).type).toBe("allow");
    expect(edit("/p/packages/a/package.json", { acceptedFiles }).type).toBe("ask");
    expect(edit("/p/package.json", { acceptedFiles, mode: "default" }).type).toBe("ask");
    expect(edit("/p/.git/config", { acceptedFiles: ["/p/.git/config"] }).type).toBe("ask");
    expect(edit("/p/package.json", { acceptedFiles, deny: rules("deny", "Edit(package.json)") }).type).toBe(
      "deny",
    );
  });

  test("a rule for the file decides, but not for a protected one [PRM-1]", () => {
    expect(edit("/p/package.json", { allow: rules("allow", "Edit(./package.json)") }).type).toBe("allow");
    expect(edit("/p/.github/pflows/ci.yml", { allow: rules("allow", "Edit(.github/**)") }).type).toBe(
      "allow",
    );
    expect(edit("/p/.husky/pre-commit", { allow: rules("allow", "Edit(.husky/**)") }).type).toBe("ask");
  });

  test("a protected file is not one that is asked about once [PRM-1]", () => {
    expect(edit("/p/.git/hooks/pre-commit").steering).toBeUndefined();
  });
});
