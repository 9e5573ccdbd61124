import { describe, expect, test } from "vitest";
import {
  type CheckRun,
  factsOf,
  type Receipt,
  ranNothing,
  receiptText,
  statusOf,
  withFlaky,
} from "./receipt.ts";

const passed: CheckRun = {
  kind: "command",
  run: "npm test",
  passed: true,
  exitCode: 0,
  durationMs: 5,
  output: "ok",
};
const failed: CheckRun = { ...passed, passed: false, exitCode: 1, output: "1 failed" };
const notRun: CheckRun = { ...failed, notRun: true, reason: "it was not run: no allow rule matches" };

describe("[VRF-2] the status of a result", () => {
  test.each([
    [[], false, "unverified"],
    [[passed], false, "verified"],
    [[passed], true, "failed-check"],
    [[passed, failed], false, "failed-check"],
    [[notRun], false, "failed-check"],
  ] as const)("of %j, stale: %s", (checks, isStale, status) => {
    expect(statusOf(checks, isStale)).toBe(status);
  });
});

describe("[VRF-3] a check that failed and passes on the same tree", () => {
  test("is reported with both runs, also when it is run once more", () => {
    const once = withFlaky(passed, [failed]);
    expect(once.flaky).toEqual({ exitCode: 1, durationMs: 5, output: "1 failed" });
    expect(withFlaky(passed, [once]).flaky).toEqual(once.flaky);
  });

  test.each([
    ["it passed before", passed, [passed]],
    ["it was another command", passed, [{ ...failed, run: "other" }]],
    ["it was not run", passed, [notRun]],
    ["it fails again", failed, [failed]],
    ["the tree is another one", passed, []],
  ] as const)("not where %s", (_, now, earlier) => {
    expect(withFlaky(now, earlier).flaky).toBeUndefined();
  });
});

describe("[VRF-3] a check that exits with 0 and has tested nothing", () => {
  test.each([
    ["# tests 0\n# pass 0", "node --test found no test to run"],
    ["ℹ tests 0", "node --test found no test to run"],
    ["running 0 tests\n\ntest result: ok. 0 passed", "cargo test found no test to run"],
    ["  0 passing (2ms)", "mocha found no test to run"],
    ["collected 0 items", "pytest found no test to run"],
    ["Ran 0 tests in 0.000s\n\nOK", "unittest found no test to run"],
    ["\u001b[33mNo test files found, exiting with code 0\u001b[39m", "the test runner found no test to run"],
    ["testing: warning: no tests to run\nPASS", "go test found no test to run"],
    ["?   \texample.com/a\t[no test files]", "go test found no test to run"],
    ["0 examples, 0 failures", "rspec found no test to run"],
    ["No tests executed!", "the test runner found no test to run"],
    ["bun test v1\n 0 pass\n 0 fail", "bun test found no test to run"],
    ["ok | 0 passed | 0 failed (1ms)", "deno test found no test to run"],
    ["No tests found, exiting with code 0\n# tests 0", "node --test found no test to run"],
  ])("%j has run nothing", (output, reason) => {
    expect(ranNothing(output)).toBe(reason);
  });

  test.each([
    "# tests 3",
    "running 0 tests\nrunning 12 tests",
    "No tests found, exiting with code 0\nTests:       7 passed, 7 total",
    "?   \texample.com/a\t[no test files]\nok  \texample.com/b\t0.02s",
    "testing: warning: no tests to run\nok  \texample.com/a\t0.01s [no tests to run]\nok  \texample.com/b\t(cached)",
    " Tests  7 passed (7)",
    "Ran 10 tests in 0.1s",
    "collected 3 items",
    "checked 0 files with problems",
    "",
  ])("%j is a pass", (output) => {
    expect(ranNothing(output)).toBeUndefined();
  });
});

describe("[VRF-4] facts beside a result", () => {
  const edit = { tool: "Edit", effect: "edit" };
  const run = (command: string) => ({ tool: "Bash", effect: "execute", command });
  const facts = { calls: [], changedFiles: ["src/a.ts"], readFiles: ["src/b.ts"], mayEdit: true, text: "" };

  test.each([
    [[], []],
    [[run("npm test")], []],
    [[edit], ["Files were edited and no command was run."]],
    [[edit, run("ls")], ["Files were edited and no test was run."]],
    [[run("npm test"), edit], ["The last test run is older than the last edit."]],
    [[edit, run("npm test")], []],
  ])("of the calls %j", (calls, notes) => {
    expect(factsOf({ ...facts, calls })).toEqual(notes);
  });

  test("files that the text names and the run has not touched", () => {
    const text = "I changed `src/a.ts` and `./src/c.ts`, read `b.ts` and `src/b.ts`, and say `npm test`.";
    expect(factsOf({ ...facts, text })).toEqual([
      "The text names files that were neither read nor changed: src/c.ts.",
    ]);
    expect(factsOf({ ...facts, text, calls: [run("touch src/c.ts")] })).toEqual([]);
  });
});

describe("[VRF-2] a receipt for the parent's model", () => {
  const receipt: Receipt = {
    status: "unverified",
    checks: [],
    retries: 0,
    changedFiles: [],
    tools: {},
    model: "m",
    notes: [],
  };

  test("says nothing where there is nothing to say", () => {
    expect(receiptText(receipt)).toBe("");
  });

  test("names what failed and what is flaky", () => {
    const text = receiptText({
      ...receipt,
      status: "failed-check",
      checks: [failed, notRun, withFlaky({ ...passed, run: "make" }, [{ ...failed, run: "make" }])],
      tree: { kind: "git", digest: "0123456789abcdef" },
      notes: ["The last test run is older than the last edit."],
    });
    expect(text.split("\n")).toEqual([
      "Result: failed-check; 1 of 3 checks passed on tree 0123456789ab.",
      "Failed: `npm test` with exit code 1",
      "Failed: `npm test`: it was not run: no allow rule matches",
      "Flaky: `make` failed and then passed on the same tree.",
      "The last test run is older than the last edit.",
    ]);
  });
});
