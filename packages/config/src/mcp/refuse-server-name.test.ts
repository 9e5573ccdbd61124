import { describe, expect, test } from "vitest";
import { findSameSpelling, refuseServerName } from "./refuse-server-name.ts";

describe("[MCP-1] the name of a server", () => {
  test.each([
    "github",
    "my server",
    "@scope/name",
    "io.github.user/server",
    "_private",
    "地图",
    "constructor",
  ])("can be %s", (name) => {
    expect(refuseServerName(name)).toBeUndefined();
  });

  test.each([
    ["a__b", /separates/],
    ["__proto__", /separates/],
    ["acme_", /at its end/],
    ["../evil", /path/],
    ["a/../b", /path/],
    ["/etc/passwd", /path/],
    ["~/x", /path/],
    ["C:\\x", /path/],
    ["..", /path/],
    ["", /empty/],
    ["  ", /empty/],
    ["a\u001bb", /invisible characters/],
    ["a\u202eb", /invisible characters/],
    ["x".repeat(201), /200/],
  ])("cannot be %j", (name, why) => {
    expect(refuseServerName(name)).toMatch(why);
  });

  test("must not give its tools the names of another's", () => {
    expect(findSameSpelling("my server", ["my_server"])).toBe("my_server");
    expect(findSameSpelling("plugin:a:b", ["plugin_a_b"])).toBe("plugin_a_b");
    expect(findSameSpelling("github", ["github", "gitlab"])).toBeUndefined();
  });
});
