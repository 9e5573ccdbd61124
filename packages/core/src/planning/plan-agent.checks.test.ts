import { defineAgent } from "@retinue/config/agents/define-agent.ts";
import { describe, expect, test } from "vitest";
import { planChecks } from "./plan-agent.ts";

const inFile = {
  ...defineAgent({ name: "fixer", description: "Fixes. Use it often. Not always.", prompt: "Fix." }),
  verify: { checks: [{ run: "npm test" }], retries: 1 },
  source: { scope: "project", file: "/p/.claude/agents/fixer.md" },
} as const;

describe("[VRF-1] which checks an agent has", () => {
  test("those of call, settings and definition together, each once", () => {
    const planned = planChecks(
      { origin: "program", verify: ["make", "npm test"] },
      {
        definition: inFile,
        trusted: true,
        verify: { fixer: { run: "npm run lint", timeout: 5 }, other: "x" },
      },
    );
    expect(planned).toEqual({
      type: "planned",
      checks: {
        retries: 1,
        checks: [
          { run: "npm test", from: "the definition" },
          { run: "npm run lint", timeoutSeconds: 5, from: "the settings" },
          { run: "make", from: "the call" },
        ],
      },
    });
  });

  test("those of a folder that is not trusted are there, and do not run", () => {
    const planned = planChecks({ origin: "program" }, { definition: inFile, trusted: false });
    expect(planned).toMatchObject({
      checks: { checks: [{ run: "npm test", refused: expect.stringContaining("not trusted") }] },
    });
  });

  test("one that a model names is marked, unless it is named elsewhere too", () => {
    const request = { origin: "model", verify: ["make", "npm test"] } as const;
    expect(planChecks(request, { definition: inFile, trusted: true })).toMatchObject({
      checks: { checks: [{ run: "npm test" }, { run: "make", ofModel: true }] },
    });
    expect(planChecks(request, { definition: inFile, trusted: false })).toMatchObject({
      checks: {
        checks: [
          { run: "npm test", ofModel: true },
          { run: "make", ofModel: true },
        ],
      },
    });
  });

  test("a resumed child keeps those of its earlier call, with the rights of that call", () => {
    const keptChecks = [{ run: "make", from: "the call", ofModel: true }] as const;
    expect(
      planChecks({ origin: "program", keptChecks }, { definition: inFile, trusted: true }),
    ).toMatchObject({
      checks: { checks: [{ run: "npm test" }, { run: "make", ofModel: true }] },
    });
  });

  test("what cannot be read starts nothing", () => {
    const facts = { definition: inFile, trusted: true };
    expect(planChecks({ origin: "model", verify: [] }, facts)).toEqual({
      type: "refused",
      reason: "`verify` of the call cannot be read: it names no command",
    });
    expect(planChecks({ origin: "model" }, { ...facts, verify: { fixer: 3 } })).toMatchObject({
      type: "refused",
      reason: expect.stringContaining("`verify` of the settings"),
    });
  });

  test("the main agent has those that settings name as main, and none by default", () => {
    expect(planChecks({ origin: "program" }, { trusted: true, verify: { main: "make" } })).toMatchObject({
      checks: { checks: [{ run: "make", from: "the settings" }] },
    });
    expect(planChecks({ origin: "program" }, { trusted: true, verify: { constructor: "make" } })).toEqual({
      type: "planned",
      checks: undefined,
    });
  });
});
