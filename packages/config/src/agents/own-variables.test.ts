import { describe, expect, test } from "vitest";
import { readVariables, refuseVariable } from "./own-variables.ts";

describe("[AGT-1, DEF-2] variables of an agent", () => {
  test.each(["NODE_ENV", "CI", "LC_ALL", "PORT"])("%s may be set by a model too", (name) => {
    expect([refuseVariable(name, "model"), refuseVariable(name, "person")]).toEqual([undefined, undefined]);
  });

  test.each(["DATABASE_URL", "MY_FLAG"])("%s is for people", (name) => {
    expect(refuseVariable(name, "person")).toBeUndefined();
    expect(refuseVariable(name, "model")).toContain(name);
  });

  test.each([
    "PATH",
    "Path",
    "HOME",
    "LD_PRELOAD",
    "ld_preload",
    "NODE_OPTIONS",
    "BASH_ENV",
    "GIT_SSH_COMMAND",
    "PYTHONPATH",
    "https_proxy",
    "MAVEN_OPTS",
    "PYTEST_ADDOPTS",
    "DOTNET_STARTUP_HOOKS",
    "dotnet_startup_hooks",
    "CFLAGS",
    "OPENSSL_MODULES",
    "JULIA_LOAD_PATH",
    "R_PROFILE_USER",
    "QT_PLUGIN_PATH",
    "HGRCPATH",
    "VIMINIT",
    "ANSIBLE_CALLBACK_PLUGINS",
    "TF_CLI_ARGS_plan",
    "CLAUDE_CONFIG_DIR",
    "TMPDIR",
    "BASH_FUNC_ls%%",
    "ANTHROPIC_API_KEY",
    "OPENAI_API_KEY",
    "openai_api_key",
    "",
    "A=B",
    "__proto__ ",
  ])("%j is no one's", (name) => {
    expect(refuseVariable(name, "person")).toBeDefined();
    expect(refuseVariable(name, "model")).toBeDefined();
  });

  test("values are texts, numbers and flags; anything else makes the whole unreadable", () => {
    expect(readVariables({ A: "x", B: 1, C: true })).toEqual({
      type: "variables",
      variables: { A: "x", B: "1", C: "true" },
    });
    expect(readVariables(JSON.parse('{"__proto__": "x", "constructor": "y"}'))).toMatchObject({
      type: "variables",
    });
    for (const value of [null, [], "A=1", { A: null }, { A: {} }, { A: "x\0y" }])
      expect(readVariables(value).type).toBe("unreadable");
  });
});
