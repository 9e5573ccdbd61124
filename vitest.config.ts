import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["src/**/*.test.ts", "test/**/*.test.ts"],
    reporters: ["default", "./test/closing-line-reporter.ts"],
    // One core is left idle by default, which on two cores doubles the time.
    maxWorkers: Math.max(2, availableParallelism()),
    testTimeout: 30_000,
  },
});
