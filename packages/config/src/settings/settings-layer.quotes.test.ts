import { describe, expect, test } from "vitest";
import { readSettings } from "./settings.ts";
import { mergeSettings, type SettingsLayer } from "./settings-layer.ts";

const layer = (scope: "user" | "project", quotes: unknown): SettingsLayer => ({
  settings: readSettings({ quotes }, { scope }).settings,
  source: { scope, file: `/${scope}.json`, anchor: "/" },
});
const merged = (user: unknown, project: unknown, trusted = false) =>
  mergeSettings([layer("user", user), layer("project", project)], { trusted }).plain.quotes;

describe("[BIL-2] thresholds of several settings files", () => {
  test.each([
    true,
    false,
  ])("the smaller one counts, so that a project can only ask earlier: trusted %s", (trusted) => {
    expect(
      merged({ askAboveUsd: 2, askAboveAgents: 5 }, { askAboveUsd: 100, askAboveAgents: 3 }, trusted),
    ).toEqual({
      askAboveUsd: 2,
      askAboveAgents: 3,
    });
    expect(merged({}, { askAboveUsd: 1 }, trusted)).toEqual({ askAboveUsd: 1 });
    expect(merged({ askAboveAgents: 1 }, {}, trusted)).toEqual({ askAboveAgents: 1 });
  });

  test.each([
    [{ askAboveUsd: "2" }, ["quotes", "askAboveUsd"]],
    [{ askAboveUsd: -1, askAboveAgents: 3 }, ["quotes", "askAboveUsd"]],
    [{ askAboveUsd: Number.NaN }, ["quotes", "askAboveUsd"]],
    [{ askAboveUsd: 1, askAboveAgents: 1.5 }, ["quotes", "askAboveAgents"]],
    [{ askAboveAgent: 3 }, ["quotes", "askAboveAgent"]],
    [2, ["quotes"]],
    [[], ["quotes"]],
  ])("one that cannot be read is an error at its place and not no threshold: %j", (quotes, path) => {
    const { settings, issues } = readSettings({ quotes }, { scope: "user" });
    expect(settings.plain).not.toHaveProperty("quotes");
    expect(issues).toMatchObject([{ severity: "error", code: "wrong-setting-value", path }]);
    expect(settings.brokenRestrictions).toHaveLength(1);
  });
});
