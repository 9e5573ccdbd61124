/**
 * `npm run tables`: runs every row of the tables of programs with the real programs of this machine, in temporary folders
 * under strace, and compares what they do with what the tables say. The tests run a sample of it.
 */
import {
  checkEveryday,
  checkFiles,
  checkLanguages,
  checkOptions,
  checkShell,
  type Findings,
} from "../test/program-tables/check-tables.ts";

const parts: readonly (readonly [string, () => Promise<Findings>])[] = [
  ["options", checkOptions],
  ["files", checkFiles],
  ["languages", checkLanguages],
  ["shell", checkShell],
  ["everyday", checkEveryday],
];

let count = 0;
for (const [name, run] of parts) {
  const started = performance.now();
  const { figures, skipped, diagnostics } = await run();
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  console.log(
    `${name}: ${figures}; ${diagnostics.length} problems, ${skipped.length} skipped (${seconds} s)`,
  );
  for (const diagnostic of diagnostics) console.log(`  ${diagnostic}`);
  if (process.argv.includes("--skipped")) for (const text of skipped) console.log(`  skipped: ${text}`);
  count += diagnostics.length;
}
process.exitCode = count === 0 ? 0 : 1;
