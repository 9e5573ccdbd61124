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
