import { parseArgs } from "node:util";
import { comparePrograms } from "../test/fuzz-shell/compare.ts";
import { openLaboratory } from "../test/fuzz-shell/run-program.ts";

const { values } = parseArgs({
  options: { count: { type: "string", default: "2000" }, seed: { type: "string", default: "1" } },
});
const count = Number(values.count);
const seed = Number(values.seed);
if (!Number.isInteger(count) || count < 1 || !Number.isInteger(seed)) {
  console.error("Usage: npm run fuzz:shell -- --count 2000 --seed 1");
  process.exit(2);
}

const laboratory = await openLaboratory();
try {
  const { programs, opaque, started, misses } = await comparePrograms(laboratory, seed, count);
  for (const { seed: at, program, unseen } of misses) {
    console.log(`seed ${at}: bash started ${unseen.join(", ")} unseen in\n${program}\n`);
  }
  console.log(
    `${programs} programs, ${opaque} opaque, ${started} commands started, ${misses.length} with unseen commands`,
  );
  process.exitCode = misses.length === 0 ? 0 : 1;
} finally {
  await laboratory.close();
}
