import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parsePluginId, readInstalledPlugins, readKnownMarketplaces } from "./marketplace.ts";

describe("plugin records [SCP-2]", () => {
  test.each([
    ["a@b", { name: "a", marketplace: "b" }],
    ["@scope/a@b", { name: "@scope/a", marketplace: "b" }],
    ["a", undefined],
    ["@b", undefined],
    ["a@", undefined],
  ])("%j is a plugin id", (text, expected) => {
    expect(parsePluginId(text)).toEqual(expected);
  });

  test("both shapes of the install record are read", () => {
    const id = { name: "a", marketplace: "shop" };
    const record = { installPath: "/x", version: "1.0.0", isLocal: true };
    expect(readInstalledPlugins({ version: 1, plugins: { "a@shop": record } }).installed).toEqual([
      { id, installPath: "/x", version: "1.0.0" },
    ]);
    const scoped = { ...record, scope: "project", projectPath: "/p" };
    expect(readInstalledPlugins({ version: 2, plugins: { "a@shop": [record, scoped] } }).installed).toEqual([
      { id, installPath: "/x", version: "1.0.0" },
      { id, installPath: "/x", version: "1.0.0", projectPath: "/p" },
    ]);
  });

  test("records that cannot be used are reported, the others are read", () => {
    const { installed, issues } = readInstalledPlugins({
      plugins: { nameless: {}, "a@b": "x", "c@d": {} },
    });
    expect(installed).toEqual([{ id: { name: "c", marketplace: "d" } }]);
    expect(issues.map(({ path }) => path)).toEqual([
      ["plugins", "nameless"],
      ["plugins", "a@b", 0],
    ]);
  });

  test("a marketplace is known by where it was put, or by the folder it was added from", () => {
    const known = readKnownMarketplaces({
      a: { source: { source: "github", repo: "x/y" }, installLocation: "/m/a" },
      b: { source: { source: "directory", path: "/srv/b" } },
      c: 4,
    });
    expect([...known]).toEqual([
      ["a", ["/m/a"]],
      ["b", ["/srv/b"]],
      ["c", []],
    ]);
  });

  test("any JSON is read without a throw", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(readInstalledPlugins({ plugins: value }).installed).toBeInstanceOf(Array);
        expect(readInstalledPlugins(value).installed).toBeInstanceOf(Array);
        expect(readKnownMarketplaces(value)).toBeInstanceOf(Map);
      }),
    );
  });
});
