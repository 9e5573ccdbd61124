import { parseRule } from "@retinue/gate/rules/parse-rule.ts";
import { describe, expect, test } from "vitest";
import { readSettings } from "./settings.ts";

function read(value: unknown) {
  const { settings, issues } = readSettings(value, { scope: "user" });
  return {
    settings,
    broken: settings.brokenRestrictions,
    errors: issues.filter(({ severity }) => severity === "error"),
    advice: issues.map(({ advice }) => advice).join(" "),
    codes: issues.map(({ code }) => code),
  };
}

const command = { type: "command", command: "exit 2" };

describe("a guard that is written slightly wrong ends the start, with what was meant", () => {
  test.each<[unknown, string, string]>([
    [{ preToolUse: [{ hooks: [command] }] }, "hooks.preToolUse", "PreToolUse"],
    [{ PreToolUsee: [{ hooks: [command] }] }, "hooks.PreToolUsee", "PreToolUse"],
    [{ PermissionRequests: [{ hooks: [command] }] }, "hooks.PermissionRequests", "PermissionRequest"],
    [{ PreToolUse: "exit 2" }, "hooks.PreToolUse", "PreToolUse"],
    [{ PreToolUse: [{ hooks: ["exit 2"] }] }, "hooks.PreToolUse.0", "command"],
    [{ PreToolUse: [{ matcher: "Bash", hook: [command] }] }, "hooks.PreToolUse.0", "types"],
    [{ PreToolUse: [{ hooks: [{ ...command, type: "shell" }] }] }, "hooks.PreToolUse.0", "types"],
    [{ PreToolUse: [{ hooks: [{ ...command, type: "comand" }] }] }, "hooks.PreToolUse.0", '"command"'],
    [{ PreToolUse: [{ hooks: [{ type: "command" }] }] }, "hooks.PreToolUse.0", "command"],
    [
      { UserPromptSubmit: [{ hooks: [{ type: "command", command: "" }] }] },
      "hooks.UserPromptSubmit.0",
      "command",
    ],
    [{ PreToolUse: [{ hooks: [{ ...command, args: "x" }] }] }, "hooks.PreToolUse.0", "args"],
    [{ PreToolUse: [{ matcher: 3, hooks: [command] }] }, "hooks.PreToolUse.0", "Edit|Write"],
    [{ PreToolUse: [{ matcher: "Edit|Wirte", hooks: [command] }] }, "hooks.PreToolUse.0", "Write"],
    [{ PreToolUse: [{ matcher: "^bash$", hooks: [command] }] }, "hooks.PreToolUse.0", "Bash"],
    ["exit 2", "hooks", "PreToolUse"],
  ])("%j [DRP-2]", (hooks, place, advice) => {
    const reading = read({ hooks });
    expect(reading.broken).toEqual([place]);
    expect(reading.errors).toHaveLength(1);
    expect(reading.advice).toContain(advice);
  });

  test.each<[unknown, string[]]>([
    [{ PostTooluse: [{ hooks: [command] }] }, ["unknown-hook-event"]],
    [{ PreNewThing: [{ hooks: [command] }] }, ["unknown-hook-event"]],
    [{ Stop: [{ hooks: [{ type: "command" }] }] }, ["hook-handler-invalid"]],
    [{ PreToolUse: [{ matcher: 'tool == "Bash"', hooks: [command] }] }, ["hook-matcher-matches-nothing"]],
    [{ PreToolUse: [{ matcher: "Deploy|mcp__a__b", hooks: [command] }] }, []],
    [{ PreToolUse: [{ matcher: "Task(Create|Update)", hooks: [command] }] }, []],
    [{ PreToolUse: [{ matcher: "mcp__.*", hooks: [command] }] }, []],
    [{ PreToolUse: [{ matcher: "bash", hooks: [command] }], Stop: [] }, []],
  ])("%j only warns, or says nothing [DRP-2]", (hooks, codes) => {
    expect(read({ hooks })).toMatchObject({ broken: [], codes });
  });

  test("a rule in the place of a matcher is the condition of its hooks [HKS-4]", () => {
    const { settings, broken } = read({
      hooks: { PreToolUse: [{ matcher: "Bash(rm:*)", hooks: [command] }] },
    });
    expect(settings.hooks).toEqual([
      { event: "PreToolUse", matcher: "Bash", handler: { ...command, if: "Bash(rm:*)" } },
    ]);
    expect(broken).toEqual([]);
  });
});

