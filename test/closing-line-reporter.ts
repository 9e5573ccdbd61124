import type { Reporter, TestModule } from "vitest/node";

/** Ends every run with the names of tests that were skipped or passed only when retried, and one plain line that any log reader can count. */
export default class ClosingLineReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], errors: readonly unknown[]): void {
    const counts = { passed: 0, failed: errors.length, skipped: 0 };
    const skipped: string[] = [];
    const flaky: string[] = [];
    for (const module of modules) {
      const broken = module.errors().length;
      counts.failed += broken;
      for (const test of module.children.allTests()) {
        const { state } = test.result();
        if (test.diagnostic()?.flaky === true) flaky.push(test.fullName);
        if (state === "passed") counts.passed += 1;
        else if (state === "failed") counts.failed += 1;
        else {
          counts.skipped += 1;
          skipped.push(test.fullName);
        }
      }
    }
    for (const name of flaky) console.log(`flaky: ${name}`);
    for (const name of skipped) console.log(`skipped: ${name}`);
    console.log(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`);
  }
}
