import { describe, expect, test } from "vitest";
import { ranNothing } from "./ran-nothing.ts";

describe("[VRF-3] a check that exits with 0 and has tested nothing", () => {
  test.each([
    ["# tests 0\n# pass 0", "node --test ran no test"],
    ["ℹ tests 0", "node --test ran no test"],
    ["running 0 tests\n\ntest result: ok. 0 passed", "cargo test ran no test"],
    ["  0 passing (2ms)", "mocha ran no test"],
    ["collected 3 items\n\n===== 3 tests collected in 0.01s =====", "pytest ran no test"],
    ["collected 3 items\n\n===== 1/3 tests collected (2 deselected) in 0.01s =====", "pytest ran no test"],
    ["===== no tests ran in 0.00s =====", "pytest ran no test"],
    ["0 runs, 0 assertions, 0 failures, 0 errors, 0 skips", "minitest ran no test"],
    ["     Summary [   0.000s] 0 tests run: 0 passed, 3 skipped", "cargo nextest ran no test"],
    ["There are no tests to run", "the test runner ran no test"],
    ["[info] No tests to run for Test / test", "the test runner ran no test"],
    ["Error: No tests found", "the test runner ran no test"],
    ["No specs found\nFinished in 0.001 seconds", "the test runner ran no test"],
    ["No tasks were run", "turbo ran no test"],
    ["collected 0 items", "pytest ran no test"],
    ["Ran 0 tests in 0.000s\n\nOK", "unittest ran no test"],
    ["\u001b[33mNo test files found, exiting with code 0\u001b[39m", "the test runner ran no test"],
    ["testing: warning: no tests to run\nPASS", "go test ran no test"],
    ["?   \texample.com/a\t[no test files]", "go test ran no test"],
    ["0 examples, 0 failures", "rspec ran no test"],
    ["No tests executed!", "the test runner ran no test"],
    ["bun test v1\n 0 pass\n 0 fail", "bun test ran no test"],
    ["ok | 0 passed | 0 failed (1ms)", "deno test ran no test"],
    ["No tests found, exiting with code 0\n# tests 0", "node --test ran no test"],
    ["Tests:       5 skipped, 5 total", "the test runner ran no test"],
    [" Test Files  1 skipped (1)\n      Tests  5 skipped (5)", "the test runner ran no test"],
    ["Tests:       0 total", "the test runner ran no test"],
    ["collected 5 items\n\na.py sssss\n\n====== 5 skipped in 0.01s ======", "pytest ran no test"],
    ["sssss\n5 skipped, 1 warning in 0.01s", "pytest ran no test"],
    ["# tests 5\n# pass 0\n# fail 0\n# skipped 5", "node --test ran no test"],
    [
      "running 5 tests\ntest result: ok. 0 passed; 0 failed; 5 ignored; 0 measured; 0 filtered out",
      "cargo test ran no test",
    ],
    ["Ran 5 tests in 0.0s\n\nOK (skipped=5)", "unittest ran no test"],
    ["ok  \tfoo\t0.002s [no tests to run]", "go test ran no test"],
    ["5 examples, 0 failures, 5 pending", "rspec ran no test"],
    ["5 tests, 0 failures, 2 excluded, 3 skipped", "mix test ran no test"],
    [
      "OK, but incomplete, skipped, or risky tests!\nTests: 5, Assertions: 0, Skipped: 5.",
      "phpunit ran no test",
    ],
    ["Running 5 tests using 1 worker\n\n  5 skipped\n", "playwright ran no test"],
    ["Skipped! - Failed:     0, Passed:     0, Skipped:     5, Total:     5", "dotnet test ran no test"],
    ["Executed 5 tests, with 5 tests skipped and 0 failures (0 unexpected)", "swift test ran no test"],
    ["[INFO] Tests are skipped.", "Maven ran no test"],
    ["Tests run: 4, Failures: 0, Errors: 0, Skipped: 4", "Maven ran no test"],
    ["> Task :compileJava\n> Task :test NO-SOURCE\n\nBUILD SUCCESSFUL", "Gradle ran no test"],
    ["make: 'test' is up to date.", "make ran no test"],
    ["make[1]: Nothing to be done for 'check'.", "make ran no test"],
    ["No tasks were executed as part of this run.", "turbo ran no test"],
    ["lerna info No packages found with the lifecycle script test", "the workspace ran no test"],
    ["1..0 # SKIP not here", "the TAP producer ran no test"],
    ["1..2\nok 1 a # skip\nok 2 b # skip not here", "the TAP producer ran no test"],
    [
      "TAP version 13\n1..1\nok 1 - a.test.mjs # SKIP {\n    1..1\n    ok 1 - x # SKIP\n}",
      "the TAP producer ran no test",
    ],
    [
      "TAP version 13\n# Subtest: x\nok 1 - x # SKIP test name does not match pattern\n1..1\n# tests 1\n# pass 0\n# skipped 1",
      "node --test ran no test",
    ],
    [
      "<testsuites>\n\t<!-- tests 1 -->\n\t<!-- pass 0 -->\n\t<!-- skipped 1 -->\n</testsuites>",
      "node --test ran no test",
    ],
    ["1 runs, 0 assertions, 0 failures, 0 errors, 1 skips", "minitest ran no test"],
    [
      "=== RUN   TestA\n    m_test.go:3: no\n--- SKIP: TestA (0.00s)\nPASS\nok  \tm\t0.003s",
      "go test ran no test",
    ],
    [
      '{"Time":"2026-01-02T03:04:05Z","Action":"output","Package":"m","Output":"ok  \\tm\\t0.004s [no tests to run]\\n"}\n{"Time":"2026-01-02T03:04:05Z","Action":"pass","Package":"m","Elapsed":0.006}',
      "go test ran no test",
    ],
    ["sss                                    [100%]", "pytest ran no test"],
    [
      "Files=0, Tests=0,  0 wallclock secs ( 0.00 usr +  0.00 sys =  0.00 CPU)\nResult: NOTESTS",
      "prove ran no test",
    ],
    [
      "[==========] 0 tests from 0 test suites ran. (0 ms total)\n[  PASSED  ] 0 tests.",
      "googletest ran no test",
    ],
    ["[doctest] test cases: 0 | 0 passed | 0 failed | 3 skipped", "doctest ran no test"],
    ["[info] Tests: succeeded 0, failed 0, canceled 0, ignored 2, pending 0", "ScalaTest ran no test"],
    ["Ran 0 tests containing 0 assertions.", "clojure.test ran no test"],
    ["\u2714 Test run with 0 tests passed after 0.001 seconds.", "swift test ran no test"],
    ["00:00 +0 ~2: All tests skipped.", "dart test ran no test"],
    ["3 specs, 0 failures, 3 pending specs", "jasmine ran no test"],
    ["0 scenarios\n0 steps", "cucumber ran no test"],
    ["0 scenarios passed, 0 failed, 4 skipped", "behave ran no test"],
    ["2 tests, 0 passed, 0 failed, 2 skipped", "Robot Framework ran no test"],
    ["Tests Passed: 0, Failed: 0, Skipped: 0", "Pester ran no test"],
    [" NX   No tasks were run", "turbo ran no test"],
    ["No projects matched the filters in /repo", "the workspace ran no test"],
    ['{"numFailedTests":0,"numPassedTests":0,"numTotalTests":0}', "jest ran no test"],
    ['{\n  "stats": {\n    "tests": 0,\n    "passes": 0,\n  },\n  "passes": []\n}', "mocha ran no test"],
    ['{"examples":[],"summary_line":"0 examples, 0 failures"}', "rspec ran no test"],
    ['<testsuite name="a" tests="2" failures="0" errors="0" skipped="2">', "the test runner ran no test"],
    ['<testsuites name="jest" tests="0" failures="0">\n</testsuites>', "the test runner ran no test"],
  ])("%j has run nothing", (output, reason) => {
    expect(ranNothing(output)).toBe(reason);
  });

  test.each([
    "# tests 3",
    "running 0 tests\ntest result: ok. 0 passed; 0 failed; 0 ignored\nrunning 12 tests\ntest result: ok. 12 passed; 0 failed; 0 ignored",
    "No tests found, exiting with code 0\nTests:       7 passed, 7 total",
    "?   \texample.com/a\t[no test files]\nok  \texample.com/b\t0.02s",
    "testing: warning: no tests to run\nok  \texample.com/a\t0.01s [no tests to run]\nok  \texample.com/b\t(cached)",
    " Tests  7 passed (7)",
    "Ran 10 tests in 0.1s",
    "collected 3 items",
    "Tests:       1 skipped, 5 passed, 6 total",
    "Tests:       7 total",
    " Tests  5 passed | 1 skipped (6)",
    " Tests  1 expected fail (1)",
    "collected 5 items\n\n==== 2 passed, 3 skipped in 0.01s ====",
    "==== 1 skipped, 4 xfailed in 0.01s ====",
    "# tests 5\n# pass 2\n# skipped 3",
    "Ran 5 tests in 0.0s\n\nOK (skipped=4)",
    "5 examples, 0 failures, 4 pending",
    "5 tests, 0 failures, 1 skipped",
    "Tests: 5, Assertions: 9, Skipped: 1.",
    "Running 5 tests using 1 worker\n\n  2 skipped\n  3 passed (1.2s)",
    "Passed!  - Failed:     0, Passed:     3, Skipped:     2, Total:     5",
    "Tests run: 4, Failures: 0, Errors: 0, Skipped: 1",
    "> Task :a:test NO-SOURCE\n> Task :b:test UP-TO-DATE",
    "test result: ok. 0 passed; 0 failed; 0 ignored; 3 measured; 0 filtered out",
    "make: Nothing to be done for 'all'.",
    "Tasks:    2 successful, 2 total\nCached:    2 cached, 2 total",
    "1..3\nok 1\nok 2\nok 3",
    "1..2\nok 1 a # skip\nok 2 b",
    "the range is\n1..5",
    "=== RUN   TestA\n--- SKIP: TestA (0.00s)\n=== RUN   TestB\n--- PASS: TestB (0.00s)\nok  \tm\t0.003s",
    "s.s                                    [100%]",
    "2 runs, 1 assertions, 0 failures, 0 errors, 1 skips",
    "\u2714 a.test.js (31.6ms)\n\u2139 tests 1\n\u2139 pass 1",
    "2 scenarios passed, 0 failed, 3 skipped",
    '<testsuites tests="2">\n<testsuite name="a" tests="2" failures="0" errors="0" skipped="1">',
    "  12 skipped",
    "checked 0 files with problems",
    "",
  ])("%j is a pass", (output) => {
    expect(ranNothing(output)).toBeUndefined();
  });

  test("is seen by what it was asked to run", () => {
    const passed = "\u2714 a.test.js (48.1ms)\n\u2139 tests 1\n\u2139 pass 1";
    const filtered = "node --test --test-name-pattern=none";
    expect(ranNothing(passed, filtered)).toBe("node --test ran no test");
    expect(ranNothing(`> ${filtered}\n${passed}`, "npm test")).toBe("node --test ran no test");
    expect(ranNothing("\u2714 adds (1.2ms)\n\u2139 tests 1\n\u2139 pass 1", filtered)).toBeUndefined();
    expect(ranNothing("ok 1 - a.test.js\n1..1\n# tests 1\n# pass 1", filtered)).toBe(
      "node --test ran no test",
    );
    expect(ranNothing("", "npm run test --if-present")).toBe("there is no script of that name");
    expect(ranNothing("> a@1.0.0 test\n> true\n", "npm test --if-present")).toBeUndefined();
  });

  test.each([
    ["empty lines", "\n".repeat(300_000)],
    ["the parts of one task", `> Task ${":a".repeat(60_000)}`],
    ["digits", "1".repeat(300_000)],
    ["lists", `Tests: ${"1 skipped, ".repeat(30_000)}`],
  ])("is found in a moment also among %s without end", (_what, output) => {
    expect(ranNothing(output)).toBeUndefined();
    expect(ranNothing(`${output}\n# tests 0\n`)).toBe("node --test ran no test");
  });
});
