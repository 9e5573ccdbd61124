import { posix } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { isSafeName, readInnerPath } from "./plugin.ts";

describe("readInnerPath", () => {
  test.each([
    ["./agents/", "agents"],
    ["agents", "agents"],
    ["./", "."],
    ["a/../b//c.md", "b/c.md"],
    ["agents\\x.md", "agents/x.md"],
    // biome-ignore lint/suspicious/noTemplateCurlyInString: manifests spell the variable like this
    ["${CLAUDE_PLUGIN_ROOT}/agents", "agents"],
  ])("%j lies inside", (written, path) => {
    expect(readInnerPath(written)).toEqual({ type: "inside", path });
  });

  test.each([
    "..",
    "../x",
    "a/../../x",
    "/etc",
    "~/x",
    "C:\\x",
    "\\\\host\\x",
    "file:///etc",
    "a\0b",
    "",
    " ",
    "..\\x",
  ])("%j is refused", (written) => {
    expect(readInnerPath(written).type).toBe("refused");
  });

  test("no path that is taken leads outside", () => {
    const text = fc.string({ unit: fc.constantFrom("..", ".", "/", "\\", "a", "~", "C:", "\0", " ") });
    fc.assert(
      fc.property(text, (written) => {
        const reading = readInnerPath(written);
        if (reading.type === "refused") return;
        expect(posix.resolve("/opt/plugin", reading.path)).toMatch(/^\/opt\/plugin(?:\/|$)/);
      }),
    );
  });
});

test.each([
  ["reviewer", true],
  ["Bad Name", true],
  ["a@b", true],
  ["..", false],
  [".hidden", false],
  ["-x", false],
  ["a/b", false],
  ["a:b", false],
  ["a\\b", false],
  ["", false],
  ["a\0", false],
])("the name %j can be part of an id: %j", (name, expected) => {
  expect(isSafeName(name)).toBe(expected);
});
