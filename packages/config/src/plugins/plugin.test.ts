import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { readPluginManifest } from "./plugin.ts";

function read(value: unknown) {
  const { manifest, issues } = readPluginManifest(value);
  return { manifest, codes: issues.map(({ code, path }) => `${path.join(".")} ${code}`) };
}

describe("readPluginManifest [SCP-2]", () => {
  test("paths are kept as written and as a list", () => {
    const value = {
      name: "pipeline",
      version: "0.2.3",
      agents: ["./.claude/agents/planner.md", "./agents/"],
      commands: "./.claude/commands/",
      skills: null,
      hooks: "./hooks/hooks.json",
      mcpServers: "./.mcp.json",
      userConfig: { "api-token": { type: "string" }, limit: {} },
    };
    const { manifest, codes } = read(value);
    expect(codes).toEqual([]);
    expect(manifest).toMatchObject({
      name: "pipeline",
      version: "0.2.3",
      agents: { written: value.agents, paths: [".claude/agents/planner.md", "agents"] },
      commands: { written: "./.claude/commands/", paths: [".claude/commands"] },
      hooks: { written: "./hooks/hooks.json", paths: ["hooks/hooks.json"], inline: [] },
      mcpServers: { written: "./.mcp.json", paths: [".mcp.json"] },
    });
    expect(manifest?.skills).toBeUndefined();
    expect([...(manifest?.userConfig?.keys() ?? [])]).toEqual(["api-token", "limit"]);
  });

  test("reads hooks that each name their event", () => {
    const hooks = [{ event: "Stop", command: "x" }];
    const { manifest, codes } = read({ name: "a", hooks });
    expect(manifest?.hooks?.inline).toMatchObject([{ event: "Stop", handler: { command: "x" } }]);
    expect(codes).toEqual(["hooks.0.0 list-shaped-hooks"]);
  });

  test("hooks in place are read, alone, wrapped in a `hooks` key, or in a list beside paths", () => {
    const events = { Stop: [{ hooks: [{ type: "command", command: "true" }] }] };
    const rule = { event: "Stop", handler: { type: "command", command: "true" } };
    expect(read({ name: "a", hooks: events }).manifest?.hooks?.inline).toMatchObject([rule]);
    expect(
      read({ name: "a", hooks: { description: "x", hooks: events } }).manifest?.hooks?.inline,
    ).toMatchObject([rule]);
    expect(read({ name: "a", hooks: ["./h.json", events] }).manifest?.hooks).toMatchObject({
      paths: ["h.json"],
      inline: [rule],
    });
  });

  test.each([
    [{ docs: { command: "docs" } }, { command: "docs" }],
    [{ mcpServers: { docs: { command: "docs" } } }, { command: "docs" }],
    [["./.mcp.json", { name: "docs", command: "docs" }], { name: "docs", command: "docs" }],
  ])("MCP servers in place are kept by name %j", (mcpServers, config) => {
    const inline = read({ name: "a", mcpServers }).manifest?.mcpServers?.inline;
    expect([...(inline ?? [])]).toEqual([["docs", config]]);
  });

  test("a map of commands names a source for each", () => {
    const agents = [{ name: "x", file: "./agents/x.md" }];
    expect(read({ name: "a", agents }).manifest?.agents?.paths).toEqual(["agents/x.md"]);
    const commands = { about: { source: "./README.md" }, inline: { content: "text" } };
    expect(read({ name: "a", commands })).toMatchObject({
      manifest: { commands: { paths: ["README.md"] } },
      codes: [],
    });
  });

  test("a path that leaves the plugin is refused and the others stay", () => {
    const { manifest, codes } = read({
      name: "a",
      agents: ["../other", "/etc", "./mine.md"],
      hooks: "../h.json",
    });
    expect(manifest?.agents?.paths).toEqual(["mine.md"]);
    expect(manifest?.hooks?.paths).toEqual([]);
    expect(codes).toEqual([
      "agents.0 path-outside-plugin",
      "agents.1 path-outside-plugin",
      "hooks path-outside-plugin",
    ]);
  });

  test("values of another type are left out and named", () => {
    const { manifest, codes } = read({
      name: 5,
      version: ["1"],
      agents: 7,
      hooks: true,
      userConfig: [],
      defaultEnabled: "no",
    });
    expect(manifest?.name).toBe("5");
    expect(codes).toEqual([
      "version wrong-type",
      "defaultEnabled wrong-type",
      "userConfig wrong-type",
      "agents wrong-type",
      "hooks wrong-type",
    ]);
  });

  test.each([
    [{}, " plugin-name-missing"],
    [{ name: "" }, " plugin-name-missing"],
    [{ name: "../x" }, "name plugin-name-unsafe"],
  ])("a name that cannot serve is reported %j", (value, code) => {
    expect(read(value).codes).toEqual([code]);
  });

  test.each([null, 5, "x", []])("%j is no manifest", (value) => {
    expect(read(value)).toMatchObject({ manifest: undefined, codes: [" wrong-type"] });
  });

  test("any JSON is read without a throw", () => {
    const keys = fc.constantFrom(
      "name",
      "agents",
      "commands",
      "skills",
      "hooks",
      "mcpServers",
      "userConfig",
      "__proto__",
    );
    fc.assert(
      fc.property(fc.oneof(fc.jsonValue(), fc.dictionary(keys, fc.jsonValue())), (value) => {
        expect(Array.isArray(readPluginManifest(value).issues)).toBe(true);
      }),
    );
  });
});
