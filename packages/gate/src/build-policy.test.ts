import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { childMode, childPolicy, type RequestedRights } from "./build-policy.ts";
import { decide, type PermissionPolicy } from "./decide.ts";
import { type CallToJudge, gatherCallFacts } from "./gather-call-facts.ts";
import { type PermissionMode, permissionModes } from "./permission-policy.ts";
import { parseRule } from "./rules/parse-rule.ts";

const open: PermissionPolicy = {
  mode: "default",
  allow: [],
  ask: [],
  deny: [],
  workingDirectories: ["/p"],
  home: "/h",
};

describe("[PRM-3] the mode of a child", () => {
  const user = (mode: PermissionMode): RequestedRights => ({ definition: { mode, scope: "user" } });
  const project = (mode: PermissionMode, projectMayWiden: boolean): RequestedRights => ({
    definition: { mode, scope: "project" },
    projectMayWiden,
  });
  const plugin = (mode: PermissionMode): RequestedRights => ({ definition: { mode, scope: "plugin" } });
  const call = (mode: PermissionMode, by: "program" | "model"): RequestedRights => ({ call: { mode, by } });

  test.each<[parent: PermissionMode, what: string, requestedRights: RequestedRights, child: PermissionMode]>([
    ["default", "nothing", {}, "default"],
    ["plan", "nothing", {}, "plan"],
    ["bypassPermissions", "plan in its file", user("plan"), "bypassPermissions"],
    ["bypassPermissions", "plan in the call of a program", call("plan", "program"), "bypassPermissions"],
    ["default", "acceptEdits in its file", user("acceptEdits"), "acceptEdits"],
    ["default", "acceptEdits in a project file", project("acceptEdits", false), "default"],
    ["default", "acceptEdits in a project file that may", project("acceptEdits", true), "acceptEdits"],
    ["default", "acceptEdits in a plugin file", plugin("acceptEdits"), "default"],
    ["default", "plan in a plugin file", plugin("plan"), "plan"],
    ["default", "bypassPermissions in its file", user("bypassPermissions"), "default"],
    ["plan", "acceptEdits in its file", user("acceptEdits"), "plan"],
    ["plan", "default in its file", user("default"), "plan"],
    ["dontAsk", "default in its file", user("default"), "dontAsk"],
    ["dontAsk", "acceptEdits in its file", user("acceptEdits"), "dontAsk"],
    ["acceptEdits", "plan in its file", user("plan"), "plan"],
    ["default", "acceptEdits in the call of a model", call("acceptEdits", "model"), "default"],
    ["default", "bypassPermissions in the call of a model", call("bypassPermissions", "model"), "default"],
    ["acceptEdits", "plan in the call of a model", call("plan", "model"), "plan"],
    [
      "default",
      "bypassPermissions in the call of a program",
      call("bypassPermissions", "program"),
      "bypassPermissions",
    ],
  ])("under %s, with %s", (parent, _what, requestedRights, child) => {
    expect(childMode(parent, requestedRights)).toBe(child);
  });
});

describe("[PRM-4, PRM-5] the rights of a child", () => {
  const calls: readonly CallToJudge[] = [
    { tool: "Read", effect: "read", input: { file_path: "/p/a" } },
    { tool: "Read", effect: "read", input: { file_path: "/q/a" } },
    { tool: "Edit", effect: "edit", input: { file_path: "/p/a" } },
    { tool: "Write", effect: "edit", input: { file_path: "/p/.mcp.json" } },
    { tool: "Bash", effect: "execute", input: { command: "npm publish" } },
    { tool: "Bash", effect: "execute", input: { command: "ls" } },
    { tool: "Bash", effect: "execute", input: { command: "mkdir x" } },
    { tool: "WebFetch", effect: "network", input: { url: "https://example.com/" } },
    { tool: "mcp__x__y", effect: "read", input: {}, mcp: { server: "x", tool: "y" } },
    { tool: "AskUserQuestion", effect: "interact", input: {} },
  ];
  const rules = (texts: readonly string[]) =>
    texts.map((text) => {
      const reading = parseRule(text);
      if (reading.type === "invalid") throw new Error(reading.reason);
      return { rule: reading.rule, anchor: "/p" };
    });
  const ruleTexts = fc.array(
    fc.constantFrom(
      "Bash",
      "Bash(npm *)",
      "Edit",
      "Edit(/a)",
      "Read(//q/**)",
      "WebFetch",
      "mcp__x",
      "AskUserQuestion",
    ),
  );
  const mode = fc.constantFrom(...permissionModes);
  const scopes = fc.constantFrom(
    undefined,
    [{ anchor: "/p", tools: [{ name: "Read" }, { name: "Bash", allowOnly: ["npm *"] }] }],
    [{ anchor: "/p", tools: [{ name: "Edit", deny: ["a"] }, { name: "Bash" }, { name: "Write" }] }],
  );

  test("a child is never allowed what its parent is refused", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...calls),
        fc.record({
          mode,
          allow: ruleTexts,
          ask: ruleTexts,
          deny: ruleTexts,
          scopes,
          attended: fc.boolean(),
        }),
        fc.record({
          mode,
          scope: fc.constantFrom("user", "project", "plugin"),
          asked: fc.option(mode),
          background: fc.boolean(),
        }),
        async (call, parent, child) => {
          const { scopes: toolScopes } = parent;
          const parentPolicy: PermissionPolicy = {
            ...open,
            mode: parent.mode,
            allow: rules(parent.allow),
            ask: rules(parent.ask),
            deny: rules(parent.deny),
            ...(toolScopes === undefined ? {} : { toolScopes }),
          };
          const policy = childPolicy(parentPolicy, {
            definition: { mode: child.mode, scope: child.scope },
            projectMayWiden: true,
            background: child.background,
            ...(child.asked === null ? {} : { call: { mode: child.asked, by: "model" } }),
          });
          const request = await gatherCallFacts(call, { policy: parentPolicy, directory: "/p" });
          const above = decide(request, parentPolicy);
          const below = decide(request, policy, { attended: parent.attended });
          if (above.type === "deny") expect(below.type).toBe("deny");
          if (above.type === "ask" && above.rule !== undefined) expect(below.type).not.toBe("allow");
        },
      ),
      { numRuns: 120 },
    );
  });

  test("a child under one that accepts edits, started in the background, still edits and asks nothing", async () => {
    const policy = childPolicy({ ...open, mode: "acceptEdits" }, { background: true });
    const judge = async (call: CallToJudge) =>
      decide(await gatherCallFacts(call, { policy, directory: "/p" }), policy).type;
    expect(await judge({ tool: "Edit", effect: "edit", input: { file_path: "/p/a.ts" } })).toBe("allow");
    expect(await judge({ tool: "Bash", effect: "execute", input: { command: "npm publish" } })).toBe("deny");
  });
});
