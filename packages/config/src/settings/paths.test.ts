import { describe, expect, it } from "vitest";
import { createPaths, projectDirectoryName } from "./paths.ts";

const base = { home: "/home/ada", cwd: "/srv/app/web", environment: {}, platform: "linux" } as const;

describe("paths", () => {
  it("puts everything of the user under ~/.claude, and the state beside it", () => {
    const paths = createPaths(base);
    expect(paths).toMatchObject({
      configDirectory: "/home/ada/.claude",
      stateFile: "/home/ada/.claude.json",
      projects: "/home/ada/.claude/projects",
      transcripts: "/home/ada/.claude/projects/-srv-app-web",
      teams: "/home/ada/.claude/teams",
      tasks: "/home/ada/.claude/tasks",
      plugins: { root: "/home/ada/.claude/plugins" },
    });
    expect(paths.settings.user).toBe("/home/ada/.claude/settings.json");
  });

  it("moves all of it, the state file too, with CLAUDE_CONFIG_DIR [SCP-2]", () => {
    const paths = createPaths({ ...base, environment: { CLAUDE_CONFIG_DIR: "/data/claude" } });
    expect(paths).toMatchObject({ configDirectory: "/data/claude", stateFile: "/data/claude/.claude.json" });
    expect(paths.agents.user).toBe("/data/claude/agents");
    expect(createPaths({ ...base, environment: { CLAUDE_CONFIG_DIR: "~/c" } }).configDirectory).toBe(
      "/home/ada/c",
    );
    expect(createPaths({ ...base, environment: { CLAUDE_CONFIG_DIR: "" } }).configDirectory).toBe(
      "/home/ada/.claude",
    );
  });

  it("looks for agents from the working folder up to the repository's root, the nearer first [SCP-2]", () => {
    expect(createPaths({ ...base, repositoryRoot: "/srv" }).agents.project).toEqual([
      "/srv/app/web/.claude/agents",
      "/srv/app/.claude/agents",
      "/srv/.claude/agents",
    ]);
    expect(createPaths(base).agents.project).toEqual(["/srv/app/web/.claude/agents"]);
    expect(createPaths({ ...base, repositoryRoot: "/elsewhere" }).agents.project).toHaveLength(1);
  });

  it("reads settings of the repository's root and of the working folder, the nearer later", () => {
    const { settings } = createPaths({ ...base, repositoryRoot: "/srv" });
    expect(settings.project).toEqual(["/srv/.claude/settings.json", "/srv/app/web/.claude/settings.json"]);
    expect(settings.local).toEqual([
      "/srv/.claude/settings.local.json",
      "/srv/app/web/.claude/settings.local.json",
    ]);
  });

  it("does not read the user's own settings as a project's when the folder is the home directory", () => {
    const paths = createPaths({ ...base, cwd: "/home/ada" });
    expect(paths.settings.project).toEqual([]);
    expect(paths.agents.project).toEqual([]);
  });

  it.each([
    ["linux", "/etc/claude-code/managed-settings.json"],
    ["darwin", "/Library/Application Support/ClaudeCode/managed-settings.json"],
    ["win32", "C:\\Program Files\\ClaudeCode\\managed-settings.json"],
  ])("knows where the organisation's settings are on %s", (platform, file) => {
    expect(createPaths({ ...base, platform }).settings.managed).toBe(file);
  });

  it.each([
    ["win32", "~\\conf", "C:\\Users\\ada\\conf"],
    ["win32", "~/conf", "C:\\Users\\ada\\conf"],
    ["win32", "D:\\conf", "D:\\conf"],
  ])("on %s, CLAUDE_CONFIG_DIR %s is %s [PUB-3]", (platform, value, folder) => {
    const place = { cwd: "C:\\work", home: "C:\\Users\\ada", platform };
    const paths = createPaths({ ...place, environment: { CLAUDE_CONFIG_DIR: value } });
    expect(paths.configDirectory).toBe(folder);
  });

  it("keeps agent memory where people have it [MEM-1]", () => {
    expect(createPaths({ ...base, repositoryRoot: "/srv" }).agentMemory).toEqual({
      user: "/home/ada/.claude/agent-memory",
      project: "/srv/.claude/agent-memory",
      local: "/srv/.claude/agent-memory-local",
    });
  });

  it.each(["../../etc", "..", "a/b", "", "a\u0000"])("refuses %j as a project directory name", (name) => {
    const environment = { CLAUDE_CONFIG_DIR: "/c", CLAUDE_CODE_PROJECT_DIR_NAME: name };
    expect(createPaths({ ...base, environment }).transcripts).toBe("/c/projects/-srv-app-web");
  });

  it("takes a given project directory name only together with a configuration directory", () => {
    const environment = { CLAUDE_CODE_PROJECT_DIR_NAME: "shared" };
    expect(createPaths({ ...base, environment }).transcripts).toBe("/home/ada/.claude/projects/-srv-app-web");
    const both = { ...environment, CLAUDE_CONFIG_DIR: "/c" };
    expect(createPaths({ ...base, environment: both }).transcripts).toBe("/c/projects/shared");
  });
});

describe("the name of a project's directory [TRN-1]", () => {
  it.each([
    ["/srv/my.app_v2", "-srv-my-app-v2"],
    ["/srv/app/", "-srv-app"],
    ["/", "-"],
    ["/a/\u{1F600}", "-a---"],
    ["/Ünï", "--n-"],
    ["C:\\Users\\ada", "C--Users-ada"],
  ])("makes %j into %s", (path, name) => {
    expect(projectDirectoryName(path)).toBe(name);
  });

  it("keeps 200 characters and adds a hash only to longer names", () => {
    const exact = `/${"a".repeat(199)}`;
    expect(projectDirectoryName(exact)).toBe(`-${"a".repeat(199)}`);
    const longer = projectDirectoryName(`${exact}b`);
    expect(longer).toMatch(/^-a{199}-[0-9a-z]+$/);
    expect(longer).not.toBe(projectDirectoryName(`${exact}c`));
  });
});
