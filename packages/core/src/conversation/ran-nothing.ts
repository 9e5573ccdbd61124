import { parseJson } from "@retinue/base/foundation/json-record.ts";

/** What a check's output says where it exits with 0 and has tested nothing: there was no test, or each one was skipped. */
export function ranNothing(output: string, command = ""): string | undefined {
  if (optionalScript.test(command) && output.trim() === "") return "there is no script of that name";
  // Without colours and empty lines.
  const lines = output.replaceAll(/\u001b\[[0-9;]*m/g, "").split("\n");
  const shown = lines
    .map((line) => outputOfEvent(line).slice(0, maxLine).trimEnd())
    .filter((line) => line !== "")
    .join("\n");
  const isFiltered = nameFilter.test(command) || nameFilter.test(shown);
  const text = isFiltered ? shown.replaceAll(passedFile, "") : shown;
  const files = isFiltered ? (shown.match(passedFile) ?? []).length : 0;
  const counted = summaries.flatMap(({ runner, line, isTotal, countsFiles }) =>
    [...text.matchAll(line)].map((match) => ({
      runner,
      count:
        Number(match.groups?.["ran"] ?? 0) -
        (isTotal === true ? leftOut(match[0]) : 0) -
        (countsFiles === true ? files : 0),
    })),
  );
  // Of several runners, and of several packages, some may have no tests.
  if (counted.some(({ count }) => count > 0) || hasRun.some((line) => line.test(text))) return undefined;
  // With `-v` its tests are named; otherwise this line is all that it writes.
  if (!text.includes("=== RUN") && passedPackage.test(text)) return undefined;
  if (counted[0] !== undefined) return `${counted[0].runner} ran no test`;
  return isEmptyTap(text) ? "the TAP producer ran no test" : undefined;
}

/** `npm test --if-present` writes nothing where there is no such script, and a heading where there is one. */
const optionalScript = /\bnpm\b.* --if-present\b/;

/** Of a file in which no test fits, `node --test` says that the file has passed, as of one that is itself the test. */
const nameFilter = /--test-(?:name|skip)-pattern\b/;
const passedFile = /^(?:\u2714|ok \d+ -) \S.*\.[cm]?[jt]sx?(?: \([\d.]+ms\))?$/gm;

/** The points of TAP; other summaries know better, because a point may represent a suite. */
function isEmptyTap(text: string): boolean {
  if (/^[ \t]*(?:not )?ok \d+\b(?!.*# skip\b)/im.test(text)) return false;
  return /^(?:1\.\.0(?: # skip\b.*)?|[ \t]*ok \d+\b.*# skip\b.*)$/im.test(text);
}

/** No line of a summary is longer; what is gives the patterns below nothing to try again and again. */
const maxLine = 400;

/** What a line of `go test -json` was made of. */
function outputOfEvent(line: string): string {
  if (!line.startsWith('{"Time":') || line.length > maxLine) return line;
  const written = /"Output":("(?:[^"\\]|\\.)*")\}$/.exec(line)?.[1];
  return String(parseJson(written ?? "") ?? "").trimEnd();
}

/** Lines that a runner writes only where tests have run, without their number. */
const hasRun: readonly RegExp[] = [
  /^[ \t]*--- (?:PASS|FAIL): /m,
  /^> Task (?::[^\s:]+)*:test(?: UP-TO-DATE| FROM-CACHE)?$/m,
  /^[sxXFE.]*[.xX][sxXFE.]* +\[ *\d+%\]$/m,
];
const passedPackage = /^ok\s+\S+\s+(?:[\d.]+s|\(cached\))\s*$/m;

interface Summary {
  readonly runner: string;
  /** The group `ran` is the number of tests; where it is absent, the line itself says that there was none. */
  readonly line: RegExp;
  /** The number counts those too that were left out. */
  readonly isTotal?: true;
  /** The number may count files without any test. */
  readonly countsFiles?: true;
}

/** How many tests a summary says were left out. */
function leftOut(summary: string): number {
  const found = summary.matchAll(
    /(?<!\d)(\d+) (?:tests? )?(?:skipped|skips|pending|excluded)\b|\b(?:skipped|incomplete)(?:=|: )"?(\d+)/gi,
  );
  return [...found].reduce((sum, [, before, after]) => sum + Number(before ?? after), 0);
}

const anyRunner = "the test runner";

const summaries: readonly Summary[] = [
  {
    runner: "node --test",
    line: /^[ \t]*(?:# |\u2139 |<!-- )(?:tests 0|pass[ \t]+(?<ran>\d+))(?: -->)?$/gm,
    countsFiles: true,
  },
  { runner: "cargo test", line: /^(?:running 0 tests|test result: ok\. (?<ran>\d+) passed\b.*)$/gm },
  { runner: "cargo bench", line: /^test result: ok\. .* (?<ran>[1-9]\d*) measured\b/gm },
  { runner: "mocha", line: /^\s*(?<ran>\d+) passing\b/gm },
  { runner: "pytest", line: /^(?:=+ )?(?:\d+ [a-z]+, )*(?<ran>\d+) (?:passed|xfailed)\b.* in [\d.]+s/gm },
  {
    runner: "pytest",
    line: /^(?:collected 0 items\b|(?:=+ )?(?:no tests ran|\d+(?:\/\d+)? tests? collected\b.*|\d+ (?:skipped|deselected)(?:, \d+ (?:skipped|deselected|warnings?))*) in [\d.]+s)/gm,
  },
  {
    runner: "unittest",
    line: /^Ran (?<ran>\d+) tests? in [^\n]*(?:\n+OK \([^)\n]*\))?/gm,
    isTotal: true,
  },
  // jest and vitest: each kind with its number.
  {
    runner: anyRunner,
    line: /^\s*Tests:?\s+(?:\d+ [a-z ]+[,|]\s*)*(?<ran>\d+) (?:passed|expected fail)\b/gm,
  },
  {
    runner: anyRunner,
    line: /^\s*Tests:?\s+(?:0 total|\d+ (?:skipped|todo)(?:\s*[,|]\s*\d+ (?:skipped|todo|total))*)(?:\s*\(\d+\))?$/gm,
  },
  {
    runner: anyRunner,
    line: /^(?:Error: |\[info\] )?(?:No tests? (?:files? )?found\b|(?:There are )?No tests to run\b|no tests ran\b|No tests (?:executed|were found)\b|(?:Incomplete: )?No specs found\b|Couldn't find any files to test\b)/gim,
  },
  { runner: "pytest", line: /^s+ +\[100%\]$/gm },
  {
    runner: "go test",
    line: /^(?:[ \t]*--- SKIP: .*|testing: warning: no tests to run|\?\s+\S+\s+\[no test files\]|ok\s.*\[no tests to run\])$/gm,
  },
  {
    runner: "rspec",
    line: /(?:^|"summary_line":")(?<ran>\d+) examples?, \d+ failures?\b.*$/gm,
    isTotal: true,
  },
  {
    runner: "mix test",
    line: /^(?:\d+ doctests?, )?(?<ran>\d+) tests?, \d+ failures?\b.*$/gm,
    isTotal: true,
  },
  { runner: "minitest", line: /^(?<ran>\d+) runs, \d+ assertions, .*$/gm, isTotal: true },
  {
    runner: "cargo nextest",
    line: /^\s*Summary \[[^\]]*\]\s+\d+ tests? run: (?<ran>\d+) passed\b/gm,
  },
  { runner: "phpunit", line: /^(?:OK \((?<ran>\d+) tests?, .*|Tests: \d+, Assertions: 0\b.*)$/gm },
  { runner: "phpunit", line: /^Tests: (?<ran>\d+), Assertions: [1-9].*$/gm },
  // From its first line to its last.
  { runner: "playwright", line: /^Running (?<ran>\d+) tests? using \d+ workers?[\s\S]*/gm, isTotal: true },
  { runner: "bun test", line: /^\s*(?<ran>\d+) pass$/gm },
  { runner: "deno test", line: /^ok \| (?<ran>\d+) passed\b/gm },
  { runner: "swift test", line: /^\s*Executed (?<ran>\d+) tests?, with .*$/gm, isTotal: true },
  {
    runner: "dotnet test",
    line: /^(?:No test is available in |\s*(?:Passed|Skipped)!\s+- Failed:\s+\d+, Passed:\s+(?<ran>\d+),)/gm,
  },
  { runner: "Maven", line: /^(?:\[INFO\] )?Tests run: (?<ran>\d+), .*$/gm, isTotal: true },
  { runner: "Maven", line: /^(?:\[INFO\] )?(?:Tests are skipped\.|No tests to run\.)$/gm },
  { runner: "Gradle", line: /^> Task (?::[^\s:]+)*:test (?:NO-SOURCE|SKIPPED)$/gm },
  {
    runner: "make",
    line: /^g?make(?:\[\d+\])?: (?:Nothing to be done for )?['`](?:tests?|check|spec)'(?: is up to date)?\.$/gm,
  },
  {
    runner: "turbo",
    line: /^\s*(?:NX\s+)?(?:No tasks were (?:executed as part of this run\.|run\b)|Tasks:\s+(?<ran>\d+) successful,.*)$/gm,
  },
  {
    runner: "the workspace",
    line: /\b(?:No projects matched the filters|No packages found with the lifecycle script|None of the selected packages has a)\b/g,
  },
  { runner: "prove", line: /^(?:Files=\d+, Tests=(?<ran>\d+),.*|Result: NOTESTS)$/gm },
  { runner: "googletest", line: /^\[ {2}PASSED {2}\] (?<ran>\d+) tests?\.$/gm },
  { runner: "doctest", line: /^\[doctest\] test cases:\s+(?<ran>\d+) \|/gm },
  { runner: "ScalaTest", line: /^(?:\[info\] )?Tests: succeeded (?<ran>\d+), /gm },
  { runner: "clojure.test", line: /^Ran (?<ran>\d+) tests? containing /gm },
  { runner: "swift test", line: /\bTest run with (?<ran>\d+) tests?\b/gm },
  { runner: "dart test", line: /: All tests skipped\.$/gm },
  { runner: "jasmine", line: /^(?<ran>\d+) specs?, \d+ failures?\b.*$/gm, isTotal: true },
  { runner: "cucumber", line: /^(?<ran>\d+) scenarios?(?: \([^)\n]*\))?$/gm, isTotal: true },
  { runner: "behave", line: /^(?<ran>\d+) scenarios? passed, /gm },
  {
    runner: "Robot Framework",
    line: /^(?<ran>\d+) tests?, \d+ passed, \d+ failed\b.*$/gm,
    isTotal: true,
  },
  { runner: "Pester", line: /^Tests Passed: (?<ran>\d+), /gm },
  { runner: "stestr", line: /^Ran: (?<ran>\d+) tests? in /gm },
  // Reports in JSON and in the form of JUnit.
  { runner: "jest", line: /"numPassedTests": ?(?<ran>\d+)/g },
  { runner: "mocha", line: /^[ \t]*"passes": (?<ran>\d+)/gm },
  {
    runner: anyRunner,
    line: /<testsuite\b[^>\n]*\btests="(?<ran>\d+)"[^>\n]*/g,
    isTotal: true,
  },
  { runner: anyRunner, line: /<testsuites\b[^>\n]*\btests="0"/g },
];
