import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    reporters: ["default", "./test/closing-line-reporter.ts"],
    include: ["src/**/*.test.ts", "test/**/*.test.ts"],
    // One more than there are cores: most tests wait for a process or a server part of their time.
    maxWorkers: availableParallelism() + 1,
    // No module keeps anything, so files can share a worker; starting one for each takes longer than most tests.
    isolate: false,
    testTimeout: 30_000,
  },
});
