import { describe, expect, test } from "vitest";
import { readSettings } from "./settings.ts";
import { mergeSettings, type SettingsLayer } from "./settings-layer.ts";

const layer = (scope: "user" | "project", value: unknown): SettingsLayer => ({
  settings: readSettings(value, { scope }).settings,
  source: { scope, file: `/${scope}.json`, anchor: "/" },
});
const layers = [
  layer("user", { verify: { fixer: "npm test", main: ["make"] } }),
  layer("project", { verify: { fixer: { run: "npm run lint" } } }),
];

describe("[VRF-1] checks of several settings files", () => {
  test("add up: a later file takes none away", () => {
    expect(mergeSettings(layers, { trusted: true }).plain.verify).toEqual({
      fixer: ["npm test", { run: "npm run lint" }],
      main: ["make"],
    });
  });

  test("do not count where they are in a folder that is not trusted", () => {
    const { plain } = mergeSettings(layers, { trusted: false });
    expect(plain.verify).toEqual({ fixer: "npm test", main: ["make"] });
  });
});

describe("[VRF-1] checks of a settings file that cannot be read are an error at their place, and leave nothing unchecked", () => {
  test.each<[unknown, string[], string]>([
    [{ fixer: { run: "npm test", tmeout: 3 } }, ["verify", "fixer"], 'the unknown key "tmeout"'],
    [{ main: ["make", ""] }, ["verify", "main"], "a command is empty"],
    [{ fixer: [], main: "make" }, ["verify", "fixer"], "it names no command"],
    [{ fixer: { run: "make", timeout: 6000 } }, ["verify", "fixer"], "`timeout` is not a number of seconds"],
    ["npm test", ["verify"], "an object of checks by agent type"],
    [[], ["verify"], "an object of checks by agent type"],
  ])("%j", (verify, path, words) => {
    const { settings, issues } = readSettings({ verify }, { scope: "user" });
    expect(settings.brokenRestrictions).toEqual(["verify"]);
    expect(issues).toMatchObject([
      { severity: "error", code: "wrong-setting-value", path, message: expect.stringContaining(words) },
    ]);
  });

  test.each<unknown>([{}, { fixer: null }, { main: { run: "make", retries: 0 } }])("%j is none", (verify) => {
    expect(readSettings({ verify }, { scope: "user" }).issues).toEqual([]);
  });
});
