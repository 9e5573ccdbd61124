import { expect, test } from "vitest";
import { createRandom } from "../torture/random.ts";
import { startTortureProvider } from "../torture/torture-provider.ts";
import { type KillReport, torturedRun } from "../torture/tortured-run.ts";

test("[TRN-3] a run that is killed again and again loads, goes on, and repeats no finished call", async () => {
  await using provider = await startTortureProvider();
  const kills: KillReport[] = [];
  await torturedRun({
    provider,
    random: createRandom(7),
    mayKill: () => kills.length < 8,
    report: (kill) => kills.push(kill),
  });
  expect(kills).toHaveLength(8);
  expect(kills.at(-1)?.lines).toBeGreaterThan(0);
}, 60_000);
