import { expect, test } from "vitest";
import { childCount } from "../torture/children-script.ts";
import { createRandom } from "../torture/random.ts";
import { startTortureProvider } from "../torture/torture-provider.ts";
import { type FamilyKill, type FamilyMoment, torturedFamily } from "../torture/tortured-family.ts";
import { type KillMoment, type KillReport, torturedRun } from "../torture/tortured-run.ts";
import { type StormKill, torturedStorm } from "../torture/tortured-storm.ts";

test("[TRN-2, TRN-3] runs that are killed again and again load, continue, and repeat no finished call", async () => {
  await using provider = await startTortureProvider();
  const random = createRandom(7);
  const kills: KillReport[] = [];
  const moments: readonly KillMoment[] = ["tool", "stream", "transcript"];
  while (kills.length < moments.length) {
    await torturedRun({
      provider,
      random,
      mayKill: () => kills.length < moments.length,
      nextMoment: () => moments[kills.length],
      report: (kill) => kills.push(kill),
    });
  }
  expect(kills.some(({ done }) => done.size > 0)).toBe(true);
}, 60_000);

test("[TRN-4, HKS-8] children that are killed with their parent again and again all finish, and do nothing twice", async () => {
  await using provider = await startTortureProvider("children");
  const kills: FamilyKill[] = [];
  const moments: readonly FamilyMoment[] = ["hook", "recovery"];
  const { starts } = await torturedFamily({
    provider,
    random: createRandom(11),
    mayKill: () => kills.length < moments.length,
    nextMoment: () => moments[kills.length],
    report: (kill) => kills.push(kill),
  });
  expect(starts).toBeGreaterThanOrEqual(childCount);
}, 120_000);

test.skipIf(process.platform !== "linux")(
  "[TRN-4, CLI-6] children that any signal stops with their parent are resumed, never started anew, and leave no process",
  async () => {
    await using provider = await startTortureProvider("storm");
    const kills: StormKill[] = [];
    const end = await torturedStorm({
      provider,
      random: createRandom(3),
      resumesByItself: false,
      mayKill: () => kills.length < 2,
      report: (kill) => kills.push(kill),
    });
    expect(end).toEqual({ restarted: 0, doubled: 0, lost: 0, left: 0, unknownTasks: 0 });
    expect(kills.flatMap(({ flaws }) => flaws)).toEqual([]);
  },
  120_000,
);
