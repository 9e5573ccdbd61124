import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { defineConfig } from "vitest/config";
import SlowFilesFirst from "./test/slow-files-first.ts";

export default defineConfig({
  test: {
    reporters: ["default", "./test/closing-line-reporter.ts"],
    // More than there are cores: most tests wait for a process or a server part of their time.
    maxWorkers: availableParallelism() + 2,
    sequence: { sequencer: SlowFilesFirst },
    // No module keeps anything, so files can share a worker; starting one for each takes longer than most tests.
    isolate: false,
    // Node runs the modules itself: the sources only need their types erased, and no test mocks a module.
    experimental: { viteModuleRunner: false, nodeLoader: false },
    // Most code runs a few times only: compiling it with the greatest care takes longer than it ever saves.
    execArgv: ["--no-turbofan"],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // Under load a process may take seconds to do what takes milliseconds.
    expect: { poll: { timeout: 15_000, interval: 20 } },
    // Programs that tests start find their modules compiled, and stripped of their types, by the first of them.
    env: { NODE_COMPILE_CACHE: join(tmpdir(), "node-compile-cache"), NODE_DISABLE_COMPILE_CACHE: "1" },
    setupFiles: ["test/worker-setup.ts"],
    globalSetup: ["test/temporary-root.ts"],
    projects: [
      {
        extends: true,
        test: {
          name: "main",
          include: ["packages/*/src/**/*.test.ts", "test/**/*.test.ts"],
          exclude: ["test/cluster/**", "**/node_modules/**"],
        },
      },
      {
        extends: true,
        test: {
          name: "cluster",
          include: ["test/cluster/**/*.test.ts"],
          // One database server for all of them, and none for the others.
          globalSetup: ["test/temporary-root.ts", "test/cluster/shared-postgres.ts"],
        },
      },
    ],
  },
});
