import { median, printTable, type Row } from "./measure.ts";
import { startProvider } from "./provider.ts";
import { programFile, subjectFile, type WeighedRun, weighSubject } from "./run-subject.ts";
import { createWorkplace, type Workplace } from "./workplace.ts";

const few = 50;
const many = 200;
const rounds = 7;
/** Processor time of a turn against the bare loop. */
const limit = 1.2;
/** How much more a late turn may grow against an early one than it does in the bare loop. */
const growthLimit = 1.1;
const memoryLimit = 1.5;
/** With every plan and intent brought to the disk before it takes effect. */
const elapsedLimit = 1.3;

/** What a turn costs beyond the model's own time, against the official SDK in a bare loop: the slope from 50 to 200 turns. */
export async function benchAgentOverhead(): Promise<boolean> {
  using place = createWorkplace();
  await using provider = await startProvider({ deltaSize: 1000 });
  const measured = await measureSubjects(place, provider.url);
  const summaries: Summaries = {
    floor: summarize(measured.floor),
    bare: summarize(measured.bare),
    runtime: summarize(measured.runtime),
    program: summarize(measured.program),
  };
  const results = [
    printSlopes(`One turn, elapsed (slope from ${few} to ${many} turns)`, summaries, {
      pick: ({ wall }) => wall,
      limit: elapsedLimit,
    }),
    printSlopes("One turn, processor time", summaries, { pick: ({ cpu }) => cpu, limit }),
    printGrowth(summaries),
    printMemory(summaries),
  ];
  return results.every(Boolean);
}

type Name = "floor" | "bare" | "runtime" | "program";
type Measured = Readonly<Record<Name, Readonly<Record<"few" | "many", WeighedRun[]>>>>;

async function measureSubjects(place: Workplace, url: string): Promise<Measured> {
  const subjects: Readonly<Record<Name, readonly string[]>> = {
    floor: [subjectFile("floor-loop.mjs")],
    bare: [subjectFile("bare-loop.mjs")],
    runtime: [subjectFile("runtime-loop.ts")],
    program: [programFile, "-p", "--output-format", "json", "--model", "claude-sonnet-4-5"],
  };
  const measured: Measured = {
    floor: { few: [], many: [] },
    bare: { few: [], many: [] },
    runtime: { few: [], many: [] },
    program: { few: [], many: [] },
  };
  for (let round = -1; round < rounds; round += 1) {
    for (const [size, turns] of [
      ["few", few],
      ["many", many],
    ] as const) {
      for (const name of names) {
        const prompt = `turns=${turns} folder=${place.project}`;
        const run = await weighSubject({ arguments: [...subjects[name], prompt], url }, place);
        if (!run.output.includes("DONE")) throw new Error(`${name} did not finish: ${run.output}`);
        if (round >= 0) measured[name][size].push(run);
      }
    }
  }
  return measured;
}

type Summaries = Readonly<Record<Name, Summary>>;

interface Summary {
  readonly wall: number;
  readonly cpu: number;
  readonly early: number;
  readonly late: number;
  readonly memoryFew: number;
  readonly memoryMany: number;
}

function summarize({ few: short, many: long }: Measured[Name]): Summary {
  const slope = (pick: (run: WeighedRun) => number): number =>
    (median(long.map(pick)) - median(short.map(pick))) / (many - few);
  const gaps = long.map(gapsOf);
  return {
    wall: slope(({ wallMs }) => wallMs),
    cpu: slope(({ cpuMs }) => cpuMs),
    early: median(gaps.flatMap((list) => list.slice(20, 50))),
    late: median(gaps.flatMap((list) => list.slice(170, 200))),
    memoryFew: median(short.map(({ memoryMiB }) => memoryMiB)),
    memoryMany: median(long.map(({ memoryMiB }) => memoryMiB)),
  };
}

/** Milliseconds from the start of each turn to the start of the next, where the subject shows them. */
function gapsOf({ output }: WeighedRun): readonly number[] {
  const { starts = [] } = JSON.parse(output) as { readonly starts?: readonly number[] };
  return starts.slice(1).map((start, index) => start - (starts[index] ?? start));
}

const labels: Readonly<Record<Name, string>> = {
  floor: "plain node:http",
  bare: "bare SDK loop",
  runtime: "createRuntime",
  program: "retinue -p",
};
const names = ["floor", "bare", "runtime", "program"] as const;

function printSlopes(
  title: string,
  summaries: Summaries,
  { pick, limit: most }: { readonly pick: (summary: Summary) => number; readonly limit: number },
): boolean {
  const rows = names.map((name) => ({
    what: labels[name],
    milliseconds: pick(summaries[name]),
    against: labels.bare,
    ratio: pick(summaries[name]) / pick(summaries.bare),
    ...(name === "bare" || name === "floor" ? {} : { limit: most }),
  }));
  return printTable(title, rows);
}

/** A turn may grow only as the provider's work with a longer request does, which the bare loop shows. */
function printGrowth({ bare, runtime }: Summaries): boolean {
  const row = (what: string, { early, late }: Summary): Row => ({
    what,
    milliseconds: late,
    against: "turns 20 to 50",
    ratio: late / early,
  });
  const most = growthLimit * Math.max(1, bare.late / bare.early);
  return printTable("Turns 170 to 200", [
    row(labels.bare, bare),
    { ...row(labels.runtime, runtime), limit: most },
  ]);
}

/** Beyond the conversation itself, which the bare loop holds too, nothing may pile up. */
function printMemory(summaries: Summaries): boolean {
  const grown = ({ memoryFew, memoryMany }: Summary): number => memoryMany - memoryFew;
  console.log(`\nMemory at its highest, ${few} and ${many} turns`);
  const verdicts = names.map((name) => {
    const { memoryFew, memoryMany } = summaries[name];
    const isGood = grown(summaries[name]) <= memoryLimit * grown(summaries.bare);
    const verdict = isGood ? "ok" : "TOO MUCH";
    console.log(
      `  ${labels[name].padEnd(15)} ${memoryFew.toFixed(0)} MiB  ${memoryMany.toFixed(0)} MiB  ${verdict}`,
    );
    return isGood;
  });
  return verdicts.every(Boolean);
}
