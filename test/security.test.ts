import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { evaluateCase } from "./security/adapter.ts";
import { withFixture } from "./security/fixture.ts";
import { ownCases } from "./security/own-cases.ts";
import { countResults, readCases } from "./security/run-cases.ts";

const cases = readCases(readFileSync("test/fixtures/security/cases.json", "utf8"));

/** What no code decides yet; a surface that gets built must be taken from here. */
const skippedSurfaces = ["sandbox_fs", "sandbox_net"];

describe("[PRM-1, PRM-8, PRM-9, PRM-10, PRM-11] known ways around permissions are closed, and harmless calls go through", () => {
  const built = cases.filter(({ surface }) => !skippedSurfaces.includes(surface));
  const categories = [...new Set(built.map(({ category }) => category))];

  test.each(categories)("%s", { timeout: 60_000 }, async (category) => {
    const failures: string[] = [];
    for (const testCase of built.filter((each) => each.category === category)) {
      const verdict = await withFixture(testCase, (roots) => evaluateCase(testCase, roots));
      if (typeof verdict === "object" || !testCase.accept.includes(verdict))
        failures.push(
          `${testCase.id} ${testCase.title}: ${JSON.stringify(verdict)}, not ${testCase.accept.join(" or ")}`,
        );
    }
    expect(failures).toEqual([]);
  });

  test.each(ownCases)("$surface: $title", async (testCase) => {
    expect(await withFixture(testCase, (roots) => evaluateCase(testCase, roots))).toBe(testCase.expect);
  });

  test("a case without the fields that its surface needs is skipped, not guessed", async () => {
    for (const surface of new Set(ownCases.map((testCase) => testCase.surface))) {
      const [testCase] = ownCases.filter((each) => each.surface === surface);
      if (testCase === undefined) continue;
      const bare = { ...testCase, tool: null, input: null, context: {} };
      const verdict = await withFixture(bare, (roots) => evaluateCase(bare, roots));
      expect(verdict, surface).toEqual({ skipped: expect.stringMatching(/^the case/) });
    }
  });

  test("each surface that is skipped says why", async () => {
    for (const testCase of cases.filter(({ surface }) => skippedSurfaces.includes(surface))) {
      const roots = { W: "/w", P: "/w/app", H: "/w/home", T: "/w/scratch" };
      expect(await evaluateCase(testCase, roots)).toEqual({ skipped: expect.stringMatching(/\w/) });
    }
  });

  test("the report tells a false allow from an answer that is only too strict", () => {
    const result = (expected: "allow" | "ask" | "deny", got: "allow" | "ask" | "deny") => {
      const [testCase] = cases;
      if (testCase === undefined) throw new Error("the suite has no cases");
      return { testCase: { ...testCase, expect: expected }, got, passed: expected === got };
    };
    const results = [
      result("deny", "allow"),
      result("deny", "ask"),
      result("allow", "ask"),
      result("allow", "allow"),
    ];
    expect(countResults(results)).toEqual({
      passed: 1,
      total: 4,
      falseAllow: 1,
      denyToAsk: 1,
      overBlock: 1,
      benign: 2,
    });
  });
});
