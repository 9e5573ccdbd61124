import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    reporters: ["default", "./test/closing-line-reporter.ts"],
    // One core is left idle by default, which on two cores doubles the time.
    maxWorkers: Math.max(2, availableParallelism()),
    testTimeout: 30_000,
    projects: [
      {
        extends: true,
        // No module keeps anything, so files can share a worker; starting one for each takes longer than most tests.
        test: { name: "source", include: ["src/**/*.test.ts"], isolate: false },
      },
      {
        extends: true,
        test: { name: "whole", include: ["test/**/*.test.ts"], exclude: ["test/cluster/**"] },
      },
      {
        extends: true,
        test: {
          name: "cluster",
          include: ["test/cluster/**/*.test.ts"],
          // One database server for all of them.
          globalSetup: ["test/cluster/shared-postgres.ts"],
          isolate: false,
        },
      },
    ],
  },
});
