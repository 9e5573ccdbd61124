/**
 * `npm test`: all tests, once. With `CI` set, files with a failed test run once more, alone and in a new process: a shared machine can
 * stall any process, and a test that has used up its folder cannot pass where it stands. After an error that belongs to no file, as when
 * a worker breaks, all files run once more. What passes then is printed as `flaky: …`, never hidden.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { TestOutcome } from "../test/closing-line-reporter.ts";
import { projectRoot } from "../test/project-files.ts";

const vitest = join(dirname(createRequire(import.meta.url).resolve("vitest/package.json")), "vitest.mjs");
const folder = mkdtempSync(join(tmpdir(), "retinue-tests-"));
try {
  process.exitCode = runTests(process.argv.slice(2));
} finally {
  rmSync(folder, { recursive: true, force: true });
}

function runTests(words: readonly string[]): number {
  const first = runVitest("first", words);
  if (first.status === 0 || process.env["CI"] === undefined) return first.status;
  const outcome = first.outcome;
  if (outcome === undefined || outcome.failed === 0) return first.status;
  const allAgain = outcome.errorsOfNoFile > 0;
  const second = runVitest("second", allAgain ? words : ["--maxWorkers", "1", ...outcome.failedFiles]);
  if (second.outcome === undefined) return second.status || 1;
  const stillFailing = new Set(second.outcome.failedTests);
  for (const name of outcome.failedTests) if (!stillFailing.has(name)) console.log(`flaky: ${name}`);
  const failed = second.outcome.failed;
  const passed = allAgain
    ? second.outcome.passed
    : outcome.passed + Math.max(0, outcome.failed - outcome.errors - failed);
  console.log(`${passed} passed, ${failed} failed, ${outcome.skipped} skipped`);
  return second.status;
}

function runVitest(name: string, words: readonly string[]): { status: number; outcome?: TestOutcome } {
  const file = join(folder, `${name}.json`);
  const { status } = spawnSync(process.execPath, [vitest, "run", ...words], {
    cwd: projectRoot,
    stdio: "inherit",
    env: { ...process.env, RETINUE_TEST_OUTCOME: file },
  });
  const outcome = existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : undefined;
  return { status: status ?? 1, outcome };
}
