import { parseArgs } from "node:util";
import { comparePrograms } from "../test/fuzz-shell/compare.ts";
import { openLongJudge } from "../test/fuzz-shell/judge-long.ts";
import { generateLong } from "../test/fuzz-shell/long-command.ts";
import { openLaboratory } from "../test/fuzz-shell/run-program.ts";
import { generateProgram, generateWords } from "../test/fuzz-shell/shell-program.ts";

const { values } = parseArgs({
  options: {
    count: { type: "string", default: "2000" },
    seed: { type: "string", default: "1" },
    words: { type: "boolean", default: false },
    long: { type: "boolean", default: false },
  },
});
const count = Number(values.count);
const seed = Number(values.seed);
if (!Number.isInteger(count) || count < 1 || !Number.isInteger(seed)) {
  console.error("Usage: npm run fuzz:shell -- [--words | --long] --count 2000 --seed 1");
  process.exit(2);
}

/** How long the worst of many long commands takes to judge. */
async function judgeLong(): Promise<number> {
  using judge = openLongJudge();
  const all: {
    readonly cpuMs: number;
    readonly seed: number;
    readonly kind: string;
    readonly policy: string;
  }[] = [];
  for (let at = seed; at < seed + count; at += 1) {
    const { kind, command } = generateLong(at);
    const policy = judge.policies[at % judge.policies.length] ?? "none";
    const { cpuMs } = await judge.judge({ tool: "Bash", effect: "execute", input: { command } }, policy);
    all.push({ cpuMs, seed: at, kind, policy });
  }
  all.sort((a, b) => b.cpuMs - a.cpuMs);
  for (const { cpuMs, seed: at, kind, policy } of all.slice(0, 10))
    console.log(`${cpuMs.toFixed(0)} ms, seed ${at}, rules ${policy}: ${kind}`);
  const [worst] = all;
  console.log(`${count} commands, the worst took ${worst?.cpuMs.toFixed(0)} ms`);
  return worst !== undefined && worst.cpuMs > 500 ? 1 : 0;
}

if (values.long) process.exit(await judgeLong());

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
