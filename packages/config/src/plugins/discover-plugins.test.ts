import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type DiscoverPluginsOptions, discoverPluginAgents, discoverPlugins } from "./discover-plugins.ts";

let home: string;
let config: string;

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), "retinue-plugins-"));
  config = join(home, "config");
});

afterEach(() => rm(home, { recursive: true, force: true }));

async function put(files: Readonly<Record<string, unknown>>): Promise<void> {
  for (const [path, content] of Object.entries(files)) {
    const file = join(home, path);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, typeof content === "string" ? content : JSON.stringify(content));
  }
}

async function find(options: Partial<DiscoverPluginsOptions> = {}) {
  const { plugins, diagnostics } = await discoverPlugins({ configDirectory: config, ...options });
  return {
    plugins: plugins.map(
      ({ name, origin, enabled, root }) =>
        `${name} ${origin} ${enabled ? "on" : "off"} ${root.slice(home.length + 1)}`,
    ),
    codes: diagnostics.map(({ code }) => code),
    diagnostics,
    found: plugins,
  };
}

describe("discoverPlugins [SCP-2]", () => {
  test("an empty or missing configuration has no plugins and no problems", async () => {
    expect(await find()).toMatchObject({ plugins: [], codes: [] });
  });

  test("plain folders under plugins count when they hold agents or a manifest, reserved ones never", async () => {
    await put({
      "config/plugins/one/agents/a.md": "x",
      "config/plugins/two/.claude-plugin/plugin.json": { name: "second" },
      "config/plugins/neither/readme.md": "x",
      "config/plugins/cache/agents/a.md": "x",
      "config/plugins/marketplaces/agents/a.md": "x",
      "config/plugins/data/agents/a.md": "x",
      "config/plugins/repos/agents/a.md": "x",
    });
    expect((await find()).plugins).toEqual([
      "one plugins-dir on config/plugins/one",
      "second plugins-dir on config/plugins/two",
    ]);
  });

  test("a folder of skills that carries a manifest is a plugin", async () => {
    await put({ "config/skills/kit/.claude-plugin/plugin.json": {}, "config/skills/plain/SKILL.md": "x" });
    expect((await find()).plugins).toEqual(["kit skills-dir on config/skills/kit"]);
  });

  test("--plugin-dir folders come first, and hide an installed plugin of the same name", async () => {
    await put({
      "dev/.claude-plugin/plugin.json": { name: "kit" },
      "config/plugins/kit/agents/a.md": "x",
    });
    const result = await find({ pluginDirectories: [join(home, "dev"), join(home, "missing")] });
    expect(result.plugins).toEqual(["kit directory on dev"]);
    expect(result.codes).toEqual(["plugin-directory-missing", "plugin-shadowed"]);
  });

  test.each([
    ["one record", (path: string) => ({ installPath: path, version: "1.0.0" })],
    ["a list of records", (path: string) => [{ scope: "user", installPath: path, version: "1.0.0" }]],
  ])("installed plugins are found through the install record: %s", async (_shape, record) => {
    await put({
      "elsewhere/kit/agents/a.md": "x",
      "config/plugins/installed_plugins.json": {
        plugins: { "kit@shop": record(join(home, "elsewhere/kit")) },
      },
    });
    const { plugins, found } = await find();
    expect(plugins).toEqual(["kit installed on elsewhere/kit"]);
    expect(found[0]?.marketplace).toBe("shop");
  });

  test("a plugin that settings switch off is listed as disabled", async () => {
    await put({
      "config/plugins/cache/shop/kit/1.0.0/agents/a.md": "x",
      "config/plugins/installed_plugins.json": { plugins: { "kit@shop": [{ version: "1.0.0" }] } },
      "config/plugins/local/agents/a.md": "x",
      "config/plugins/quiet/.claude-plugin/plugin.json": { name: "quiet", defaultEnabled: false },
    });
    expect((await find({ enabledPlugins: { "kit@shop": false, local: false } })).plugins).toEqual([
      "kit installed off config/plugins/cache/shop/kit/1.0.0",
      "local plugins-dir off config/plugins/local",
      "quiet plugins-dir off config/plugins/quiet",
    ]);
  });

  test("the cache serves when the record names no folder that exists: its version, else the newest", async () => {
    await put({
      "config/plugins/cache/shop/kit/1.9.0/agents/a.md": "x",
      "config/plugins/cache/shop/kit/1.10.0/agents/a.md": "x",
      "config/plugins/installed_plugins.json": {
        plugins: { "kit@shop": [{ installPath: "/no/such/folder", version: "1.9.0" }] },
      },
    });
    expect((await find()).plugins).toEqual(["kit installed on config/plugins/cache/shop/kit/1.9.0"]);
    await rm(join(config, "plugins/installed_plugins.json"));
    expect((await find({ enabledPlugins: { "kit@shop": true } })).plugins).toEqual([
      "kit installed on config/plugins/cache/shop/kit/1.10.0",
    ]);
  });

  test("a plugin that is enabled is found in its marketplace, under its plugin root too", async () => {
    await put({
      "config/plugins/marketplaces/shop/.claude-plugin/marketplace.json": {
        name: "shop",
        metadata: { pluginRoot: "./plugins" },
        plugins: [
          { name: "bare", source: "bare" },
          { name: "dotted", source: "./plugins/dotted", strict: false, agents: "./special" },
          { name: "unused", source: "./plugins/unused" },
        ],
      },
      "config/plugins/marketplaces/shop/plugins/bare/agents/a.md": "x",
      "config/plugins/marketplaces/shop/plugins/dotted/special/a.md": "x",
      "config/plugins/marketplaces/shop/plugins/unused/agents/a.md": "x",
    });
    const result = await find({
      enabledPlugins: { "bare@shop": true, "dotted@shop": true, "gone@shop": true },
    });
    expect(result.plugins).toEqual([
      "bare installed on config/plugins/marketplaces/shop/plugins/bare",
      "dotted installed on config/plugins/marketplaces/shop/plugins/dotted",
    ]);
    expect(result.found[1]?.manifest.agents?.paths).toEqual(["special"]);
    expect(result.codes).toEqual(["plugin-not-found"]);
  });

  test("a marketplace is looked for where known_marketplaces.json says", async () => {
    await put({
      "work/shop/.claude-plugin/marketplace.json": {
        name: "shop",
        plugins: [{ name: "kit", source: "./kit" }],
      },
      "work/shop/kit/agents/a.md": "x",
      "config/plugins/known_marketplaces.json": { shop: { installLocation: join(home, "work/shop") } },
    });
    expect((await find({ enabledPlugins: { "kit@shop": true } })).plugins).toEqual([
      "kit installed on work/shop/kit",
    ]);
  });

  test("a plugin installed for one project counts there, and where settings enable it", async () => {
    await put({
      "p/agents/a.md": "x",
      "config/plugins/installed_plugins.json": {
        plugins: { "kit@shop": [{ scope: "project", projectPath: "/srv/a", installPath: join(home, "p") }] },
      },
    });
    expect((await find()).plugins).toEqual([]);
    expect((await find({ projectDirectory: "/srv/b" })).plugins).toEqual([]);
    expect((await find({ projectDirectory: "/srv/a/sub" })).plugins).toHaveLength(1);
    expect((await find({ enabledPlugins: { "kit@shop": true } })).plugins).toHaveLength(1);
  });

  test("names in records cannot lead out of the plugins folder", async () => {
    await put({ "config/outside/agents/a.md": "x", "config/plugins/cache/x": "" });
    const enabledPlugins = { "outside@../..": true, "../../outside@shop": true };
    expect((await find({ enabledPlugins })).plugins).toEqual([]);
  });

  test("broken JSON is a problem with its place, and the plugin keeps its default folders", async () => {
    await put({
      "config/plugins/kit/.claude-plugin/plugin.json": '{\n  "name": "other",,\n}',
      "config/plugins/kit/agents/a.md": "x",
      "config/plugins/installed_plugins.json": "{",
      "config/plugins/known_marketplaces.json": "[",
    });
    const result = await find();
    expect(result.plugins).toEqual(["kit plugins-dir on config/plugins/kit"]);
    expect(result.codes).toEqual(["invalid-json", "invalid-json", "invalid-json"]);
    expect(result.diagnostics[2]).toMatchObject({
      line: 2,
      file: join(config, "plugins/kit/.claude-plugin/plugin.json"),
    });
  });

  test("a manifest that is no regular file is a problem, not a wait without end", async () => {
    await put({ "config/plugins/kit/agents/a.md": "x" });
    await mkdir(join(config, "plugins/kit/.claude-plugin"));
    await symlink("/dev/zero", join(config, "plugins/kit/.claude-plugin/plugin.json"));
    const { plugins, codes } = await find();
    expect(plugins).toEqual(["kit plugins-dir on config/plugins/kit"]);
    expect(codes).toEqual(["unreadable-file"]);
  });

  test("a folder reached in two ways is one plugin", async () => {
    await put({ "config/plugins/kit/agents/a.md": "x" });
    await symlink(join(config, "plugins/kit"), join(home, "link"));
    expect((await find({ pluginDirectories: [join(home, "link")] })).plugins).toEqual([
      "kit directory on link",
    ]);
  });
});

