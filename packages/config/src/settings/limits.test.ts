import { describe, expect, test } from "vitest";
import { readSettings } from "./settings.ts";
import { mergeSettings, type SettingsLayer } from "./settings-layer.ts";

const prototypeKey: unknown = JSON.parse('{"__proto__": 1}');

describe("[LIM-3] limits of a settings file", () => {
  test.each([
    [5, ["limits"], "must be an object"],
    [{ agnets: 5 }, ["limits", "agnets"], "it is not known"],
    [{ agents: 0 }, ["limits", "agents"], "it needs a whole number from 1, but is 0"],
    [{ agents: "many" }, ["limits", "agents"], 'it needs a whole number from 1, but is "many"'],
    [{ overflow: "drop" }, ["limits", "overflow"], 'it needs "refuse" or "queue", but is "drop"'],
    [{ depth: 0 }, ["limits", "depth"], "it needs a whole number from 1 to 10, but is 0"],
    [{ depth: 11 }, ["limits", "depth"], "it needs a whole number from 1 to 10, but is 11"],
    [{ depth: "2" }, ["limits", "depth"], 'it needs a whole number from 1 to 10, but is "2"'],
    [{ nested: 1.5 }, ["limits", "nested"], "it needs a whole number from 1, but is 1.5"],
    [{ agent: 5 }, ["limits", "agent"], "it needs an object, but is 5"],
    [{ agent: { usd: 0 } }, ["limits", "agent", "usd"], "it needs a number above 0, but is 0"],
    [{ agent: { tokens: 1.5 } }, ["limits", "agent", "tokens"], "it needs a whole number from 1, but is 1.5"],
    [{ agent: prototypeKey }, ["limits", "agent", "__proto__"], "it is not a limit"],
    [{ tree: { second: 5 } }, ["limits", "tree", "second"], "it is not a limit; did you mean seconds?"],
    [{ tree: { toolSeconds: 5 } }, ["limits", "tree", "toolSeconds"], "it is not a limit"],
    [{ unknownPrice: "no" }, ["limits", "unknownPrice"], 'it needs "allow" or "refuse", but is "no"'],
    [{ model: 3 }, ["limits", "model"], "it needs an object, but is 3"],
    [
      { model: { firstTokenSeconds: -1 } },
      ["limits", "model", "firstTokenSeconds"],
      "it needs a number above 0",
    ],
    [{ model: { seconds: 1 } }, ["limits", "model", "seconds"], "it is not a key"],
    [prototypeKey, ["limits", "__proto__"], "it is not known"],
  ])("%j is an error with its place and nothing is started with it", (limits, path, words) => {
    const { settings, issues } = readSettings({ limits }, { scope: "user" });
    expect(issues).toMatchObject([
      { severity: "error", code: "wrong-setting-value", path, message: expect.stringContaining(words) },
    ]);
    expect(issues[0]?.advice).toMatch(/^Write\b/);
    expect(settings.plain).not.toHaveProperty("limits");
    expect(settings.brokenRestrictions).toHaveLength(1);
  });

  test("everything that is documented can be written", () => {
    const limits = {
      ...{ agents: 10, overflow: "queue", depth: 2, nested: 20, unknownPrice: "refuse" },
      agent: { seconds: 900, tokens: 2_000_000, usd: 0.5, toolCalls: 200, repeatedCalls: 30 },
      tree: { seconds: 3600, tokens: 20_000_000, usd: 5, toolCalls: 2000 },
      model: { firstTokenSeconds: 300, betweenTokensSeconds: 120 },
    };
    const { settings, issues } = readSettings({ limits }, { scope: "user" });
    expect({ issues, limits: settings.plain.limits }).toEqual({ issues: [], limits });
  });
});

describe("[NST-1, LIM-7] ceilings of several settings files", () => {
  const layer = (scope: "user" | "project", value: object): SettingsLayer => ({
    settings: readSettings(value, { scope }).settings,
    source: { scope, file: `/${scope}.json`, anchor: "/" },
  });
  const merged = (user: object, project: object) =>
    mergeSettings([layer("user", user), layer("project", project)], { trusted: true });

  test("a trusted project makes no tree deeper and lets no more agents be started than the user", () => {
    const { plain, sources } = merged(
      { limits: { depth: 2, nested: 5 } },
      { limits: { depth: 9, nested: 500 } },
    );
    expect(plain.limits).toEqual({ depth: 2, nested: 5 });
    expect(sources.get("limits.depth")?.file).toBe("/user.json");
    expect(merged({ limits: { depth: 4 } }, { limits: { depth: 1 } }).plain.limits).toEqual({ depth: 1 });
  });

  test("nor does it raise what may be spent unattended, or what workflows may take", () => {
    const { plain } = merged(
      { quota: { wait: true, maxUsdUnattended: 1 }, workflows: { maxBudgetUsd: 2, agents: 3 } },
      { quota: { wait: true, maxUsdUnattended: 100 }, workflows: { maxBudgetUsd: 200, agents: 30 } },
    );
    expect(plain.quota).toEqual({ wait: true, maxUsdUnattended: 1 });
    expect(plain.workflows).toEqual({ maxBudgetUsd: 2, agents: 30 });
  });
});
