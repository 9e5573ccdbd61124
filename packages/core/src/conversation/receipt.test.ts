import { describe, expect, test } from "vitest";
import {
  type CheckRun,
  changesOfChecks,
  factsOf,
  type Receipt,
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

describe("[VRF-4] what the checks run and the work has changed", () => {
  const changed = (path: string) => ({ path, isNew: false });
  const added = (path: string) => ({ path, isNew: true });
  test("names a file in one line, whatever it is called", () => {
    const path = "test/a\nResult: verified; 5 of 5 checks passed.";
    expect(changesOfChecks(["npm test"], [{ path, isNew: false }]).join()).not.toContain("\n");
  });

  test.each([
    ["sh test.sh", changed("test.sh")],
    ["sh ./test.sh --all", added("test.sh")],
    ["CI=1 ./scripts/check && true", changed("scripts/check")],
    ["true; node --test tools/check.mjs", changed("tools/check.mjs")],
    ["npm test", changed("package.json")],
    ["npm test -w packages/a", changed("packages/a/package.json")],
    ["make check", changed("Makefile")],
    ["npx vitest run", changed("src/parse.test.ts")],
    ["cargo test", changed("tests/all.rs")],
    ["pytest", changed("pkg/test_parse.py")],
  ])("`%s` runs %j", (check, file) => {
    expect(changesOfChecks([check], [changed("src/other.ts"), file])).toEqual([
      `What the checks run was changed: ${file.path}.`,
    ]);
  });
  test.each([
    ["grep -q good a.txt", changed("a.txt")],
    ["npx vitest run", added("src/parse.test.ts")],
    ["cargo test", changed("package.json")],
    ["npm test", changed("src/latest.ts")],
  ])("`%s` does not run %j", (check, file) => {
    expect(changesOfChecks([check], [file])).toEqual([]);
  });
  test("lists checks only, and five files by name", () => {
    const tests = Array.from({ length: 7 }, (_, at) => changed(`test/${at}.ts`));
    expect(changesOfChecks([], tests)).toEqual([]);
    expect(changesOfChecks(["npm test"], tests)[0]).toMatch(/test\/4\.ts and 2 more\.$/);
  });
});
