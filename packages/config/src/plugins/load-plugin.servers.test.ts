import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { loadPlugin, loadPluginServers } from "./load-plugin.ts";

async function load(
  files: Readonly<Record<string, unknown>>,
  options: {
    readonly links?: Readonly<Record<string, string>>;
    readonly pluginConfigs?: Record<string, unknown>;
  } = {},
) {
  const base = await realpath(await mkdtemp(join(tmpdir(), "plugin-servers-")));
  onTestFinished(() => rm(base, { recursive: true, force: true }));
  const root = join(base, "tidy");
  for (const [path, value] of Object.entries(files)) {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(
      join(root, path),
      typeof value === "string" ? value : JSON.stringify(value, undefined, 2),
    );
  }
  for (const [path, target] of Object.entries(options.links ?? {}))
    await symlink(join(root, target), join(root, path));
  const { plugin } = await loadPlugin({ root, origin: "directory" }, {});
  const { pluginConfigs = {} } = options;
  const { entries, diagnostics } = await loadPluginServers([plugin], {
    dataDirectory: join(base, "data"),
    pluginConfigs,
  });
  return { base, root, plugin, entries, diagnostics, names: entries.map(({ config }) => config.name) };
}

describe("[MCP-1, SCP-4] the servers of a plugin", () => {
  test("are in the manifest, in files it names and in the usual file, each under the plugin's name", async () => {
    const { names, diagnostics } = await load({
      ".claude-plugin/plugin.json": { name: "tidy", mcpServers: [{ a: { command: "x" } }, "./more.json"] },
      "more.json": { b: { url: "https://a.example" } },
      ".mcp.json": { mcpServers: { c: { command: "y" } } },
    });
    expect(names).toEqual(["plugin:tidy:a", "plugin:tidy:b", "plugin:tidy:c"]);
    expect(diagnostics).toEqual([]);
  });

  test("know the plugin's folder, the folder for its data, and what the person answered", async () => {
    const { entries, root, base } = await load(
      {
        ".claude-plugin/plugin.json": {
          name: "tidy",
          userConfig: { key: { default: "usual" }, mode: { default: "fast" } },
        },
        ".mcp.json": { mcpServers: { c: { command: "y" } } },
      },
      { pluginConfigs: { tidy: { options: { key: "mine" } } } },
    );
    expect(entries[0]?.variables).toEqual(
      new Map([
        ["CLAUDE_PLUGIN_ROOT", root],
        ["CLAUDE_PLUGIN_DATA", join(base, "data", "tidy")],
        ["user_config.key", "mine"],
        ["user_config.mode", "fast"],
      ]),
    );
    expect(entries[0]?.extraEnv).toMatchObject({ CLAUDE_PLUGIN_ROOT: root });
  });

  test("have problems with places, and none where the plugin is switched off", async () => {
    const files = { ".mcp.json": { mcpServers: { c: {} } } };
    const { diagnostics, plugin, base, root } = await load(files);
    expect(diagnostics).toMatchObject([
      { code: "mcp-server-unusable", file: join(root, ".mcp.json"), line: 3, column: 5 },
    ]);
    const off = await loadPluginServers([{ ...plugin, enabled: false }], { dataDirectory: base });
    expect(off).toEqual({ entries: [], diagnostics: [] });
  });

  test("that are not there, packed, or lie outside are reported and left out", async () => {
    const gone = { name: "tidy", mcpServers: ["./gone.json", "./packed.mcpb"] };
    const { diagnostics } = await load({ ".claude-plugin/plugin.json": gone });
    expect(diagnostics.map(({ code }) => code)).toEqual(["plugin-path-missing", "plugin-bundle-unsupported"]);
    const linked = await load(
      { "../other.json": { mcpServers: { c: { command: "evil" } } }, "agents/a.md": "" },
      { links: { ".mcp.json": "../other.json" } },
    );
    expect([linked.names, linked.diagnostics.map(({ code }) => code)]).toEqual([[], ["link-outside-plugin"]]);
  });
});
