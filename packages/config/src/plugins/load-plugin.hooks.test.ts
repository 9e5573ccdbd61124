import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { loadPlugin, loadPluginHooks } from "./load-plugin.ts";

async function load(files: Readonly<Record<string, unknown>>, links: Readonly<Record<string, string>> = {}) {
  const base = await realpath(await mkdtemp(join(tmpdir(), "plugin-hooks-")));
  onTestFinished(() => rm(base, { recursive: true, force: true }));
  const root = join(base, "tidy");
  for (const [path, value] of Object.entries(files)) {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), typeof value === "string" ? value : JSON.stringify(value));
  }
  for (const [path, target] of Object.entries(links)) {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await symlink(join(root, target), join(root, path));
  }
  const { plugin } = await loadPlugin({ root, origin: "directory" }, {});
  const { hooks, diagnostics } = await loadPluginHooks([plugin], "/data");
  return {
    root,
    plugin,
    hooks,
    commands: hooks.map(({ hook }) => hook.handler.command),
    codes: diagnostics.map(({ code }) => code),
  };
}

const events = (command: string) => ({ Stop: [{ hooks: [{ type: "command", command }] }] });

describe("[HKS-2] the hooks of a plugin", () => {
  test("are in the manifest, in files it names, and in the usual file", async () => {
    const manifest = { name: "tidy", hooks: [events("inline"), "./more.json"] };
    const loaded = await load({
      ".claude-plugin/plugin.json": manifest,
      "more.json": { hooks: events("named") },
      "hooks/hooks.json": { description: "Tidies up.", hooks: events("usual") },
    });
    expect(loaded.commands).toEqual(["inline", "named", "usual"]);
    expect(loaded.codes).toEqual([]);
    expect(loaded.hooks[2]?.origin).toEqual({
      type: "plugin",
      name: "tidy",
      data: "/data/tidy",
      root: loaded.root,
      file: join(loaded.root, "hooks/hooks.json"),
    });
  });

  test("count once when the manifest names the usual file", async () => {
    const manifest = { name: "tidy", hooks: "./hooks/hooks.json" };
    const files = { ".claude-plugin/plugin.json": manifest, "hooks/hooks.json": { hooks: events("usual") } };
    expect((await load(files)).commands).toEqual(["usual"]);
  });

  test("are none where the plugin is disabled", async () => {
    const { plugin } = await load({ "hooks/hooks.json": { hooks: events("usual") } });
    expect((await loadPluginHooks([{ ...plugin, enabled: false }], "/data")).hooks).toEqual([]);
  });

  test("that cannot be read are a problem, and so is a file that is not there or elsewhere", async () => {
    const broken = await load({ "hooks/hooks.json": '{"hooks": ' });
    expect([broken.commands, broken.codes]).toEqual([[], ["invalid-json"]]);
    const absent = await load({ ".claude-plugin/plugin.json": { name: "tidy", hooks: "./gone.json" } });
    expect(absent.codes).toEqual(["plugin-path-missing"]);
    const linked = await load(
      { "../other.json": { hooks: events("elsewhere") }, "agents/a.md": "" },
      {
        "hooks/hooks.json": "../other.json",
      },
    );
    expect([linked.commands, linked.codes]).toEqual([[], ["link-outside-plugin"]]);
  });
});
