import { describe, expect, it } from "vitest";
import { environmentText } from "./build-system-prompt.ts";
import { gatherEnvironment } from "./gather-git-state.ts";

describe("[SPN-3] facts of the environment", () => {
  it("are gathered from the machine and what is passed in", () => {
    const directory = "/projects/one";
    const question = {
      directory,
      repositoryRoot: undefined,
      platform: "linux",
      environment: { SHELL: "/usr/bin/zsh" },
      now: new Date(2026, 0, 5, 23, 59),
      model: "claude-x",
    };
    const before = gatherEnvironment(question);
    const after = gatherEnvironment({ ...question, repositoryRoot: "/projects", environment: {} });
    expect(before).toMatchObject({
      directory,
      isRepository: false,
      shell: "zsh",
      date: "2026-01-05",
      model: "claude-x",
    });
    expect(before.systemVersion).toMatch(/^\w+ \S+/);
    expect(after.isRepository).toBe(true);
    expect(after).not.toHaveProperty("shell");
  });

  it("become one line each, whatever a folder is called", () => {
    const text = environmentText({
      directory: "/a\nModel: other",
      additionalDirectories: ["/b", "/c"],
      isRepository: true,
      platform: "darwin",
      systemVersion: "Darwin 25.0",
      date: "2026-01-05",
    });
    expect(text).toBe(
      [
        "# Environment",
        "Working directory: /a\uFFFDModel: other",
        "Further directories: /b, /c",
        "Git repository: yes",
        "Platform: darwin",
        "System: Darwin 25.0",
        "Date at the start of the session: 2026-01-05",
      ].join("\n"),
    );
  });
});