describe("discoverPluginAgents [SCP-2]", () => {
  async function agents() {
    const { found } = await find({ pluginDirectories: [join(home, "kit")] });
    const [plugin] = found;
    if (plugin === undefined) throw new Error("no plugin");
    const { files, diagnostics } = await discoverPluginAgents(plugin);
    return { files: files.map((file) => file.relativeFile), codes: diagnostics.map(({ code }) => code) };
  }

  test("Markdown files are found at any depth, with the way to them", async () => {
    await put({ "kit/agents/b.md": "x", "kit/agents/review/sec.md": "x", "kit/agents/notes.txt": "x" });
    expect(await agents()).toEqual({ files: ["b.md", "review/sec.md"], codes: [] });
  });

  test("the places of the manifest replace the default, files and folders alike", async () => {
    await put({
      "kit/.claude-plugin/plugin.json": {
        name: "kit",
        agents: ["./x/one.md", "./more", "./gone.md", "./x/one.md"],
      },
      "kit/agents/default.md": "x",
      "kit/x/one.md": "x",
      "kit/more/deep/two.md": "x",
    });
    expect(await agents()).toEqual({ files: ["one.md", "deep/two.md"], codes: ["plugin-path-missing"] });
  });

  test("links out of the plugin are not followed, links in a circle end", async () => {
    await put({ "kit/agents/a.md": "x", "secret/s.md": "x" });
    await symlink(join(home, "secret"), join(home, "kit/agents/out"));
    await symlink(join(home, "secret/s.md"), join(home, "kit/agents/s.md"));
    await symlink(join(home, "kit"), join(home, "kit/agents/up"));
    expect(await agents()).toEqual({
      files: ["a.md"],
      codes: ["link-outside-plugin", "link-outside-plugin"],
    });
  });
});
