/**
 * `npm run torture -- [MODE] [--children] [--rounds N] [--seed N]`: kills running agents N times at random moments, takes them
 * up again, and checks what is left. With `--children` it is a main agent with eight children in the background. Modes are
 * the files in test/torture/modes; they end with exit code 1 when a promise did not hold.
 */
import { parseArgs } from "node:util";
import type { TortureMode } from "../test/torture/modes/torture-mode.ts";
import { createRandom } from "../test/torture/random.ts";
import { startTortureProvider } from "../test/torture/torture-provider.ts";
import { type FamilyKill, familyMoments, torturedFamily } from "../test/torture/tortured-family.ts";
import { type KillReport, killMoments, torturedRun } from "../test/torture/tortured-run.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    children: { type: "boolean", default: false },
    rounds: { type: "string" },
    seed: { type: "string" },
  },
});
const rounds = Number(values.rounds ?? (values.children ? 300 : 200));
const seed = Number(values.seed ?? Date.now() % 1_000_000);
const random = createRandom(seed);

const [mode] = positionals;
if (mode !== undefined) await tortureBy(mode);
else {
  console.log(`${rounds} kills, seed ${seed}`);
  await (values.children ? tortureFamilies() : tortureRuns());
}

async function tortureBy(name: string): Promise<void> {
  // Here, because this is called before what stands below it is made.
  const modes: ReadonlyMap<string, () => Promise<{ readonly run: TortureMode }>> = new Map([
    ["signals", () => import("../test/torture/modes/signals.ts")],
    ["worktrees", () => import("../test/torture/modes/worktrees.ts")],
  ]);
  const load = modes.get(name);
  if (load === undefined)
    throw new Error(`There is no mode ${JSON.stringify(name)}; there are ${[...modes.keys()].join(", ")}.`);
  console.log(`${name}, seed ${seed}`);
  const { run } = await load();
  const given = values.rounds === undefined ? {} : { rounds: Number(values.rounds) };
  const hasHeld = await run({ ...given, random, say: console.log });
  if (!hasHeld) process.exitCode = 1;
}

async function tortureRuns(): Promise<void> {
  await using provider = await startTortureProvider();
  const kills: KillReport[] = [];
  let runs = 0;
  while (kills.length < rounds) {
    const report = (kill: KillReport): void => {
      kills.push(kill);
      report(kills.length, runs);
    };
    await torturedRun({ provider, random, mayKill: () => kills.length < rounds, report });
    runs += 1;
  }
  const cutOff = kills.filter((kill) => kill.cutOff > 0).length;
  const torn = kills.filter((kill) => kill.torn).length;
  console.log(`Kills by moment: ${byMoment(killMoments, kills)}.`);
  console.log(`${cutOff} cut calls off, ${torn} left a torn line. All ${runs} runs finished whole.`);
}

async function tortureFamilies(): Promise<void> {
  await using provider = await startTortureProvider("children");
  const kills: FamilyKill[] = [];
  const ends = { families: 0, starts: 0, unheard: 0, interrupted: 0 };
  while (kills.length < rounds) {
    let interrupted = 0;
    const report = (kill: FamilyKill): void => {
      kills.push(kill);
      interrupted = kill.interrupted;
      report(kills.length, ends.families);
    };
    const end = await torturedFamily({ provider, random, mayKill: () => kills.length < rounds, report });
    ends.families += 1;
    ends.starts += end.starts;
    ends.unheard += end.unheard;
    ends.interrupted += interrupted;
  }
  const torn = kills.filter((kill) => kill.isTorn).length;
  console.log(`Kills by moment: ${byMoment(familyMoments, kills)}.`);
  console.log(`${ends.interrupted} calls were reported as interrupted, ${torn} kills left a torn line.`);
  console.log(
    `${ends.starts} starts, each with one stop; ${ends.unheard} marks were cut off from their hook.`,
  );
  console.log(`All ${ends.families} families of eight finished whole.`);
}

function report(kills: number, finished: number): void {
  if (kills % 20 === 0) console.log(`  ${kills} kills, ${finished} finished`);
}

function byMoment(moments: readonly string[], kills: readonly { readonly moment: string }[]): string {
  return moments.map((each) => `${each} ${kills.filter(({ moment }) => moment === each).length}`).join(", ");
}
