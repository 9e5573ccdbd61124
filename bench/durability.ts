import { rmSync } from "node:fs";
import { join } from "node:path";
import { median, printTable } from "./measure.ts";
import { startProvider } from "./provider.ts";
import { programFile, runSubject, subjectFile } from "./run-subject.ts";
import { createWorkplace } from "./workplace.ts";

const few = 20;
const many = 100;
const rounds = 5;
/** What syncing may add to a turn that changes something; turns that only look are not synced. */
const limit = 1.3;

/** A turn that writes a file, with its intent brought to the disk first and without: the slope from 20 to 100 turns. */
export async function benchDurability(): Promise<boolean> {
  using place = createWorkplace();
  await using provider = await startProvider({ deltaSize: 1000 });
  const program = [programFile, "-p", "--output-format", "json", "--model", "claude-sonnet-4-5"];
  const withDurability = (durability: string): readonly string[] => [
    ...program,
    "--dangerously-skip-permissions",
    "--settings",
    JSON.stringify({ durability }),
  ];
  const subjects = {
    bare: [subjectFile("bare-loop.mjs")],
    os: withDurability("os"),
    sync: withDurability("sync"),
  };
  const names = ["bare", "os", "sync"] as const;
  const times = new Map(names.map((name) => [name, { few: [] as number[], many: [] as number[] }]));
  for (let round = -1; round < rounds; round += 1)
    for (const [size, turns] of [
      ["few", few],
      ["many", many],
    ] as const)
      for (const name of names) {
        rmSync(join(place.project, "written"), { recursive: true, force: true });
        const prompt = `turns=${turns} writes folder=${place.project}`;
        const run = await runSubject({ arguments: [...subjects[name], prompt], url: provider.url }, place);
        if (!run.output.includes("DONE")) throw new Error(`${name} did not finish: ${run.output}`);
        if (round >= 0) times.get(name)?.[size].push(run.wallMs);
      }
  const slope = (name: (typeof names)[number]): number => {
    const own = times.get(name);
    return (median(own?.many ?? []) - median(own?.few ?? [])) / (many - few);
  };
  const row = (what: string, name: (typeof names)[number], more: { readonly limit?: number } = {}) => ({
    what,
    milliseconds: slope(name),
    against: "durability os",
    ratio: slope(name) / slope("os"),
    ...more,
  });
  return printTable(`One turn that writes a file (slope from ${few} to ${many} turns)`, [
    row("bare SDK loop, which syncs nothing", "bare"),
    row("retinue -p, durability os", "os"),
    row("retinue -p, durability sync", "sync", { limit }),
  ]);
}
