import { describe, expect, it } from "vitest";
import { buildSystemPrompt, type EnvironmentFacts, mainPrompt } from "./build-system-prompt.ts";

const environment: EnvironmentFacts = {
  directory: "/p",
  additionalDirectories: [],
  isRepository: true,
  platform: "linux",
  systemVersion: "Linux 6",
  date: "2026-01-05",
};

describe("[SPN-3] the system prompt", () => {
  it("has its parts in a fixed order, what changes most at the end", () => {
    const parts = buildSystemPrompt({
      base: "Base.",
      appended: "Appended.",
      skills: "Skills.",
      memory: "Memory.",
      instructions: "Instructions.",
      environment,
      git: { branch: "main" },
      reminder: "Reminder.",
    });
    expect(parts.map((part) => part.split("\n")[0])).toEqual([
      "Base.",
      "Appended.",
      "Skills.",
      "Instructions.",
      "Memory.",
      "# Environment",
      "# Keep in mind on every turn",
    ]);
    expect(parts[5]).toContain("Working directory: /p");
    expect(parts[5]).toContain("Branch: main");
    expect(parts[6]).toContain("Reminder.");
  });

  it("[MDL-7] is the same to the byte for the same facts, and shares its beginning with other days and branches", () => {
    const of = (date: string, branch: string) =>
      buildSystemPrompt({
        base: mainPrompt,
        instructions: "I.",
        environment: { ...environment, date },
        git: { branch },
      });
    expect(of("2026-01-05", "main")).toEqual(of("2026-01-05", "main"));
    expect(of("2026-01-05", "main").slice(0, 2)).toEqual(of("2027-01-01", "side").slice(0, 2));
  });

  it("has no empty part, which providers refuse", () => {
    expect(buildSystemPrompt({ base: "", appended: " \n", skills: "", memory: "", reminder: " " })).toEqual(
      [],
    );
    expect(buildSystemPrompt({ base: "Only." })).toEqual(["Only."]);
  });
});

describe("the main prompt", () => {
  it("is short and does not shout", () => {
    const lines = mainPrompt.split("\n");
    expect(lines.length).toBeGreaterThanOrEqual(40);
    expect(lines.length).toBeLessThanOrEqual(60);
    expect(mainPrompt).not.toMatch(/\b(?:IMPORTANT|CRITICAL|NEVER|ALWAYS|MUST)\b|!!/);
  });

  it("names no tool, model or product, so that it suits any model and any set of tools", () => {
    expect(mainPrompt).not.toMatch(
      /\b(?:Bash|Grep|Glob|TodoWrite|WebFetch|Claude|GPT|Gemini|Anthropic|OpenAI)\b/,
    );
  });

  it("says that what is read is data and that a refusal is not worked around", () => {
    expect(mainPrompt).toMatch(/\bis data\b/);
    expect(mainPrompt).toMatch(/refused call is a decision/);
  });
});
