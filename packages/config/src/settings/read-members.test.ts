import { describe, expect, test } from "vitest";
import { readMembers } from "./read-members.ts";
import { readSettings } from "./settings.ts";

const issuesOf = (value: object, scope: "user" | "managed" = "user") =>
  readSettings(value, { scope }).issues.map(({ code, path, advice }) => [code, path.join("."), advice ?? ""]);

describe("[CLI-5] what is inside a setting and has no effect is reported", () => {
  test.each([
    [
      { sandbox: { network: { httpProxyPort: 8080 } } },
      "setting-without-effect",
      "sandbox.network.httpProxyPort",
    ],
    [{ sandbox: { ripgrep: { command: "rg" } } }, "setting-without-effect", "sandbox.ripgrep"],
    [
      { sandbox: { network: { allowedDomain: ["a.test"] } } },
      "setting-without-effect",
      "sandbox.network.allowedDomain",
    ],
    [{ sandbox: { excludedCommands: "docker" } }, "wrong-setting-value", "sandbox.excludedCommands"],
    [{ worktree: { sparsePaths: ["a"] } }, "setting-without-effect", "worktree.sparsePaths"],
    [{ worktree: { baseRef: "main" } }, "wrong-setting-value", "worktree.baseRef"],
    [{ modelOverrides: { m: { price: { input: 1 } } } }, "wrong-setting-value", "modelOverrides.m.price"],
    [
      { modelOverrides: { m: { price: { input: 1, output: "2" } } } },
      "wrong-setting-value",
      "modelOverrides.m.price.output",
    ],
    [{ modelOverrides: { m: 5 } }, "wrong-setting-value", "modelOverrides.m"],
    [{ skillOverrides: { s: "never" } }, "wrong-setting-value", "skillOverrides.s"],
    [{ enabledPlugins: { "a@b": "yes" } }, "wrong-setting-value", "enabledPlugins.a@b"],
    [{ model: "sonnet or opus" }, "wrong-setting-value", "model"],
    [{ fallbackModel: ["haiku", "a b"] }, "wrong-setting-value", "fallbackModel"],
  ])("%j", (value, code, path) => {
    expect(issuesOf(value).map((issue) => issue.slice(0, 2))).toEqual([[code, path]]);
  });

  test("with the name that was meant, or those there are", () => {
    expect(issuesOf({ worktree: { baseReff: "head" } })[0]?.[2]).toBe('Did you mean "baseRef"?');
    expect(issuesOf({ worktree: { depth: 1 } })[0]?.[2]).toContain("Known are baseRef, location");
  });

  test("and only once where the sandbox has an error of its own", () => {
    expect(issuesOf({ sandbox: { failIfUnavailabel: true } }).map(([code]) => code)).toEqual([
      "misplaced-restriction",
    ]);
    expect(issuesOf({ sandbox: { filesystem: { denyRead: 5 } } }).map(([code]) => code)).toEqual([
      "wrong-setting-value",
    ]);
  });

  test("what is right is not mentioned", () => {
    const value = {
      model: "opus",
      fallbackModel: "haiku",
      worktree: { baseRef: "head", location: "../w", symlinkDirectories: ["node_modules"] },
      modelOverrides: {
        a: "deployment",
        "openai/gpt-5": { contextWindow: 400_000, price: { input: 1, output: 2 } },
      },
      skillOverrides: { s: "off" },
      enabledPlugins: { "a@b": true, "c@d": ["1.0"] },
      pluginConfigs: { a: { options: { key: "x" } } },
      sandbox: { enabled: true, filesystem: { allowRead: ["a"] }, network: { allowedDomains: ["a.test"] } },
    };
    expect(issuesOf(value)).toEqual([]);
    expect(readMembers("sandbox", true, false)).toEqual([]);
  });

  test("a key of organisations is named where it is written elsewhere", () => {
    const value = { sandbox: { network: { allowManagedDomainsOnly: true } } };
    expect(issuesOf(value).map(([code]) => code)).toEqual(["managed-only-setting"]);
    expect(issuesOf(value, "managed")).toEqual([]);
  });
});
