import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    reporters: ["default", "./test/closing-line-reporter.ts"],
    // One more than there are cores: most tests wait for a process or a server part of their time.
    maxWorkers: availableParallelism() + 1,
    testTimeout: 30_000,
    projects: [
      {
        extends: true,
        // No module keeps anything, so files can share a worker; starting one for each takes longer than most tests.
        test: { name: "source", include: ["src/**/*.test.ts"], isolate: false },
      },
      { extends: true, test: { name: "whole", include: ["test/**/*.test.ts"], isolate: false } },
    ],
  },
});
