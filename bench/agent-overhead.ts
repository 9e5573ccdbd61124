import { median, printTable, type Row } from "./measure.ts";
import { startProvider } from "./provider.ts";
import { programFile, subjectFile, type WeighedRun, weighSubject } from "./run-subject.ts";
import { createWorkplace, type Workplace } from "./workplace.ts";

const few = 50;
const many = 200;
const rounds = 7;
const limit = 1.5;

/** What a turn costs beyond the model's own time, against the official SDK in a bare loop: the slope from 50 to 200 turns. */
export async function benchAgentOverhead(): Promise<boolean> {
  using place = createWorkplace();
  await using provider = await startProvider({ deltaSize: 1000 });
  const measured = await measureSubjects(place, provider.url);
  const bare = summarize(measured.bare);
  const runtime = summarize(measured.runtime);
  const program = summarize(measured.program);
  const against = "bare SDK loop";
  const rows = (pick: (summary: Summary) => number, most?: number): readonly Row[] =>
    [
      { what: against, summary: bare },
      { what: "createRuntime", summary: runtime, ...(most === undefined ? {} : { limit: most }) },
      { what: "retinue -p", summary: program, ...(most === undefined ? {} : { limit: most }) },
    ].map(({ summary, ...row }) => ({
      ...row,
      milliseconds: pick(summary),
      against,
      ratio: pick(summary) / pick(bare),
    }));
  const results = [
    printTable(
      `One turn, elapsed (slope from ${few} to ${many} turns)`,
      rows(({ wall }) => wall, limit),
    ),
    printTable(
      "One turn, processor time",
      rows(({ cpu }) => cpu, limit),
    ),
    printGaps(bare, runtime),
    printMemory({ [against]: bare, createRuntime: runtime, "retinue -p": program }),
  ];
  return results.every(Boolean);
}

type Name = "bare" | "runtime" | "program";
type Measured = Readonly<Record<Name, Readonly<Record<"few" | "many", WeighedRun[]>>>>;

async function measureSubjects(place: Workplace, url: string): Promise<Measured> {
  const subjects: Readonly<Record<Name, readonly string[]>> = {
    bare: [subjectFile("bare-loop.mjs")],
    runtime: [subjectFile("runtime-loop.ts")],
    program: [programFile, "-p", "--output-format", "json", "--model", "claude-sonnet-4-5"],
  };
  const measured: Measured = {
    bare: { few: [], many: [] },
    runtime: { few: [], many: [] },
    program: { few: [], many: [] },
  };
  for (let round = -1; round < rounds; round += 1) {
    for (const [size, turns] of [
      ["few", few],
      ["many", many],
    ] as const) {
      for (const name of ["bare", "runtime", "program"] as const) {
        const prompt = `turns=${turns} folder=${place.project}`;
        const run = await weighSubject({ arguments: [...subjects[name], prompt], url }, place);
        if (!run.output.includes("DONE")) throw new Error(`${name} did not finish: ${run.output}`);
        if (round >= 0) measured[name][size].push(run);
      }
    }
  }
  return measured;
}

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

/** Milliseconds from the start of each turn to the start of the next, where the subject tells them. */
function gapsOf({ output }: WeighedRun): readonly number[] {
  const { starts = [] } = JSON.parse(output) as { readonly starts?: readonly number[] };
  return starts.slice(1).map((start, index) => start - (starts[index] ?? start));
}

/** A turn may grow only as the request does, which the bare loop shows. */
function printGaps(bare: Summary, runtime: Summary): boolean {
  const against = "turns 20 to 50";
  const row = (what: string, { early, late }: Summary, most?: number): Row => ({
    what,
    milliseconds: late,
    against,
    ratio: late / early,
    ...(most === undefined ? {} : { limit: most }),
  });
  return printTable("Turns 170 to 200", [
    row("bare SDK loop", bare),
    row("createRuntime", runtime, Math.max(limit, (1.25 * bare.late) / bare.early)),
  ]);
}

function printMemory(summaries: Readonly<Record<string, Summary>>): boolean {
  console.log(`\nMemory at its highest, ${few} and ${many} turns`);
  for (const [what, { memoryFew, memoryMany }] of Object.entries(summaries)) {
    console.log(`  ${what.padEnd(15)} ${memoryFew.toFixed(0)} MiB  ${memoryMany.toFixed(0)} MiB`);
  }
  return true;
}
