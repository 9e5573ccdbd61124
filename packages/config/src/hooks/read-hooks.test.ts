import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readHooks, readHooksFile } from "./read-hooks.ts";

const command = { type: "command", command: "./check.sh" };
const codes = (value: unknown) => readHooks(value).issues.map((issue) => issue.code);

describe("the shapes of a hooks value", () => {
  it("reads groups with matchers into a flat list in the order written [HKS-3]", () => {
    const { hooks, issues } = readHooks({
      PreToolUse: [
        { matcher: "Edit|Write", hooks: [command, { type: "prompt", prompt: "Check it" }] },
        { hooks: [{ type: "http", url: "https://example.com/hook" }] },
      ],
      Stop: [{ hooks: [{ type: "agent", prompt: "Verify" }] }],
    });
    expect(hooks).toEqual([
      { event: "PreToolUse", matcher: "Edit|Write", handler: command },
      { event: "PreToolUse", matcher: "Edit|Write", handler: { type: "prompt", prompt: "Check it" } },
      { event: "PreToolUse", handler: { type: "http", url: "https://example.com/hook" } },
      { event: "Stop", handler: { type: "agent", prompt: "Verify" } },
    ]);
    expect(issues).toEqual([]);
  });

  it.each([
    ["a handler directly under the event", { Stop: [command] }],
    ["a single group instead of a list", { Stop: { hooks: [command] } }],
    ["a single handler instead of a list", { Stop: command }],
    ["a single handler under hooks", { Stop: [{ hooks: command }] }],
    ["a handler without a type", { Stop: [{ command: "./check.sh" }] }],
  ])("accepts %s [HKS-3]", (_, value) => {
    expect(readHooks(value)).toEqual({ hooks: [{ event: "Stop", handler: command }], issues: [] });
  });

  it("accepts a matcher beside a command without hooks and type [HKS-3]", () => {
    expect(readHooks({ PreToolUse: [{ matcher: "Write|Edit", command: "./check.sh" }] })).toEqual({
      hooks: [{ event: "PreToolUse", matcher: "Write|Edit", handler: command }],
      issues: [],
    });
  });

  it.each([
    [[{ type: "PreToolUse", matcher: "Bash", command: "./check.sh", description: "why" }]],
    [[{ event: "PreToolUse", matcher: "Bash", type: "command", command: "./check.sh" }]],
    [[{ event: "PreToolUse", matcher: "Bash", hooks: [command] }]],
    [[{ PreToolUse: [{ matcher: "Bash", hooks: [command] }] }]],
  ])("reads list-shaped hooks and says so once per entry: %j", (value) => {
    expect(readHooks(value).hooks).toEqual([{ event: "PreToolUse", matcher: "Bash", handler: command }]);
    expect(codes(value)).toEqual(["list-shaped-hooks"]);
  });

  it("reports a list entry without a known event as left out", () => {
    expect(codes([{ command: "x" }, { event: "PreTolUse", command: "x" }])).toEqual([
      "list-shaped-hooks",
      "hook-group-invalid",
      "list-shaped-hooks",
      "unknown-hook-event",
    ]);
  });

  it.each([
    undefined,
    null,
    {},
    { Stop: [] },
    { Stop: null },
    { Stop: [{ hooks: [] }] },
  ])("finds nothing in %j", (value) => {
    expect(readHooks(value)).toEqual({ hooks: [], issues: [] });
  });

  it.each(["echo hi", 5, true])("reports a hooks value of the wrong kind: %j", (value) => {
    expect(readHooks(value).hooks).toEqual([]);
    expect(codes(value)).toEqual(["hooks-not-an-object"]);
  });

  it("never runs what is under an unknown event, and names the event that was meant", () => {
    const { hooks, issues } = readHooks({ pre: "echo start", pretooluse: [command], __proto_: 1 });
    expect(hooks).toEqual([]);
    expect(issues.map((issue) => issue.code)).toEqual(Array(3).fill("unknown-hook-event"));
    expect(issues[0]?.advice).toBe("Did you mean PreToolUse?");
    expect(issues[1]?.advice).toBe("Did you mean PreToolUse?");
    expect(issues[1]?.path).toEqual(["hooks", "pretooluse"]);
  });

  it("says when a command beside hooks is not used", () => {
    const value = { Stop: [{ command: "./forgotten.sh", hooks: [command] }] };
    expect(readHooks(value).hooks).toHaveLength(1);
    expect(codes(value)).toEqual(["hook-group-invalid"]);
  });
});

describe("matchers", () => {
  it.each([undefined, null, "", "  ", "*"])("takes %j as everything [HKS-4]", (matcher) => {
    const { hooks } = readHooks({ PreToolUse: [{ matcher, hooks: [command] }] });
    expect(hooks).toEqual([{ event: "PreToolUse", handler: command }]);
  });

  it.each([".*", "Edit|Write", "mcp__.*"])("keeps %j as written", (matcher) => {
    const { hooks, issues } = readHooks({ PreToolUse: [{ matcher, hooks: [command] }] });
    expect(hooks[0]?.matcher).toBe(matcher);
    expect(issues).toEqual([]);
  });

  it("keeps an expression of another product, with a note that no tool matches it [HKS-4]", () => {
    const matcher = 'tool == "Bash" && x matches "(a|b)"';
    const { hooks, issues } = readHooks({ PreToolUse: [{ matcher, hooks: [command] }] });
    expect(hooks[0]?.matcher).toBe(matcher);
    expect(issues).toMatchObject([{ severity: "note", code: "hook-matcher-matches-nothing" }]);
  });

  it("joins a list of names", () => {
    expect(
      readHooks({ PreToolUse: [{ matcher: ["Edit", "Write"], hooks: [command] }] }).hooks[0]?.matcher,
    ).toBe("Edit|Write");
  });

  it("leaves a group out whose matcher it cannot understand, rather than firing for everything", () => {
    const value = { PreToolUse: [{ matcher: { tools: ["Bash"] }, hooks: [command] }] };
    expect(readHooks(value).hooks).toEqual([]);
    expect(codes(value)).toEqual(["hook-matcher-invalid"]);
  });

  it("warns of a matcher that is no regular expression", () => {
    expect(codes({ PreToolUse: [{ matcher: "*.ts", hooks: [command] }] })).toEqual([
      "hook-matcher-not-a-pattern",
    ]);
  });
});

