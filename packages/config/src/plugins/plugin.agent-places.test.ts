import { describe, expect, test } from "vitest";
import { isWithin, pluginAgentId, pluginAgentPlaces, readPluginManifest } from "./plugin.ts";

function places(value: unknown) {
  return pluginAgentPlaces({ root: "/p", manifest: readPluginManifest(value).manifest ?? {} });
}

test("a plugin's agents lie in `agents` unless the manifest names other places [SCP-2]", () => {
  expect(places({ name: "a" })).toEqual([{ type: "directory", path: "/p/agents" }]);
  expect(places({ name: "a", agents: "./custom/" })).toEqual([{ type: "directory", path: "/p/custom" }]);
  expect(places({ name: "a", agents: ["./x.md", "./more"] })).toEqual([
    { type: "file", path: "/p/x.md" },
    { type: "directory", path: "/p/more" },
  ]);
  expect(places({ name: "a", agents: [] })).toEqual([]);
  expect(places({ name: "a", agents: "../out" })).toEqual([]);
});

describe("pluginAgentId [SCP-4]", () => {
  test.each([
    ["sec.md", "kit:sec"],
    ["./sec.md", "kit:sec"],
    ["review/sec.md", "kit:review:sec"],
    ["review\\deep\\sec.md", "kit:review:deep:sec"],
  ])("%s is known as %s", (relativeFile, expected) => {
    expect(pluginAgentId({ name: "kit" }, relativeFile, "sec")).toBe(expected);
  });
});

test.each([
  ["/a", "/a", true],
  ["/a", "/a/b", true],
  ["/a", "/a/..b", true],
  ["/a", "/ab", false],
  ["/a", "/", false],
])("%s holds %s: %j", (folder, path, expected) => {
  expect(isWithin(folder, path)).toBe(expected);
});
