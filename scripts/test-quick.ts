/**
 * `npm run test:quick`: the tests to run while a change is in progress, of which test/quick-tests.ts chooses.
 * The change is what is not committed yet, or else the last commit; `-- BRANCH` takes everything since that branch.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { projectRoot, readProjectFiles } from "../test/project-files.ts";
import { quickTests } from "../test/quick-tests.ts";

const [base] = process.argv.slice(2);
const tests = quickTests(findChanged(), readProjectFiles());
const vitest = join(dirname(createRequire(import.meta.url).resolve("vitest/package.json")), "vitest.mjs");
const { status } = spawnSync(process.execPath, [vitest, "run", ...tests], {
  cwd: projectRoot,
  stdio: "inherit",
});
process.exitCode = status ?? 1;

function findChanged(): string[] {
  if (base !== undefined) return [...git("diff", "--name-only", "--merge-base", base), ...unknownToGit()];
  const uncommitted = [...git("diff", "--name-only", "HEAD"), ...unknownToGit()];
  return uncommitted.length > 0 ? uncommitted : git("diff", "--name-only", "HEAD~1", "HEAD");
}

function unknownToGit(): string[] {
  return git("ls-files", "--others", "--exclude-standard");
}

function git(...words: readonly string[]): string[] {
  return execFileSync("git", words, { cwd: projectRoot, encoding: "utf8" }).split("\n").filter(Boolean);
}
