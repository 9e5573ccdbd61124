import { writeFileSync } from "node:fs";
import { relative } from "node:path";
import type { Reporter, TestModule } from "vitest/node";
import { projectRoot } from "./project-files.ts";

/** What a run came to, for the script that starts it. */
export interface TestOutcome {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  /** Errors outside of any test; they are among the failed. */
  readonly errors: number;
  /** Those that belong to no file, as when a worker breaks: no choice of files can show whether they come again. */
  readonly errorsOfNoFile: number;
  readonly failedFiles: readonly string[];
  readonly failedTests: readonly string[];
}

/** Ends every run with the names of skipped and of failed tests, and one plain line that any log reader can count. */
export default class ClosingLineReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], errors: readonly unknown[]): void {
    const counts = { passed: 0, failed: errors.length, skipped: 0 };
    const skipped: string[] = [];
    const failedTests: string[] = [];
    const failedFiles = new Set<string>();
    let errorsOfNoFile = 0;
    for (const error of errors) {
      const file = fileOfError(error);
      if (file === undefined) errorsOfNoFile += 1;
      else failedFiles.add(file);
      failedTests.push(
        `an error outside of any test${file === undefined ? "" : `, in ${relative(projectRoot, file)}`}: ${messageOf(error)}`,
      );
    }
    for (const module of modules) {
      const broken = module.errors().length;
      counts.failed += broken;
      if (broken > 0) {
        failedFiles.add(module.moduleId);
        failedTests.push(`${relative(projectRoot, module.moduleId)}: ${messageOf(module.errors()[0])}`);
      }
      for (const test of module.children.allTests()) {
        const { state } = test.result();
        if (state === "passed") counts.passed += 1;
        else if (state === "failed") {
          counts.failed += 1;
          failedFiles.add(module.moduleId);
          failedTests.push(test.fullName);
        } else {
          counts.skipped += 1;
          skipped.push(test.fullName);
        }
      }
    }
    for (const name of skipped) console.log(`skipped: ${name}`);
    for (const name of failedTests) console.log(`failed: ${name}`);
    console.log(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`);
    const file = process.env["RETINUE_TEST_OUTCOME"];
    if (file === undefined) return;
    const outcome: TestOutcome = {
      ...counts,
      errors: errors.length,
      errorsOfNoFile,
      failedFiles: [...failedFiles],
      failedTests,
    };
    writeFileSync(file, JSON.stringify(outcome));
  }
}

/** Vitest notes the file whose tests ran when an error was not caught. */
function fileOfError(error: unknown): string | undefined {
  const file = (error as { VITEST_TEST_PATH?: unknown } | undefined)?.VITEST_TEST_PATH;
  return typeof file === "string" ? file : undefined;
}

function messageOf(error: unknown): string {
  const message = (error as { message?: unknown } | undefined)?.message;
  return String(message ?? error).split("\n", 1)[0] as string;
}
