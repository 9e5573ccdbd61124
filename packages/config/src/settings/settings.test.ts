import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readSettings, type SettingsScope } from "./settings.ts";

const read = (value: unknown, scope: SettingsScope = "user") => readSettings(value, { scope });
const codes = (value: unknown, scope?: SettingsScope) => read(value, scope).issues.map((issue) => issue.code);

describe("reading settings", () => {
  it("reads permissions, hooks, env and plain keys, and keeps unknown keys untouched", () => {
    const unknown = { deep: [1, { a: null }] };
    const { settings, issues } = read({
      permissions: {
        allow: ["Bash(npm run *)", "Read"],
        ask: ["Bash(git push *)"],
        deny: [{ tool: "Task", args: "worker" }],
        defaultMode: "acceptEdits",
        additionalDirectories: ["../docs"],
        disableBypassPermissionsMode: "disable",
      },
      hooks: { Stop: [{ hooks: [{ type: "command", command: "./done.sh" }] }] },
      env: { CI: "1", PORT: 3000, DEBUG: true },
      model: "opus",
      cleanupPeriodDays: "7",
      fallbackModel: "haiku",
      companyKey: unknown,
    });
    expect(issues).toEqual([]);
    expect(settings.permissions.allow.map((rule) => rule.text)).toEqual(["Bash(npm run *)", "Read"]);
    expect(settings.permissions.deny).toMatchObject([
      { text: "Task(worker)", rule: { canonicalTool: "Agent" } },
    ]);
    expect(settings.permissions).toMatchObject({
      defaultMode: "acceptEdits",
      additionalDirectories: ["../docs"],
      switches: { disableBypassPermissionsMode: "disable" },
    });
    expect(settings.hooks).toHaveLength(1);
    expect([...settings.env]).toEqual([
      ["CI", "1"],
      ["PORT", "3000"],
      ["DEBUG", "true"],
    ]);
    expect(settings.plain).toEqual({ model: "opus", cleanupPeriodDays: 7, fallbackModel: ["haiku"] });
    expect(settings.extra.get("companyKey")).toBe(unknown);
  });

  it("drops an invalid allow rule with a warning", () => {
    const { settings, issues } = read({ permissions: { allow: ["Edit:*", "Read", 5] } });
    expect(settings.permissions.allow.map((rule) => rule.text)).toEqual(["Read"]);
    expect(settings.permissions.invalidRules.map((rule) => rule.text)).toEqual(["Edit:*", "5"]);
    expect(issues.map((issue) => issue.severity)).toEqual(["warning", "warning"]);
    expect(issues[0]).toMatchObject({
      path: ["permissions", "allow", 0],
      advice: "Write Edit or Edit(*).",
    });
    expect(settings.brokenRestrictions).toEqual([]);
  });

  it.each([
    [{ permissions: { denied: ["Bash"] } }, "permissions.denied"],
    [{ permissions: { block: ["Bash"] } }, "permissions.block"],
    [{ permissions: { disableBypassPermissionsMode: "maybe" } }, "permissions.disableBypassPermissionsMode"],
    [{ permissions: { denyInsteadOfPrompting: 3 } }, "permissions.denyInsteadOfPrompting"],
    [{ Permissions: { deny: ["Bash"] } }, "Permissions"],
    [{ deny: ["Bash"] }, "deny"],
    [{ disallowedTools: "Bash" }, "disallowedTools"],
    [{ disableBypassPermissionsMode: "disable" }, "disableBypassPermissionsMode"],
    [{ deniedModels: { opus: true } }, "deniedModels"],
    [{ sandbox: "strict" }, "sandbox"],
  ])("makes %j, which was meant to restrict, an error [PRM-8]", (value, broken) => {
    const { settings, issues } = read(value);
    expect(settings.brokenRestrictions).toEqual([broken]);
    expect(issues).toMatchObject([{ severity: "error" }]);
  });

  it.each([
    { permissions: { denied: [] } },
    { permissions: { bash: { enabled: true } } },
    { deny: [] },
    { permission: { allow: ["Bash"] } },
  ])("does not take %j for a restriction", (value) => {
    expect(read(value).settings.brokenRestrictions).toEqual([]);
  });

  it("reads a switch that says true where a word is documented, and a sandbox that is only switched on", () => {
    const { settings, issues } = read({
      permissions: { disableBypassPermissionsMode: true, defaultMode: "Plan" },
      disableAutoMode: "true",
      sandbox: true,
    });
    expect(issues).toEqual([]);
    expect(settings.permissions).toMatchObject({
      switches: { disableBypassPermissionsMode: "disable" },
      defaultMode: "plan",
    });
    expect(settings.plain).toEqual({ disableAutoMode: "disable", sandbox: { enabled: true } });
  });

  it.each(["deny", "ask"])("makes an invalid %s rule an error that cannot pass unseen", (list) => {
    const { settings, issues } = read({ permissions: { [list]: ["Bash(rm *", "Read(./.env)"] } });
    expect(issues).toMatchObject([{ severity: "error", code: "invalid-permission-rule" }]);
    expect(settings.brokenRestrictions).toEqual(["Bash(rm *"]);
    expect(settings.permissions[list as "deny"]).toHaveLength(1);
  });

  it.each([
    ["a deny that is no list", { permissions: { deny: { Bash: true } } }],
    ["a misspelt deny", { permissions: { Deny: ["Bash"] } }],
    ["permissions that are no object", { permissions: ["Bash"] }],
    ["a file that is no object", ["Bash"]],
  ])("takes %s for a broken restriction", (_, value) => {
    const { settings, issues } = read(value);
    expect(settings.brokenRestrictions).toHaveLength(1);
    expect(issues.map((issue) => issue.severity)).toEqual(["error"]);
  });

  it("reports unknown keys under permissions and names the one that was meant", () => {
    const { settings, issues } = read({ permissions: { bash: { allow: [] }, default_mode: "plan" } });
    expect(settings.permissions.unknownKeys).toEqual(["bash", "default_mode"]);
    expect(issues.map((issue) => issue.code)).toEqual(["unknown-permission-key", "unknown-permission-key"]);
    expect(issues[1]?.advice).toBe('Did you mean "defaultMode"?');
  });

  it.each([
    [{ model: 5 }, ["model"]],
    [{ cleanupPeriodDays: -1 }, ["cleanupPeriodDays"]],
    [{ teammateMode: "carousel" }, ["teammateMode"]],
    [{ env: "CI=1" }, ["env"]],
    [{ env: { A: {} } }, ["env", "A"]],
    [{ env: { "A=B": "x" } }, ["env", "A=B"]],
    [{ permissions: { defaultMode: "yolo" } }, ["permissions", "defaultMode"]],
    [{ permissions: { additionalDirectories: 5 } }, ["permissions", "additionalDirectories"]],
  ])("reports a wrong value with what was expected: %j", (value, path) => {
    const { issues } = read(value);
    expect(issues).toMatchObject([{ severity: "warning", code: "wrong-setting-value", path }]);
  });

  it("warns of a rule whose parentheses mean nothing for the tool", () => {
    expect(codes({ permissions: { deny: ["WebFetch(https://example.com)"] } })).toEqual([
      "rule-not-understood",
    ]);
  });

  it("takes keys of the organisation only from its own file", () => {
    expect(codes({ allowManagedHooksOnly: true }, "project")).toEqual(["managed-only-setting"]);
    expect(read({ allowManagedHooksOnly: true }, "managed").settings.plain.allowManagedHooksOnly).toBe(true);
  });

  it("is not fooled by keys of the object prototype", () => {
    const value: unknown = JSON.parse(
      '{"__proto__": {"model": "opus"}, "env": {"__proto__": "x"}, "permissions": {"__proto__": {"allow": ["Bash"]}}}',
    );
    const { settings } = read(value);
    expect(settings.plain).toEqual({});
    expect(settings.permissions.allow).toEqual([]);
    expect([...settings.env]).toEqual([["__proto__", "x"]]);
    expect([...settings.extra.keys()]).toEqual(["__proto__"]);
  });

  it("refuses a value nested beyond reason instead of overflowing", () => {
    const deep: unknown = JSON.parse(`{"x": ${"[".repeat(100_000)}${"]".repeat(100_000)}}`);
    expect(codes(deep)).toEqual(["settings-too-large"]);
  });

  it("never throws on any JSON value", () => {
    const key = fc.constantFrom(
      "permissions",
      "allow",
      "deny",
      "hooks",
      "Stop",
      "env",
      "model",
      "sandbox",
      "defaultMode",
      "x",
    );
    const { tree } = fc.letrec<{ tree: unknown }>((tie) => ({
      tree: fc.oneof(
        { maxDepth: 5 },
        fc.oneof(fc.string(), fc.integer(), fc.boolean(), fc.constant(null)),
        fc.array(tie("tree"), { maxLength: 3 }),
        fc.dictionary(key, tie("tree"), { maxKeys: 4 }),
      ),
    }));
    fc.assert(
      fc.property(fc.oneof(tree, fc.jsonValue()), (value) => read(value).settings.extra instanceof Map),
    );
  });
});
