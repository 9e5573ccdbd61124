import { median } from "./measure.ts";
import { startProvider } from "./provider.ts";
import { programFile, subjectFile, type WeighedRun, weighSubject } from "./run-subject.ts";
import { createWorkplace, type Workplace } from "./workplace.ts";

const sizes = [
  { children: 1, turns: 5, limit: 1.5 },
  { children: 10, turns: 20, limit: 1.5 },
  // Four files for each child (transcript, meta, output, lock) count most where children are short and many.
  { children: 100, turns: 5, limit: 1.9 },
] as const;
const rounds = 5;

/**
 * Child agents that run at the same time, against a bare loop on the official SDK that makes the same requests; the same loop on plain
 * `node:http` shows the least that the job can cost.
 */
export async function benchSubagents(): Promise<boolean> {
  using place = createWorkplace();
  await using provider = await startProvider({ deltaSize: 1000 });
  const runs = sizes.map((size) => ({
    size,
    bare: [] as WeighedRun[],
    floor: [] as WeighedRun[],
    program: [] as WeighedRun[],
  }));
  for (let round = -1; round < rounds; round += 1) {
    for (const { size, bare, floor, program } of runs) {
      const ofFloor = await weigh(size, [subjectFile("floor-loop.mjs")], { place, url: provider.url });
      const ofBare = await weigh(size, [subjectFile("bare-loop.mjs")], { place, url: provider.url });
      const ofProgram = await weigh(size, programArguments, { place, url: provider.url });
      if (round < 0) continue;
      floor.push(ofFloor);
      bare.push(ofBare);
      program.push(ofProgram);
    }
  }
  console.log("\nChild agents at the same time, retinue -p and (in brackets) the bare SDK loop");
  const results = runs.map(({ size, bare, program }) => printSize(size, bare, program));
  console.log("  The same against the loop on plain node:http");
  for (const { size, floor, program } of runs) printSize({ ...size, limit: undefined }, floor, program);
  printPerChild(runs.map(({ program }) => memoryOf(program)));
  return results.every(Boolean);
}

interface Size {
  readonly children: number;
  readonly turns: number;
  /** The most the ratios may be; absent where they only inform. */
  readonly limit?: number | undefined;
}

const programArguments = [
  programFile,
  "-p",
  "--dangerously-skip-permissions",
  "--model",
  "claude-sonnet-4-5",
];

async function weigh(
  { children, turns }: Size,
  command: readonly string[],
  { place, url }: { readonly place: Workplace; readonly url: string },
): Promise<WeighedRun> {
  const prompt = `children=${children} turns=${turns} folder=${place.project}`;
  const environment = { CLAUDE_CODE_MAX_CONCURRENT_SUBAGENTS: String(Math.max(10, children)) };
  const run = await weighSubject({ arguments: [...command, prompt], url, environment }, place);
  if (!run.output.includes("DONE")) throw new Error(`${command.join(" ")} did not finish: ${run.output}`);
  return run;
}

function printSize(
  { children, turns, limit }: Size,
  bare: readonly WeighedRun[],
  program: readonly WeighedRun[],
): boolean {
  const columns = [
    { what: "elapsed", unit: "ms", pick: ({ wallMs }: WeighedRun) => wallMs },
    { what: "processor", unit: "ms", pick: ({ cpuMs }: WeighedRun) => cpuMs },
    { what: "memory", unit: "MiB", pick: ({ memoryMiB }: WeighedRun) => memoryMiB },
  ].map(({ what, unit, pick }) => {
    const ours = median(program.map(pick));
    const theirs = median(bare.map(pick));
    const text = `${what} ${ours.toFixed(0)} (${theirs.toFixed(0)}) ${unit}, ${(ours / theirs).toFixed(2)} x`;
    return { text, isGood: limit === undefined || ours / theirs <= limit };
  });
  const isGood = columns.every((column) => column.isGood);
  const verdict = limit === undefined ? "" : `  limit ${limit.toFixed(1)}  ${isGood ? "ok" : "TOO MUCH"}`;
  console.log(
    `  ${`${children} x ${turns} turns`.padEnd(15)} ${columns.map(({ text }) => text).join("; ")}${verdict}`,
  );
  return isGood;
}

function printPerChild([one = 0, , hundred = 0]: readonly number[]): void {
  console.log(`  one child more, from 1 to 100: ${((hundred - one) / 99).toFixed(2)} MiB`);
}

function memoryOf(runs: readonly WeighedRun[]): number {
  return median(runs.map(({ memoryMiB }) => memoryMiB));
}
