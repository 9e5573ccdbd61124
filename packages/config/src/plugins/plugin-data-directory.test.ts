import { expect, test } from "vitest";
import { pluginDataDirectory } from "./plugin-data-directory.ts";

test.each([
  [{ name: "tidy" }, "/data/tidy"],
  [{ name: "tidy", marketplace: "acme" }, "/data/tidy-acme"],
  [{ name: "../x", marketplace: "a/b" }, "/data/---x-a-b"],
] as const)("[SCP-2] the data of %o has a directory of its own", (plugin, directory) => {
  expect(pluginDataDirectory(plugin, "/data")).toBe(directory);
});
