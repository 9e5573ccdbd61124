/** `npm run torture -- [--rounds N] [--seed N]`: kills running agents N times at random moments and checks what is left. */
import { parseArgs } from "node:util";
import { createRandom } from "../test/torture/random.ts";
import { startTortureProvider } from "../test/torture/torture-provider.ts";
import { type KillReport, killMoments, torturedRun } from "../test/torture/tortured-run.ts";

const { values } = parseArgs({
  options: { rounds: { type: "string", default: "200" }, seed: { type: "string" } },
});
const rounds = Number(values.rounds);
const seed = Number(values.seed ?? Date.now() % 1_000_000);
const random = createRandom(seed);
const kills: KillReport[] = [];
let runs = 0;

console.log(`${rounds} kills, seed ${seed}`);
await using provider = await startTortureProvider();
while (kills.length < rounds) {
  await torturedRun({
    provider,
    random,
    mayKill: () => kills.length < rounds,
    report(kill) {
      kills.push(kill);
      if (kills.length % 20 === 0) console.log(`  ${kills.length} kills, ${runs} runs finished`);
    },
  });
  runs += 1;
}
const byMoment = killMoments.map(
  (moment) => `${moment} ${kills.filter((kill) => kill.moment === moment).length}`,
);
const cutOff = kills.filter((kill) => kill.cutOff > 0).length;
const torn = kills.filter((kill) => kill.torn).length;
console.log(`Kills by moment: ${byMoment.join(", ")}.`);
console.log(`${cutOff} cut calls off, ${torn} left a torn line. All ${runs} runs finished whole.`);
