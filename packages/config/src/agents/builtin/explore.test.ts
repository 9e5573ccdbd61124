import { describe, expect, it } from "vitest";
import { explore } from "./explore.ts";

describe("Explore [BLT-2]", () => {
  it("runs on haiku, without the tools that change, spawn, plan or ask", () => {
    expect(explore).toMatchObject({ name: "Explore", model: "haiku", omitClaudeMd: true });
    expect(explore.tools).toBeUndefined();
    expect(explore.disallowedTools).toEqual([
      "Write",
      "Edit",
      "NotebookEdit",
      "Task",
      "EnterPlanMode",
      "ExitPlanMode",
      "AskUserQuestion",
      "KillShell",
    ]);
  });

  it("is reminded on every turn that it must not change files", () => {
    expect(explore.criticalSystemReminder_EXPERIMENTAL).toContain("must not change files");
  });

  it.each(["quick", "medium", "very thorough"])("knows the level %s from the task and offers it", (level) => {
    expect(explore.prompt).toMatch(new RegExp(`^- ${level}: `, "m"));
    expect(explore.description).toContain(level);
  });

  it("works at medium when the task names no level", () => {
    expect(explore.prompt).toContain("without one, work at medium");
  });
});
