import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { readMarketplace } from "./marketplace.ts";

describe("readMarketplace [SCP-2]", () => {
  test("plugins are read with their sources as written", () => {
    const { marketplace, issues } = readMarketplace({
      name: "shop",
      metadata: { pluginRoot: "./plugins" },
      plugins: [
        { name: "git", source: "./git" },
        { name: "bare", source: "bare", strict: false, agents: ["./a.md"] },
        { name: "far", source: { source: "git-subdir", url: "https://example.com/x.git", path: "x" } },
        { name: "url", source: "https://example.com/x.git" },
      ],
    });
    expect(issues).toEqual([]);
    expect(marketplace).toMatchObject({ name: "shop", pluginRoot: "./plugins" });
    expect(marketplace?.plugins).toMatchObject([
      { name: "git", source: "./git", places: ["git", "plugins/git"] },
      {
        name: "bare",
        source: "bare",
        places: ["plugins/bare", "bare"],
        strict: false,
        manifest: { agents: { paths: ["a.md"] } },
      },
      { name: "far", source: "git-subdir", places: [] },
      { name: "url", source: "https://example.com/x.git", places: [] },
    ]);
  });

  test("an entry that cannot be used is reported and does not hide the others", () => {
    const { marketplace, issues } = readMarketplace({
      name: "shop",
      plugins: [
        "x",
        { source: "./a" },
        { name: "b", source: "../out" },
        { name: "c", source: 4, strict: "yes" },
        { name: "d", source: "./d" },
      ],
    });
    expect(marketplace?.plugins.map(({ name, places }) => [name, places])).toEqual([
      [undefined, ["a"]],
      ["b", []],
      ["c", []],
      ["d", ["d"]],
    ]);
    expect(issues.map(({ path, code }) => `${path.join(".")} ${code}`)).toEqual([
      "plugins.0 wrong-type",
      "plugins.1.name wrong-type",
      "plugins.2.source path-outside-marketplace",
      "plugins.3.strict wrong-type",
      "plugins.3.source wrong-type",
    ]);
  });

  test("a plugin root that leaves the marketplace is not used", () => {
    const { marketplace } = readMarketplace({
      metadata: { pluginRoot: "../.." },
      plugins: [{ name: "a", source: "a" }],
    });
    expect(marketplace?.plugins[0]?.places).toEqual(["a"]);
  });

  test("any JSON is read without a throw", () => {
    const entry = fc.dictionary(
      fc.constantFrom("name", "source", "strict", "agents", "__proto__"),
      fc.jsonValue(),
    );
    const value = fc.record({ name: fc.jsonValue(), metadata: fc.jsonValue(), plugins: fc.array(entry) });
    fc.assert(
      fc.property(fc.oneof(fc.jsonValue(), value), (json) => {
        expect(Array.isArray(readMarketplace(json).issues)).toBe(true);
      }),
    );
  });
});
