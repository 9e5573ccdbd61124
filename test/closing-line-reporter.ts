import { writeFileSync } from "node:fs";
import type { Reporter, TestModule } from "vitest/node";

/** What a run came to, for the script that starts it. */
export interface TestOutcome {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  /** Errors outside of any test. */
  readonly errors: number;
  readonly failedFiles: readonly string[];
  readonly failedTests: readonly string[];
}

/** Ends every run with the names of skipped tests, and one plain line that any log reader can count. */
export default class ClosingLineReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], errors: readonly unknown[]): void {
    const counts = { passed: 0, failed: errors.length, skipped: 0 };
    const skipped: string[] = [];
    const failedTests: string[] = [];
    const failedFiles = new Set<string>();
    for (const module of modules) {
      const broken = module.errors().length;
      counts.failed += broken;
      if (broken > 0) failedFiles.add(module.moduleId);
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
    console.log(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`);
    const file = process.env["RETINUE_TEST_OUTCOME"];
    if (file === undefined) return;
    const outcome: TestOutcome = {
      ...counts,
      errors: errors.length,
      failedFiles: [...failedFiles],
      failedTests,
    };
    writeFileSync(file, JSON.stringify(outcome));
  }
}
