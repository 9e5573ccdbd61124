import { describe, expect, it } from "vitest";
import { createPaths, findHome, withHome } from "./paths.ts";

const listed = () => "/home/ada";

describe("the home folder is never below the working folder by accident [PRM-11]", () => {
  it("an absolute HOME counts", () => {
    expect(findHome({ HOME: "/srv/ada" }, listed)).toBe("/srv/ada");
  });

  it.each(["", ".", "..", "rel/x", undefined])("with HOME %j the system's list of users decides", (HOME) => {
    expect(findHome({ HOME }, listed)).toBe("/home/ada");
    expect(withHome({ HOME, A: "1" }, "/home/ada")).toEqual({ HOME: "/home/ada", A: "1" });
  });

  it("where that names none, nothing is started", () => {
    expect(() => findHome({ HOME: "." }, () => "")).toThrow(
      expect.objectContaining({ code: "no-home", message: expect.stringContaining('HOME is "."') }),
    );
  });

  it.each([".claude", ".", "x/y"])("a relative CLAUDE_CONFIG_DIR %j is refused", (CLAUDE_CONFIG_DIR) => {
    const input = { home: "/home/ada", cwd: "/srv/app", platform: "linux" };
    expect(() => createPaths({ ...input, environment: { CLAUDE_CONFIG_DIR } })).toThrow(
      expect.objectContaining({ code: "invalid-config-directory" }),
    );
  });
});
