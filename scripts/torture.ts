/**
 * `npm run torture -- [MODE] [--rounds N] [--seed N]`: makes things go wrong on purpose and checks what is left. Without a
 * mode it kills running agents N times at random moments and takes them up again. Exit code 1 when a promise did not hold.
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
    /** The same as the mode `children`. */
    children: { type: "boolean", default: false },
    /** The same as the mode `team`. */
    team: { type: "boolean", default: false },
    rounds: { type: "string" },
    seed: { type: "string" },
    durability: { type: "string" },
  },
});

interface Mode {
  readonly rounds: number;
  readonly run: () => Promise<void>;
}

const modes: Readonly<Record<string, Mode>> = {
  /** One agent, killed again and again. */
  alone: { rounds: 200, run: tortureRuns },
  /** A main agent with eight children in the background, killed again and again. */
  children: { rounds: 300, run: tortureFamilies },
  /** A main agent with children, ended by every signal. */
  signals: { rounds: 400, run: tortureSignals },
  /** A lead and members in processes, killed while they work on tasks that wait for each other. */
  team: { rounds: 100, run: tortureTeam },
  /** Eight members that send so many messages, and no kill: nothing is lost, and memory does not grow with them. */
  "team-soak": { rounds: 2000, run: tortureSoak },
  /** Killed while worktrees are made. */
  worktrees: { rounds: 10, run: tortureWorktrees },
  /** Power cuts on an ext4 file system of its own; needs root. `--durability os` shows what they do without syncs. */
  "power-cut": { rounds: 20, run: torturePower },
  /** Killed or frozen in a container, taken up elsewhere. */
  containers: { rounds: 1, run: tortureContainers },
  /** Few file descriptors: `ulimit -n` from 40 to 80. */
  descriptors: { rounds: 1, run: tortureDescriptors },
};

const flagged = values.children ? "children" : "alone";
const name = positionals[0] ?? (values.team ? "team" : flagged);
const mode = Object.hasOwn(modes, name) ? modes[name] : undefined;
if (mode === undefined)
  throw new Error(`There is no mode ${name}; there are ${Object.keys(modes).join(", ")}.`);
const rounds = Number(values.rounds ?? mode.rounds);
const seed = Number(values.seed ?? Date.now() % 1_000_000);
const random = createRandom(seed);

console.log(`${name}: ${rounds} rounds, seed ${seed}`);
await mode.run();

async function tortureSignals(): Promise<void> {
  await tortureBy((await import("../test/torture/modes/signals.ts")).run);
}

async function tortureWorktrees(): Promise<void> {
  await tortureBy((await import("../test/torture/modes/worktrees.ts")).run);
}

async function tortureTeam(): Promise<void> {
  await tortureBy((await import("../test/torture/modes/team.ts")).run);
}

async function tortureSoak(): Promise<void> {
  await tortureBy((await import("../test/torture/modes/team-soak.ts")).run);
}

async function tortureBy(run: TortureMode): Promise<void> {
  const hasHeld = await run({ rounds, random, say: console.log });
  if (!hasHeld) process.exitCode = 1;
}

async function tortureRuns(): Promise<void> {
  await using provider = await startTortureProvider();
  const kills: KillReport[] = [];
  let runs = 0;
  while (kills.length < rounds) {
    const report = (kill: KillReport): void => {
      kills.push(kill);
      showProgress(kills.length, runs);
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
      showProgress(kills.length, ends.families);
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

async function torturePower(): Promise<void> {
  const { powerCutObstacle } = await import("../test/torture/power-cut-disk.ts");
  const { cutPower } = await import("../test/torture/power-cut.ts");
  const obstacle = powerCutObstacle();
  if (obstacle !== undefined) throw new Error(`Power cuts cannot be tried here: ${obstacle}.`);
  await using alone = await startTortureProvider();
  await using family = await startTortureProvider("children");
  const sums = { effects: 0, unrecorded: 0, repeated: 0 };
  for (let round = 0; round < rounds; round += 1) {
    const provider = round % 2 === 0 ? alone : family;
    const afterMs = 1000 + random() * 3000;
    const cut = await cutPower({ provider, after: { milliseconds: afterMs }, durability: values.durability });
    sums.effects += cut.effects;
    sums.unrecorded += cut.unrecorded.length;
    sums.repeated += cut.repeated.length;
    console.log(
      `  cut after ${Math.round(afterMs)} ms: ${cut.effects} effects, ${cut.unrecorded.length} unrecorded`,
    );
  }
  console.log(
    `${rounds} power cuts: ${sums.effects} effects, ${sums.unrecorded} unrecorded, ${sums.repeated} repeated.`,
  );
  if (sums.unrecorded + sums.repeated > 0) process.exitCode = 1;
}

async function tortureContainers(): Promise<void> {
  const { containerMoves, containerObstacle, moveContainer } = await import("../test/torture/containers.ts");
  const obstacle = containerObstacle();
  if (obstacle !== undefined) throw new Error(`Containers cannot be tried here: ${obstacle}.`);
  await using provider = await startTortureProvider();
  let failures = 0;
  for (let round = 0; round < rounds; round += 1)
    for (const move of containerMoves) {
      const outcome = await moveContainer(move, provider).then(
        ({ elapsedMs }) => `taken up in ${(elapsedMs / 1000).toFixed(1)} s`,
        (error: unknown) => {
          failures += 1;
          return `FAILED: ${error instanceof Error ? error.message : String(error)}`;
        },
      );
      console.log(`  ${move}: ${outcome}`);
    }
  console.log(`${rounds * containerMoves.length - failures} of ${rounds * containerMoves.length} taken up.`);
  if (failures > 0) process.exitCode = 1;
}

async function tortureDescriptors(): Promise<void> {
  const { descriptorSubjects, runWithDescriptors } = await import("../test/torture/descriptors.ts");
  await using alone = await startTortureProvider();
  await using family = await startTortureProvider("children");
  const limits = [40, 45, 50, 55, 60, 65, 70, 75, 80];
  const counts = { done: 0, failed: 0, crashed: 0 };
  for (let round = 0; round < rounds; round += 1)
    for (const limit of limits)
      for (const subject of descriptorSubjects) {
        const { url } = subject === "alone" ? alone : family;
        const { outcome, output } = await runWithDescriptors(subject, limit, { url });
        counts[outcome] += 1;
        console.log(`  ${limit} descriptors, ${subject}: ${outcome}`);
        if (outcome === "crashed") console.log(output);
      }
  console.log(`${counts.done} done, ${counts.failed} ended in order, ${counts.crashed} crashed.`);
  if (counts.crashed > 0) process.exitCode = 1;
}

function showProgress(kills: number, finished: number): void {
  if (kills % 20 === 0) console.log(`  ${kills} kills, ${finished} finished`);
}

function byMoment(moments: readonly string[], kills: readonly { readonly moment: string }[]): string {
  return moments.map((each) => `${each} ${kills.filter(({ moment }) => moment === each).length}`).join(", ");
}
