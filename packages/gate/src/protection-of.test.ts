import { describe, expect, test } from "vitest";
import { criticalityOf, protectionOf } from "./protection-of.ts";

describe("[PRM-10] files that steer what runs by itself", () => {
  const places = { workingDirectories: ["/p"] };

  test.each([
    "/p/.git/hooks/pre-commit",
    "/p/sub/.GIT/config",
    "/p/.claude/settings.json",
    "/p/.claude/worktrees",
    "/p/.claude/worktrees/w/.claude/agents/a.md",
    "/p/.mcp.json",
    "/p/.husky/pre-push",
    "/p/.vscode/tasks.json",
    "/p/.npmrc",
    "/p/.cargo/config.toml",
    "/h/.ssh/authorized_keys",
    "/h/.bashrc",
    "/h/.zsh_functions",
    "/h/.config/fish/config.fish",
    "/p/mise.toml",
    "/p/.mise/config.toml",
    "/p/.devcontainer.json",
    "/p/x.code-workspace",
    "/p/.pnp.cjs",
    "/p/.githooks/pre-commit",
    "/p/.cursor/mcp.json",
    "/p/.mvn/jvm.config",
    "/p/gradle/wrapper/gradle-wrapper.properties",
    "/h/.emacs.d/init.el",
    "/h/.config/Code/User/settings.json",
    "/h/.config/environment.d/x.conf",
    "/h/.local/lib/python3.11/site-packages/usercustomize.py",
    "/p/HEAD",
    "/p/refs/heads/main",
    "/p/config",
    "/p/hooks/post-checkout",
    "/p/.githooks/pre-commit",
    "/p/mise.toml",
    "/p/.devcontainer.json",
    "/p/x.code-workspace",
    "/p/.pnp.cjs",
    "/p/.mvn/jvm.config",
    "/p/gradle/wrapper/gradle-wrapper.properties",
    "/p/.cursor/mcp.json",
    "/h/.config/environment.d/x.conf",
    "/h/.local/lib/python3.11/site-packages/usercustomize.py",
  ])("%s is one", (path) => {
    expect(protectionOf(path, places)).toEqual(expect.any(String));
  });

  test.each([
    "/p/.gitignore",
    "/p/.github/workflows/ci.yml",
    "/p/.claude/worktrees/w/src/a.ts",
    "/p/git/hooks.md",
    "/p/config/app.json",
    "/p/hooks/useThing.ts",
    "/p/src/HEAD.ts",
    "/p/profile",
    "/q/HEAD",
  ])("%s is none", (path) => {
    expect(protectionOf(path, places)).toBeUndefined();
  });

  test("on Windows, dots, spaces, streams and short names do not hide one", () => {
    for (const name of [
      ".claude./settings.json",
      ".git /config",
      ".mcp.json::$DATA",
      "CLAUDE~1/settings.json",
    ]) {
      expect(protectionOf(`/p/${name}`, { ...places, platform: "win32" })).toBeDefined();
    }
  });
});

describe("[PRM-10] what is never removed without asking", () => {
  const places = { workingDirectories: ["/w/p"], homes: ["/h/me"] };

  test.each([
    "/",
    "/*",
    "/etc",
    "/usr/*",
    "/h/me",
    "/h/me/*",
    "/h",
    "/w/p",
    "/w",
    "/w/p/*",
    "/w/p/.git",
    "/home/x",
    "/c",
  ])("%s", (path) => {
    expect(criticalityOf(path, places)).toEqual(expect.any(String));
  });

  test.each([
    "/w/p/src",
    "/w/p/src/*",
    "/w/p/*.log",
    "/h/me/x",
    "/w/pp",
    "/tmp/x",
  ])("but %s may be", (path) => {
    expect(criticalityOf(path, places)).toBeUndefined();
  });
});
