import { describe, expect, it } from "vitest";
import { createPaths } from "./paths.ts";

describe("the configuration is never below the working folder by accident [PRM-11]", () => {
  it.each([".claude", ".", "x/y"])("a relative CLAUDE_CONFIG_DIR %j is refused", (CLAUDE_CONFIG_DIR) => {
    const input = { home: "/home/ada", cwd: "/srv/app", platform: "linux" };
    expect(() => createPaths({ ...input, environment: { CLAUDE_CONFIG_DIR } })).toThrow(
      expect.objectContaining({ code: "invalid-config-directory" }),
    );
  });
});
