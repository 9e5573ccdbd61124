import { expect, test } from "vitest";
import { narrowChecks } from "./within-own-rights.ts";

const plan = {
  verify: {
    checks: [
      { run: "npm test", from: "the definition" },
      { run: "rm -rf x", from: "the call" },
    ],
  },
};
const own = { verify: { checks: [{ run: "npm test", from: "the definition" }] } };

test("checks of a foreign plan run where the same agent has them here, or where programs are accepted [VRF-1]", () => {
  const refused = "it came with a plan, and checks from plans do not run here";
  expect(narrowChecks(plan, own, [])).toEqual({
    verify: {
      checks: [
        { run: "npm test", from: "the definition" },
        { run: "rm -rf x", from: "the call", refused },
      ],
    },
  });
  expect(narrowChecks(plan, undefined, ["rules", "mode", "bypass"]).verify?.checks).toMatchObject([
    { refused },
    { refused },
  ]);
  expect(narrowChecks(plan, undefined, ["programs"])).toEqual(plan);
  expect(narrowChecks({}, own, [])).toEqual({});
});
