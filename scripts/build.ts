/** Builds the library (own code only) and the command line (bundled and split, for a fast cold start), then the types. */
import { execFileSync } from "node:child_process";
import { rmSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const root = fileURLToPath(new URL("..", import.meta.url));
const shared = {
  absWorkingDir: root,
  bundle: true,
  splitting: true,
  platform: "node",
  format: "esm",
  target: "node22.18",
  logLevel: "warning",
} as const;

rmSync(`${root}/dist`, { recursive: true, force: true });
await Promise.all([
  build({
    ...shared,
    entryPoints: { index: "src/index.ts", testing: "src/testing/index.ts" },
    outdir: "dist/lib",
    packages: "external",
    sourcemap: true,
  }),
  build({
    ...shared,
    entryPoints: ["src/apps/cli/main.ts"],
    outdir: "dist/cli",
    minifySyntax: true,
    // Less to read at each start; names stay, so that stack traces can be understood.
    minifyWhitespace: true,
    // The CommonJS builds of some packages load their own parts in ways a bundler cannot follow.
    mainFields: ["module", "main"],
    // It finds its binary beside itself.
    external: ["@vscode/ripgrep"],
    legalComments: "linked",
    banner: {
      js: 'import { createRequire as requireFrom__ } from "node:module"; const require = requireFrom__(import.meta.url);',
    },
  }),
]);
execFileSync(process.execPath, ["node_modules/typescript/bin/tsc", "-p", "tsconfig.types.json"], {
  cwd: root,
  stdio: "inherit",
});
