import { setTimeout as wait } from "node:timers/promises";
import { fullTeam } from "../team-script.ts";
import { startTortureProvider } from "../torture-provider.ts";
import { type TeamVictim, torturedTeam } from "../tortured-team.ts";
import type { TortureMode } from "./torture-mode.ts";

/** The part of the kills that hit the lead, which takes its members along. */
const leadShare = 0.25;

/**
 * A lead and four members in processes, 40 tasks that wait for each other, and random kill -9 of members and of the lead, which
 * is continued. At the end every task is completed once, and every message was delivered once and in order.
 */
export const run: TortureMode = async ({ rounds = 100, random, say }) => {
  await using provider = await startTortureProvider("team");
  const kills: TeamVictim[] = [];
  let [teams, delivered] = [0, 0];
  const nextKill = async (signal: AbortSignal): Promise<TeamVictim> => {
    if (kills.length >= rounds) return "nothing";
    const isByTime = random() < 0.5;
    const reached = isByTime ? wait(200 + random() * 1800) : provider.nextAnswer(Math.floor(random() * 40));
    const over = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
    await Promise.race([reached, over]);
    await wait(random() * 12);
    return random() < leadShare ? "lead" : Math.floor(random() * fullTeam.members);
  };
  while (kills.length < rounds) {
    const onKill = (victim: TeamVictim): void => {
      kills.push(victim);
      if (kills.length % 10 === 0) say(`  ${kills.length} kills, ${teams} teams finished`);
    };
    try {
      const count = await torturedTeam({ provider, size: fullTeam, nextKill, onKill });
      delivered += count.delivered;
      teams += 1;
    } catch (error) {
      say(`FAILED: ${error instanceof Error ? error.message : error}`);
      return false;
    }
  }
  const leads = kills.filter((victim) => victim === "lead").length;
  say(
    `${kills.length} kills, ${leads} of them of the lead. ${teams} teams finished whole: all tasks completed`,
  );
  say(`once, ${delivered} messages delivered once and in order.`);
  return true;
};
