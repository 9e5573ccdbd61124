import { startTortureProvider } from "../torture-provider.ts";
import { type StormEnd, type StormKill, stormSignals, torturedStorm } from "../tortured-storm.ts";
import type { TortureMode } from "./torture-mode.ts";

/** `npm run torture -- signals`: stops a main agent with eight children by every signal, and resumes it. */
export const run: TortureMode = async ({ rounds = 400, random, say }) => {
  await using provider = await startTortureProvider("storm");
  const kills: StormKill[] = [];
  const sums = { restarted: 0, doubled: 0, lost: 0, left: 0, unknownTasks: 0 };
  let families = 0;
  while (kills.length < rounds) {
    const end: StormEnd = await torturedStorm({
      provider,
      random,
      resumesByItself: families % 2 === 1,
      mayKill: () => kills.length < rounds,
      report(kill) {
        kills.push(kill);
        for (const flaw of kill.flaws) say(`  ${kill.signal}: ${flaw}`);
        if (kills.length % 20 === 0) say(`  ${kills.length} kills, ${families} families finished`);
      },
    });
    families += 1;
    for (const name of Object.keys(sums) as (keyof StormEnd)[]) sums[name] += end[name];
  }
  for (const signal of stormSignals) {
    const own = kills.filter((kill) => kill.signal === signal);
    const slowest = Math.round(Math.max(0, ...own.map(({ tookMs }) => tookMs)));
    const leftAtEnd = own.reduce((sum, kill) => sum + kill.leftAtEnd, 0);
    say(
      `${signal}: ${own.length} times, the slowest end took ${slowest} ms, ${leftAtEnd} commands lived on.`,
    );
  }
  const flaws = kills.reduce((sum, kill) => sum + kill.flaws.length, 0);
  say(
    `${families} families: ${sums.lost} lost, ${sums.doubled} doubled, ${sums.restarted} restarted, ${sums.left} processes left after resuming, ${sums.unknownTasks} tasks unknown, ${flaws} other flaws.`,
  );
  return Object.values(sums).every((count) => count === 0) && flaws === 0;
};
