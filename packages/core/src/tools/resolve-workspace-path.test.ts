import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { isInside, pathForRules, resolveWorkspacePath, shownPath } from "./resolve-workspace-path.ts";

const base = { directory: "/project", home: "/home/ada" };

describe("resolving a path", () => {
  test.each([
    ["src/a.ts", "/project/src/a.ts"],
    ["./a", "/project/a"],
    ["../b", "/b"],
    ["/etc/hosts", "/etc/hosts"],
    ["~", "/home/ada"],
    ["~/notes.md", "/home/ada/notes.md"],
    ["~/../eve/x", "/home/eve/x"],
    ["~draft", "/project/~draft"],
    ["a b/ü.ts", "/project/a b/ü.ts"],
  ])("%s means %s", (given, path) => {
    expect(resolveWorkspacePath(given, base)).toEqual({ type: "path", path });
  });

  test.each([
    ["", "empty"],
    ["  ", "empty"],
    ["a\0b", "NUL"],
  ])("%j is refused", (given, reason) => {
    expect(resolveWorkspacePath(given, base)).toMatchObject({
      type: "refused",
      reason: expect.stringContaining(reason),
    });
  });

  test("a home that is not known is not guessed", () => {
    expect(resolveWorkspacePath("~/x", { directory: "/project" }).type).toBe("refused");
    expect(resolveWorkspacePath("~/x", { directory: "/project", home: "relative" }).type).toBe("refused");
  });

  test("a path in an unknown home is never judged as one inside the project", () => {
    expect(isInside(pathForRules("~/x", "/project"), ["/project"])).toBe(false);
    expect(isInside(pathForRules("~/../project/x", "/project"), ["/project/~"])).toBe(false);
    expect(pathForRules("~/x", "/project", "/home/ada")).toBe("/home/ada/x");
  });
});

describe("being inside", () => {
  test.each([
    ["/project", true],
    ["/project/a", true],
    ["/project/..a", true],
    ["/projects/a", false],
    ["/", false],
    ["/other", false],
    ["project/a", false],
    ["~/a", false],
  ])("%s: %s", (path, inside) => {
    expect(isInside(path, ["/project"])).toBe(inside);
  });

  test("one of several directories is enough, none is not", () => {
    expect(isInside("/b/c", ["/a", "/b"])).toBe(true);
    expect(isInside("/b/c", [])).toBe(false);
  });

  test("a path is shown so that it can be given back", () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom("a", "b", "..", "x y"), { minLength: 1 }), (parts) => {
        const resolved = resolveWorkspacePath(parts.join("/"), base);
        if (resolved.type !== "path") throw new Error("refused");
        expect(resolveWorkspacePath(shownPath(resolved.path, base.directory), base)).toEqual(resolved);
      }),
    );
  });
});
