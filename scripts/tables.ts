/**
 * `npm run tables`: runs every row of the tables of programs with the real programs of this machine, in temporary folders
 * under strace, and compares what they do with the tables. The tests run a sample of it.
 * `-- NAME…` runs some parts alone, `--skipped` names what this machine is missing.
 */
import {
  checkEveryday,
  checkFiles,
  checkHistory,
  checkLanguages,
  checkOptions,
  checkShell,
  type Findings,
} from "../test/program-tables/check-tables.ts";

const parts: readonly (readonly [string, () => Promise<Findings>])[] = [
  ["options", checkOptions],
  ["files", checkFiles],
  ["history", checkHistory],
  ["languages", checkLanguages],
  ["shell", checkShell],
  ["everyday", checkEveryday],
];

const only = process.argv.slice(2).filter((word) => !word.startsWith("-"));
let count = 0;
for (const [name, run] of parts) {
  if (only.length > 0 && !only.includes(name)) continue;
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
