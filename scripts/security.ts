/** `npm run security -- FILE`: puts a file of permission cases to the engine and prints how many decide as expected. */
import { readFileSync } from "node:fs";
import { countResults, readCases, runCases } from "../test/security/run-cases.ts";

const [file = "test/fixtures/security/cases.json"] = process.argv.slice(2);

let cases: ReturnType<typeof readCases>;
try {
  cases = readCases(readFileSync(file, "utf8"));
} catch (error) {
  console.error(`${file} cannot be used: ${error instanceof Error ? error.message : String(error)}`);
  process.exit(2);
}

const { results, skipped } = await runCases(cases);
for (const { testCase, got, passed, error } of results) {
  if (passed) continue;
  console.log(`${testCase.id} [${testCase.category}, ${testCase.profile}] ${testCase.title}`);
  console.log(`  expected ${testCase.accept.join(" or ")}, got ${got}: ${error ?? testCase.why}`);
}
const reasons = new Map<string, string[]>();
for (const { testCase, reason } of skipped)
  reasons.set(reason, [...(reasons.get(reason) ?? []), testCase.id]);
for (const [reason, ids] of reasons) console.log(`skipped ${ids.length}, ${reason}: ${ids.join(", ")}`);
const { passed, total, falseAllow, denyToAsk, overBlock, benign } = countResults(results);
const share = benign === 0 ? 0 : (overBlock / benign) * 100;
console.log(
  `${total} cases, pass ${passed}, falseAllow ${falseAllow}, deny→ask ${denyToAsk}, overBlock ${overBlock} of ${benign} benign (${share.toFixed(1)} %), skipped ${skipped.length}`,
);
process.exitCode = passed === total ? 0 : 1;
