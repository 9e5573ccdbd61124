import { switchesWithoutEffect } from "@retinue/config/settings/permission-settings.ts";
import { keysWithoutEffect } from "@retinue/config/settings/plain-settings.ts";
import { readSettings } from "@retinue/config/settings/settings.ts";
import { describe, expect, test } from "vitest";
import { readProjectFile, readProjectFiles } from "./project-files.ts";

describe("settings that are read", () => {
  const sources = readProjectFiles("packages")
    .filter(({ path }) => /^packages\/.*\.ts$/.test(path) && !path.endsWith(".test.ts"))
    .filter(
      ({ path }) =>
        !/(?:settings\/(?:plain-settings|permission-settings)|schemas\/setting-docs)\.ts$/.test(path),
    )
    .map(({ text }) => text);
  const isUsed = (key: string): boolean => sources.some((text) => new RegExp(`\\b${key}\\b`).test(text));
  const readers = (file: string, name: string): readonly string[] => {
    const block = readProjectFile(file).split(`const ${name} = {`)[1]?.split("} as const")[0] ?? "";
    return [...block.matchAll(/^ {2}(\w+):/gm)].flatMap(([, key]) => key ?? []);
  };
  const switches = readers("packages/config/src/settings/permission-settings.ts", "switchReaders");
  const keys = readers("packages/config/src/settings/plain-settings.ts", "plainReaders");
  // `auto` asks like `default`: there is nothing that these two could switch off.
  const trivially = ["disableAutoMode"];

  test("have an effect, or a diagnostic says that they have none", () => {
    expect(keys.length).toBeGreaterThan(40);
    expect(switches.length).toBeGreaterThan(5);
    const silent = [...keys, ...switches].filter(
      (key) =>
        !isUsed(key) &&
        !keysWithoutEffect.has(key) &&
        !switchesWithoutEffect.has(key) &&
        !trivially.includes(key),
    );
    expect(silent).toEqual([]);
  });

  test("and have none are listed in the docs, and noted where they are written", () => {
    const page = readProjectFile("docs/settings.md");
    const listed = page.split("`setting-without-effect`:")[1]?.split("\n`pluginConfigs`")[0] ?? "";
    const names = [...listed.matchAll(/`([\w.]+)`/g)].flatMap(([, name]) => name ?? []);
    const unsupported = [
      ...keysWithoutEffect,
      ...[...switchesWithoutEffect].map((key) => `permissions.${key}`),
    ];
    expect(names.toSorted()).toEqual(unsupported.toSorted());
    const read = (value: unknown) =>
      readSettings(value, { scope: "user" }).issues.map(({ code, path }) => [code, path.join(".")]);
    expect(read({ outputStyle: "terse" })).toEqual([["setting-without-effect", "outputStyle"]]);
    expect(read({ permissions: { workingDirectoriesAsGiven: true } })).toEqual([
      ["setting-without-effect", "permissions.workingDirectoriesAsGiven"],
    ]);
  });
});