describe("handlers", () => {
  it.each([
    ["no command", { type: "command" }],
    ["an empty command", { type: "command", command: " " }],
    ["a command that is a list", { type: "command", command: ["a"] }],
    ["no url", { type: "http", prompt: "x" }],
    ["no prompt", { type: "prompt" }],
    ["no tool", { type: "mcp_tool", server: "s" }],
    ["an unknown type", { type: "comand", command: "x" }],
    ["no type and no distinguishing field", { timeout: 5 }],
    ["a condition that is no rule", { ...command, if: ["Bash"] }],
    ["arguments that are no list", { ...command, args: "-x" }],
    ["a text instead of an object", "echo hi"],
  ])("drops a handler with %s and says so", (_, handler) => {
    const value = { Stop: [{ hooks: [handler, command] }] };
    expect(readHooks(value).hooks).toEqual([{ event: "Stop", handler: command }]);
    expect(codes(value)).toEqual(["hook-handler-invalid"]);
  });

  it("reads every field of a type, numbers written as text too, and leaves other types' fields out", () => {
    const handler = {
      ...command,
      args: ["a", 1],
      timeout: "30",
      async: "true",
      shell: "bash",
      onFailure: "block",
      if: "Bash(git *)",
      statusMessage: "Checking",
      once: false,
      url: "https://example.com",
      unknown: 1,
    };
    expect(readHooks({ Stop: [handler] })).toEqual({
      hooks: [
        {
          event: "Stop",
          handler: {
            ...command,
            args: ["a", "1"],
            timeout: 30,
            async: true,
            shell: "bash",
            onFailure: "block",
            if: "Bash(git *)",
            statusMessage: "Checking",
            once: false,
          },
        },
      ],
      issues: [],
    });
  });

  it.each([
    ["timeout", -1],
    ["timeout", "soon"],
    ["async", "maybe"],
    ["shell", "zsh"],
    ["onFailure", "explode"],
  ])("keeps a handler whose detail %s is wrong (%j) and says what was expected", (name, wrong) => {
    const reading = readHooks({ Stop: [{ ...command, [name]: wrong }] });
    expect(reading.hooks).toEqual([{ event: "Stop", handler: command }]);
    expect(reading.issues).toMatchObject([{ code: "hook-field-invalid", path: ["hooks", "Stop", 0, name] }]);
  });
});

describe("robustness", () => {
  it("reads the events of a hooks file under hooks or at the top", () => {
    const events = { Stop: [{ hooks: [command] }] };
    const expected = { hooks: [{ event: "Stop", handler: command }], issues: [] };
    expect(readHooksFile({ description: "Guards", hooks: events })).toEqual(expected);
    expect(readHooksFile({ $schema: "x", description: "Guards", ...events })).toEqual(expected);
    expect(readHooksFile("no").issues).toHaveLength(1);
  });

  it("stops at a thousand handlers, so that repeated aliases cannot grow without end", () => {
    const group = { hooks: Array(500).fill(command) };
    const reading = readHooks({ Stop: Array(500).fill(group) });
    expect(reading.hooks.length).toBeLessThanOrEqual(1000);
    expect(reading.issues.map((issue) => issue.code)).toEqual(["too-many-hooks"]);
  });

  it("is not fooled by keys of the object prototype", () => {
    const value: unknown = JSON.parse('{"__proto__": [{"command": "x"}], "constructor": [{"command": "x"}]}');
    expect(readHooks(value).hooks).toEqual([]);
    expect(codes(value)).toEqual(["unknown-hook-event", "unknown-hook-event"]);
  });

  it("never throws, whatever is there, and every hook it gives is of a known event and complete", () => {
    const key = fc.constantFrom(
      "Stop",
      "PreToolUse",
      "hooks",
      "matcher",
      "type",
      "command",
      "url",
      "event",
      "timeout",
      "x",
    );
    const leaf = fc.oneof(
      fc.constantFrom("command", "http", "Stop", "*", "", "("),
      fc.integer(),
      fc.boolean(),
      fc.constant(null),
    );
    const { tree } = fc.letrec<{ tree: unknown }>((tie) => ({
      tree: fc.oneof(
        { maxDepth: 5 },
        leaf,
        fc.array(tie("tree"), { maxLength: 4 }),
        fc.dictionary(key, tie("tree"), { maxKeys: 4 }),
      ),
    }));
    fc.assert(
      fc.property(fc.oneof(tree, fc.jsonValue()), (value) => {
        for (const { handler } of [...readHooks(value).hooks, ...readHooksFile(value).hooks]) {
          expect(handler.command ?? handler.url ?? handler.prompt ?? handler.server).toMatch(/\S/);
        }
      }),
    );
  });
});
