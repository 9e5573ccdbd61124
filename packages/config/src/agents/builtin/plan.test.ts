import { describe, expect, it } from "vitest";
import { explore } from "./explore.ts";
import { plan } from "./plan.ts";

describe("Plan [BLT-3]", () => {
  it("runs on the parent's model with the tools of Explore", () => {
    expect(plan).toMatchObject({ name: "Plan", model: "inherit", omitClaudeMd: true });
    expect(plan.tools).toBeUndefined();
    expect(plan.disallowedTools).toEqual(explore.disallowedTools);
  });

  it("is reminded on every turn that it is read-only", () => {
    expect(plan.criticalSystemReminder_EXPERIMENTAL).toContain("read-only");
  });

  it("hands in steps, tests, risks and the files to read first", () => {
    const requestFinalAnswer = plan.prompt.slice(plan.prompt.indexOf("# Your last message"));
    for (const part of ["Steps in order", "Tests:", "Risks", "files to read first"])
      expect(requestFinalAnswer).toContain(part);
  });
});
