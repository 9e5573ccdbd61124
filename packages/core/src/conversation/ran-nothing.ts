/** What a check's output says where it exits with 0 and has tested nothing: there was no test, or each one was skipped. */
export function ranNothing(output: string): string | undefined {
  const text = plainLines(output);
  const counted = summaries.flatMap(({ runner, line, isTotal }) =>
    [...text.matchAll(line)].map((match) => ({
      runner,
      count: Number(match.groups?.["ran"] ?? 0) - (isTotal === true ? leftOut(match[0]) : 0),
    })),
  );
  // Of several runners, and of several packages, some may have no tests.
  if (counted.some(({ count }) => count > 0) || hasRun.some((line) => line.test(text))) return undefined;
  return counted[0] === undefined ? undefined : `${counted[0].runner} ran no test`;
}

/** No line of a summary is longer; what is gives the patterns below nothing to try again and again. */
const maxLine = 400;

/** Without colours and empty lines. */
function plainLines(output: string): string {
  const lines = output.replaceAll(/\u001b\[[0-9;]*m/g, "").split("\n");
  return lines
    .map((line) => line.slice(0, maxLine).trimEnd())
    .filter((line) => line !== "")
    .join("\n");
}

/** Lines that a runner writes only where tests have run, without their number. */
const hasRun: readonly RegExp[] = [
  /^ok\s+\S+\s+(?:[\d.]+s|\(cached\))\s*$/m,
  /^> Task (?::[^\s:]+)*:test(?: UP-TO-DATE| FROM-CACHE)?$/m,
];

interface Summary {
  readonly runner: string;
  /** The group `ran` is the number of tests; where it is absent, the line itself says that there was none. */
  readonly line: RegExp;
  /** The number counts those too that were left out. */
  readonly isTotal?: true;
}

/** How many tests a summary says were left out. */
function leftOut(summary: string): number {
  const found = summary.matchAll(
    /(?<!\d)(\d+) (?:tests? )?(?:skipped|pending|excluded)\b|\b(?:skipped|incomplete)(?:=|: )(\d+)/gi,
  );
  return [...found].reduce((sum, [, before, after]) => sum + Number(before ?? after), 0);
}

const anyRunner = "the test runner";

const summaries: readonly Summary[] = [
  { runner: "node --test", line: /^(?:# |\u2139 )(?:tests 0|pass (?<ran>\d+))$/gm },
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
  {
    runner: "go test",
    line: /^(?:testing: warning: no tests to run|\?\s+\S+\s+\[no test files\]|ok\s.*\[no tests to run\])$/gm,
  },
  { runner: "rspec", line: /^(?<ran>\d+) examples?, \d+ failures?\b.*$/gm, isTotal: true },
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
    line: /^\s*(?:No tasks were (?:executed as part of this run\.|run\b)|Tasks:\s+(?<ran>\d+) successful,.*)$/gm,
  },
  {
    runner: "the workspace",
    line: /\b(?:No packages found with the lifecycle script|None of the selected packages has a)\b/g,
  },
  { runner: "the TAP producer", line: /^1\.\.(?<ran>\d+)(?: # skip\b.*)?$/gim },
];