describe("a restriction that is written slightly wrong ends the start, with what was meant", () => {
  test.each<[unknown, string, string]>([
    [{ sandbox: { enabled: "yes" } }, "sandbox.enabled", "true or false"],
    [{ sandbox: { enable: true } }, "sandbox.enable", "enabled"],
    [{ sandbox: { Enabled: true } }, "sandbox.Enabled", "enabled"],
    [{ sandbox: { filesystem: { denyread: ["~/.ssh"] } } }, "sandbox.filesystem.denyread", "denyRead"],
    [{ sandbox: { filesystem: ["~/.ssh"] } }, "sandbox.filesystem", "an object"],
    [{ sandbox: { network: { deniedDomains: [1] } } }, "sandbox.network.deniedDomains", "strings"],
    [{ sandBox: { enabled: true } }, "sandBox", "sandbox"],
    [{ permision: { deny: ["Bash"] } }, "permision", "permissions"],
    [{ premissions: { defaultMode: "plan" } }, "premissions", "permissions"],
    [{ permissions: { defaultMode: "pln" } }, "permissions.defaultMode", "plan"],
    [{ permissions: { defaultmode: "plan" } }, "permissions.defaultmode", "defaultMode"],
    [{ defaultMode: "plan" }, "defaultMode", "permissions"],
    [{ permissionMode: "dontAsk" }, "permissionMode", "defaultMode"],
    [{ hook: { PreToolUse: [{ hooks: [command] }] } }, "hook", "hooks"],
    [
      { permissions: { blockWritesOutsideWorkingDirectory: true } },
      "permissions.blockWritesOutsideWorkingDirectory",
      "blockWritesOutsideWorkingDirectories",
    ],
  ])("%j [DRP-2]", (value, place, advice) => {
    const reading = read(value);
    expect(reading.broken.join(" ")).toContain(place);
    expect(reading.errors.length).toBeGreaterThan(0);
    expect(reading.advice).toContain(advice);
  });

  test("texts for switches of the sandbox are understood [DRP-2]", () => {
    const { settings, broken } = read({ sandbox: { enabled: "true", failIfUnavailable: "false" } });
    expect(settings.plain.sandbox).toEqual({ enabled: true, failIfUnavailable: false });
    expect(broken).toEqual([]);
  });

  test.each<unknown>([
    { permisions: { allow: ["Read"] } },
    { permissions: { defaultMode: "acceptEdit" } },
    { defaultMode: "acceptEdits" },
    { sandbox: { enabled: true, somethingNew: { a: 1 } } },
    { spinnerTipsEnabled: false, plansDirectory: "x", _hooks_note: "text", attribution: {} },
    { hook: "text" },
  ])("%j restricts nothing and ends nothing [DRP-2]", (value) => {
    expect(read(value).broken).toEqual([]);
  });

  test.each([
    ["Bash(touch:PW)", "Bash(touch PW)"],
    ["Bash(git:push)", "Bash(git:*)"],
    ["Bash(npm:run:*)", "Bash(npm run:*)"],
    ["Bsh", "Bash"],
    ["Wirte(src/**)", "Write"],
    ["Shell(touch:*)", "Bash"],
    ["Read(path:.env)", "Read(.env)"],
  ])("the rule %s is no rule to deny by [PRM-9]", (text, advice) => {
    for (const list of ["deny", "ask"] as const) {
      const reading = parseRule(text, { list });
      expect(reading).toMatchObject({ type: "invalid" });
      expect(reading.type === "invalid" ? reading.advice : "").toContain(advice);
    }
  });

  test.each([
    "Bash(npm run test:unit)",
    "Bash(git push origin HEAD:main)",
    "Bash(timeout:*)",
    "Bash(run_in_background:true)",
    "Deploy",
    "Deploy(stage:prod)",
    "SlashCommand",
    "mcp__a__b",
    "Read(./secrets/**)",
    "Bash(curl https://x.example:8080/*)",
    "Bash(C:\\tools\\x.exe)",
  ])("the rule %s is one to deny by [PRM-9]", (text) => {
    expect(parseRule(text, { list: "deny" }).type).toBe("rule");
  });
});
