import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { decide, type PermissionPolicy, type PermissionRequest, removesTool } from "./decide.ts";
import { parseRule } from "./parse-rule.ts";
import { coversPath } from "./path-pattern.ts";

function rules(...texts: readonly string[]) {
  return texts.map((text) => {
    const reading = parseRule(text);
    if (reading.type === "invalid") throw new Error(reading.reason);
    return { rule: reading.rule, anchor: "/p" };
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
  readInside: { tool: "Read", effect: "read", paths: ["/p/a.ts"], input: {} },
  readOutside: { tool: "Read", effect: "read", paths: ["/etc/passwd"], input: {} },
  readSibling: { tool: "Read", effect: "read", paths: ["/p-evil/a.ts"], input: {} },
  edit: { tool: "Edit", effect: "edit", paths: ["/p/a.ts"], input: {} },
  run: { tool: "Bash", effect: "execute", paths: [], command: "npm test", input: {} },
  fetch: { tool: "WebFetch", effect: "network", paths: [], host: "example.com", input: {} },
  todo: { tool: "TodoWrite", effect: "coordinate", paths: [], input: {} },
} as const satisfies Record<string, PermissionRequest>;

test.each([
  // call, default, acceptEdits, plan, dontAsk, bypassPermissions
  ["readInside", "allow", "allow", "allow", "allow", "allow"],
  ["readOutside", "ask", "ask", "deny", "deny", "allow"],
  ["readSibling", "ask", "ask", "deny", "deny", "allow"],
  ["edit", "ask", "allow", "deny", "deny", "allow"],
  ["run", "ask", "ask", "deny", "deny", "allow"],
  ["fetch", "ask", "ask", "deny", "deny", "allow"],
  ["todo", "allow", "allow", "allow", "allow", "allow"],
] as const)("%s without rules: default %s, acceptEdits %s, plan %s, dontAsk %s, bypass %s", (call, ...expected) => {
  const modes = ["default", "acceptEdits", "plan", "dontAsk", "bypassPermissions"] as const;
  expect(modes.map((mode) => decide(calls[call], { ...open, mode }).type)).toEqual(expected);
});

describe("rules", () => {
  const bash = (command: string): PermissionRequest => ({
    tool: "Bash",
    effect: "execute",
    paths: [],
    command,
    input: {},
  });

  test.each([
    ["Bash(npm test)", "npm test", "allow"],
    ["Bash(npm test)", "npm test x", "ask"],
    ["Bash(npm *)", "npm run build", "allow"],
    ["Bash(npm:*)", "npmx", "ask"],
    ["Bash(npm *)", "npm test && rm -rf /", "ask"],
    ["Bash(npm *)", "npm test; rm x", "ask"],
    ["Bash(npm *)", "npm $(rm x)", "ask"],
    ["Bash(npm *)", "npm `rm x`", "ask"],
    ["Bash(npm *)", "npm test > /etc/x", "ask"],
    ["Bash(npm *)", "npm test\nrm x", "ask"],
    ["Bash", "anything | at all", "allow"],
  ])("allow %s, call %j: %s", (rule, command, expected) => {
    expect(decide(bash(command), { ...open, allow: rules(rule) }).type).toBe(expected);
  });

  test.each([
    ["Bash(rm *)", "rm x", "deny"],
    ["Bash(rm *)", "ls && rm x", "deny"],
    ["Bash(rm *)", "ls $(rm x)", "deny"],
    ["Bash(rm *)", "ls -la", "allow"],
    ["Bash", "ls", "deny"],
    ["*", "ls", "deny"],
  ])("deny %s wins over bypass for %j: %s", (rule, command, expected) => {
    expect(decide(bash(command), { ...open, mode: "bypassPermissions", deny: rules(rule) }).type).toBe(
      expected,
    );
  });

  test("a path that may not be read may not be written either, under any mode", () => {
    const policy: PermissionPolicy = { ...open, mode: "bypassPermissions", deny: rules("Read(.env)") };
    expect(decide({ ...calls.readInside, paths: ["/p/.env"] }, policy).type).toBe("deny");
    expect(decide({ ...calls.edit, paths: ["/p/sub/.env"] }, policy).type).toBe("deny");
    expect(decide(calls.edit, policy).type).toBe("allow");
  });

  test("a grant of paths needs all of them, a restriction one", () => {
    const two: PermissionRequest = { ...calls.edit, paths: ["/p/src/a", "/q/b"] };
    expect(decide(two, { ...open, allow: rules("Edit(src/**)") }).type).toBe("ask");
    expect(decide(two, { ...open, deny: rules("Edit(src/**)") }).type).toBe("deny");
  });

  test("adding a deny rule never widens", () => {
    const rule = fc.constantFrom(
      "Bash",
      "Bash(rm *)",
      "Read(.env)",
      "Edit(src/**)",
      "WebFetch(domain:a.com)",
      "*",
      "mcp__x",
    );
    const rank = { deny: 0, ask: 1, allow: 2 };
    fc.assert(
      fc.property(
        fc.constantFrom(...Object.values(calls)),
        fc.array(rule),
        fc.array(rule),
        rule,
        (call, allow, deny, more) => {
          const allowRules = rules(...allow.filter((text) => text !== "*"));
          const before = decide(call, { ...open, allow: allowRules, deny: rules(...deny) }).type;
          const after = decide(call, { ...open, allow: allowRules, deny: rules(...deny, more) }).type;
          expect(rank[after]).toBeLessThanOrEqual(rank[before]);
        },
      ),
    );
  });

  test("a bare deny takes the tool from the model's sight, a scoped one does not", () => {
    expect(removesTool("Bash", { deny: rules("Bash") })).toBe(true);
    expect(removesTool("Bash", { deny: rules("Bash(rm *)") })).toBe(false);
    expect(removesTool("mcp__a__b", { deny: rules("mcp__*") })).toBe(true);
  });
});

test.each([
  ["src/**", "/p/src/a/b", true],
  ["src/**", "/p/src", true],
  ["src/**", "/p/lib/src/a", false],
  ["*.ts", "/p/deep/a.ts", true],
  ["*.ts", "/p/a.js", false],
  [".env", "/p/x/.env", true],
  ["a/*/c", "/p/a/b/c", true],
  ["a/*/c", "/p/a/b/d/c", false],
  ["**/x", "/p/a/b/x", true],
  ["build", "/p/build/out/x", true],
  ["src", "/p-evil/src", false],
])("%s covers %s: %s", (pattern, path, expected) => {
  expect(coversPath(pattern, "/p", path)).toBe(expected);
});
