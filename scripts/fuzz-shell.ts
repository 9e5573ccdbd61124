import { parseArgs } from "node:util";
import { comparePrograms } from "../test/fuzz-shell/compare.ts";
import { openLaboratory } from "../test/fuzz-shell/run-program.ts";
import { generateProgram, generateWords } from "../test/fuzz-shell/shell-program.ts";

const { values } = parseArgs({
  options: {
    count: { type: "string", default: "2000" },
    seed: { type: "string", default: "1" },
    words: { type: "boolean", default: false },
  },
});
const count = Number(values.count);
const seed = Number(values.seed);
if (!Number.isInteger(count) || count < 1 || !Number.isInteger(seed)) {
  console.error("Usage: npm run fuzz:shell -- [--words] --count 2000 --seed 1");
  process.exit(2);
}

const laboratory = await openLaboratory();
try {
  const generate = values.words ? generateWords : generateProgram;
  const { programs, opaque, started, misses } = await comparePrograms(laboratory, {
    first: seed,
    count,
    generate,
  });
  for (const { seed: at, program, judged, reason } of misses) {
    console.log(`seed ${at}: ${reason}\n--- as written\n${program}\n--- as judged\n${judged}\n`);
  }
  console.log(
    `${programs} programs, ${opaque} opaque, ${started} commands started, ${misses.length} with differences`,
  );
  process.exitCode = misses.length === 0 ? 0 : 1;
} finally {
  await laboratory.close();
}
