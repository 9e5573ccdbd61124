import { describe, expect, test } from "vitest";
import { commandEnvironment } from "./command-environment.ts";

describe("the environment of a command", () => {
  test.each([
    "BASH_ENV",
    "ENV",
    "PROMPT_COMMAND",
    "SHELLOPTS",
    "IFS",
    "CDPATH",
    "BASH_FUNC_git%%",
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "DYLD_INSERT_LIBRARIES",
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "OPENAI_API_KEY",
    "GEMINI_API_KEY",
    "MISTRAL_API_KEY",
    "TOGETHER_AI_API_KEY",
  ])("has no %s, unless a setting passes it on", (name) => {
    expect(commandEnvironment({ [name]: "x" })).not.toHaveProperty([name]);
    expect(commandEnvironment({ [name]: "x" }, { pass: [name] })).toHaveProperty([name], "x");
  });

  test.each([
    "PATH",
    "HOME",
    "LANG",
    "NODE_OPTIONS",
    "VIRTUAL_ENV",
    "GITHUB_TOKEN",
    "ANTHROPIC_BASE_URL",
    "MY_LD_X",
  ])("keeps %s", (name) => expect(commandEnvironment({ [name]: "x" })).toHaveProperty([name], "x"));

  test("says that an agent is at work and that no one sits at a terminal", () => {
    expect(commandEnvironment({ PAGER: "less", TERM: "xterm", CLAUDECODE: "" })).toMatchObject({
      CLAUDECODE: "1",
      CLAUDE_CODE_CHILD_SESSION: "1",
      PAGER: "cat",
      GIT_PAGER: "cat",
      TERM: "dumb",
    });
  });

  test("holds what the call sets, and drops names without a value", () => {
    const made = commandEnvironment({ EMPTY: undefined }, { set: { CLAUDE_PROJECT_DIR: "/p" } });
    expect(made).toMatchObject({ CLAUDE_PROJECT_DIR: "/p" });
    expect(Object.keys(made)).not.toContain("EMPTY");
  });
});
