import { median, printTable } from "./measure.ts";
import { startProvider } from "./provider.ts";
import { runSubject, subjectFile } from "./run-subject.ts";
import { createWorkplace } from "./workplace.ts";

const turns = 2_000;
const span = 200;
/** The first turns warm the engine up and are left out. */
const early = 100;
const limit = 1.3;
const maxGrowthMiB = 8;

/** Whether a turn of an agent that compacts costs the same after two thousand turns, in time and in memory. */
export async function benchLongRun(): Promise<boolean> {
  using place = createWorkplace();
  await using provider = await startProvider({ deltaSize: 1000 });
  const subject = {
    arguments: ["--expose-gc", subjectFile("long-run.ts"), prompt(place.project), String(early + span)],
    url: provider.url,
    // A twelfth part of the least window: some thirty turns from one compaction to the next.
    environment: { CLAUDE_CODE_AUTO_COMPACT_WINDOW: "100000", CLAUDE_AUTOCOMPACT_PCT_OVERRIDE: "12" },
  };
  const { output } = await runSubject(subject, place);
  // Written by subjects/long-run.ts in this shape.
  const run = JSON.parse(output) as LongRun;
  if (run.text !== "DONE" || run.starts.length <= turns) throw new Error(`The run ended early: ${run.text}`);
  console.log(`\n${turns} turns, ${run.compactions} compactions`);
  const results = [printTimes(run.starts), printHeaps(run.heaps)];
  return results.every(Boolean) && run.compactions >= 10;
}

interface LongRun {
  readonly text: string;
  readonly starts: readonly number[];
  readonly compactions: number;
  readonly heaps: readonly [number, number];
}

function prompt(folder: string): string {
  return `turns=${turns} counted folder=${folder}`;
}

function printTimes(starts: readonly number[]): boolean {
  const gaps = starts.slice(1).map((start, index) => start - (starts[index] ?? start));
  const mean = (list: readonly number[]): number => list.reduce((sum, gap) => sum + gap, 0) / list.length;
  const first = gaps.slice(early, early + span);
  const last = gaps.slice(-span);
  const against = `turns ${early} to ${early + span}`;
  return printTable(`One turn, the last ${span} of ${turns}`, [
    { what: "median", milliseconds: median(last), against, ratio: median(last) / median(first), limit },
    { what: "mean", milliseconds: mean(last), against, ratio: mean(last) / mean(first), limit: 1.5 },
  ]);
}

function printHeaps([first, last]: LongRun["heaps"]): boolean {
  const isGood = last - first <= maxGrowthMiB;
  console.log(
    `  heap after a compaction: ${first.toFixed(1)} MiB early, ${last.toFixed(1)} MiB at the end, at most ${maxGrowthMiB} more  ${isGood ? "ok" : "TOO MUCH"}`,
  );
  return isGood;
}
