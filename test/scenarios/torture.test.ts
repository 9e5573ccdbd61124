import { expect, test } from "vitest";
import { createRandom } from "../torture/random.ts";
import { startTortureProvider } from "../torture/torture-provider.ts";
import { type FamilyKill, torturedFamily } from "../torture/tortured-family.ts";
import { type KillReport, torturedRun } from "../torture/tortured-run.ts";

test("[TRN-2, TRN-3] runs that are killed again and again load, go on, and repeat no finished call", async () => {
  await using provider = await startTortureProvider();
  const random = createRandom(7);
  const kills: KillReport[] = [];
  while (kills.length < 8) {
    await torturedRun({
      provider,
      random,
      mayKill: () => kills.length < 8,
      report: (kill) => kills.push(kill),
    });
  }
  expect(kills.some(({ done }) => done.size > 0)).toBe(true);
}, 60_000);

test("[TRN-4, HKS-8] eight children that are killed with their parent again and again all finish, and do nothing twice", async () => {
  await using provider = await startTortureProvider("children");
  const kills: FamilyKill[] = [];
  const { starts } = await torturedFamily({
    provider,
    random: createRandom(11),
    mayKill: () => kills.length < 5,
    report: (kill) => kills.push(kill),
  });
  expect(starts).toBeGreaterThanOrEqual(8);
}, 120_000);
