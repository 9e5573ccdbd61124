/** `npm run corpus -- MANIFEST`: reads every file of a corpus manifest and prints how many match their expectation. */
import { readFileSync } from "node:fs";
import { runCorpus } from "../test/corpus/run-corpus.ts";

const [manifestFile = "test/fixtures/corpus/manifest.json", ...options] = process.argv.slice(2);
const verbose = options.includes("--verbose");

let report: ReturnType<typeof runCorpus>;
try {
  report = runCorpus(manifestFile, (file) => readFileSync(file, "utf8"));
} catch (error) {
  console.error(
    `${manifestFile} cannot be used as a manifest: ${error instanceof Error ? error.message : String(error)}`,
  );
  process.exit(2);
}

for (const result of report.results) {
  if (result.mismatches.length === 0) continue;
  console.log(`${result.entry.kind} ${result.entry.file}`);
  for (const { field, expected, actual } of result.mismatches) {
    console.log(`  ${field}: expected ${JSON.stringify(expected)}, read ${JSON.stringify(actual)}`);
  }
}
for (const [kind, { matching, total }] of report.kinds) {
  const share = total === 0 ? 100 : (matching / total) * 100;
  console.log(`${kind.padEnd(12)} ${matching} of ${total} match (${share.toFixed(2)} %)`);
}
for (const [kind, count] of report.skipped)
  console.log(`${kind.padEnd(12)} ${count} not compared: not built yet`);
if (verbose) console.log(`${report.results.length} files read`);
console.log(`${report.matching} of ${report.results.length} match`);
process.exitCode = report.matching === report.results.length ? 0 : 1;
