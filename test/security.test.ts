import { readFileSync } from "node:fs";
import { afterAll, describe, expect, test } from "vitest";
import { evaluateCase, judgedSurfaces } from "./security/adapter.ts";
import { knownSurfaces } from "./security/case-schema.ts";
import { withFixture } from "./security/fixture.ts";
import { endSandbox } from "./security/judge-sandbox.ts";
import { ownCases } from "./security/own-cases.ts";
import { countResults, readCases, runCases } from "./security/run-cases.ts";
import type { SecurityCase } from "./security/security-case.ts";

const plain: SecurityCase = {
  id: "plain",
  category: "own",
  title: "a harmless call",
  why: "It only reads.",
  kind: "benign",
  profile: "core",
  surface: "tool_call",
  rules: { allow: [], ask: [], deny: [] },
  mode: "default",
  tool: "Read",
  input: { file_path: "{{P}}/src/a.ts" },
  expect: "allow",
  accept: ["allow"],
};

const cases = readCases(readFileSync("test/fixtures/security/cases.json", "utf8"));

/** Surfaces that need a machine on which the sandbox works. */
const sandboxSurfaces = ["sandbox_fs", "sandbox_net"];

afterAll(() => endSandbox());

test.each([
  ["redirect", { redirect_to: "http://169.254.169.254/" }, "ask"],
  ["redirect", { location: "http://127.0.0.1/" }, "ask"],
  ["resolve", { addresses: ["10.0.0.1"] }, "ask"],
])("a fact may be given under another usual name [PRM-11]: %s %j", async (surface, context, expected) => {
  const testCase = {
    ...plain,
    surface,
    context,
    tool: "WebFetch",
    input: { url: "https://example.com/", prompt: "Read." },
    rules: { allow: ["WebFetch"], ask: [], deny: [] },
  };
  expect(await withFixture(testCase, (roots) => evaluateCase(testCase, roots))).toBe(expected);
});

describe("[PRM-1, PRM-8, PRM-9, PRM-10, PRM-11] known ways around permissions are closed, and harmless calls go through", () => {
  const categories = [...new Set(cases.map(({ category }) => category))];

  test.each(categories)("%s", { timeout: 60_000 }, async (category) => {
    const failures: string[] = [];
    for (const testCase of cases.filter((each) => each.category === category)) {
      const verdict = await withFixture(testCase, (roots) => evaluateCase(testCase, roots));
      const isSkipped = typeof verdict === "object";
      if (isSkipped ? !sandboxSurfaces.includes(testCase.surface) : !testCase.accept.includes(verdict))
        failures.push(
          `${testCase.id} ${testCase.title}: ${JSON.stringify(verdict)}, not ${testCase.accept.join(" or ")}`,
        );
    }
    expect(failures).toEqual([]);
  });

  test.each(ownCases)("$surface: $title", async (testCase) => {
    expect(await withFixture(testCase, (roots) => evaluateCase(testCase, roots))).toBe(testCase.expect);
  });

  test("every surface that the schema knows has a judge, and the other way round", () => {
    expect([...judgedSurfaces].sort()).toEqual([...knownSurfaces].sort());
  });

  test("a case without the fields that its surface needs fails, and is not guessed", async () => {
    for (const surface of [
      "include",
      "hook_exec",
      "startup_exec",
      "worktree",
      "toctou",
      "render",
      "cli_args",
    ]) {
      const bare = { ...plain, surface, tool: null, input: null, context: {} };
      await expect(
        withFixture(bare, (roots) => evaluateCase(bare, roots)),
        surface,
      ).rejects.toThrow(/^the case/);
    }
  });

  test.each<[string, unknown]>([
    ["colour is a field that this adapter does not recognize", { colour: "red" }],
    ['surface is "telepathy", which this adapter does not recognize', { surface: "telepathy" }],
    ['mode is "yolo", a value that this adapter does not recognize', { mode: "yolo" }],
    ['platform is "beos"', { platform: "beos" }],
    ["rules.maybe is a field", { rules: { allow: [], ask: [], deny: [], maybe: [] } }],
    ['scopes[0].scope is "galaxy"', { scopes: [{ scope: "galaxy", permissions: {} }] }],
    ["scopes[0].when is a field", { scopes: [{ scope: "user", permissions: {}, when: "later" }] }],
    ["scopes[0].permissions.alow is a setting", { scopes: [{ scope: "user", permissions: { alow: [] } }] }],
    ['fs[0].op is "teleport"', { fs: [{ op: "teleport", path: "x" }] }],
    ["fs[0].owner is a field", { fs: [{ op: "file", path: "x", content: "", owner: 5 }] }],
    ["context.moon is a field", { context: { moon: "full" } }],
    ["context.mcp.colour is a field", { context: { mcp: { server: "a", tool: "b", colour: 1 } } }],
    ["context.preToolUseHook.mood is a field", { context: { preToolUseHook: { mood: "good" } } }],
    ["context.preToolUseHook[1].mood is a field", { context: { preToolUseHook: [{}, { mood: "good" }] } }],
    ["context.sandbox.deep is a field", { context: { sandbox: { deep: true } } }],
    ["context.managed.futureKey is a setting", { context: { managed: { futureKey: true } } }],
    [
      "context.agent.tentacles is a field",
      { surface: "subagent_tool_call", context: { agent: { tentacles: 8 } } },
    ],
    ['context.scope is "moon"', { surface: "hook_exec", context: { scope: "moon", command: "x" } }],
  ])("%s", async (words, change) => {
    const odd = { ...plain, ...(change as object) };
    const { results } = await runCases([odd]);
    expect(results).toMatchObject([{ got: "error", passed: false }]);
    expect(results[0]?.error).toContain(`the case is not honoured: ${words}`);
  });

  test("the report shows a false allow from an answer that is only too strict", () => {
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
