import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { openFileStore } from "@retinue/cluster/files/open-file-store.ts";
import { createSharedBudget } from "@retinue/cluster/limits/shared-budget.ts";
import { openSharedCoolDowns, type SharedCoolDowns } from "@retinue/cluster/limits/shared-cool-downs.ts";
import { withSharedLimits } from "@retinue/cluster/limits/with-shared-limits.ts";
import { openPostgresStore } from "@retinue/cluster/postgres/open-postgres-store.ts";
import type { Store } from "@retinue/cluster/store.ts";
import type { Model } from "@retinue/core/models/model.ts";
import { becomes } from "@retinue/testing/becomes.ts";
import { createScriptedModel } from "@retinue/testing/scripted-model.ts";
import { describe, expect, inject, onTestFinished, test } from "vitest";
import { createTestDatabase } from "./test-database.ts";

const postgres = inject("postgres");
const { signal } = new AbortController();

describe("limits in a file store", () => {
  describeLimits(async (count) => {
    const folder = await mkdtemp(join(tmpdir(), "limits-"));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const store = await openFileStore(folder);
    return Array.from({ length: count }, () => store);
  });
});

describe.skipIf(postgres.missing !== "")(`limits in PostgreSQL${postgres.missing}`, async () => {
  if (postgres.missing !== "") return;
  const { url, empty } = await createTestDatabase(postgres, "limits");
  describeLimits(async (count) => {
    await empty();
    return Promise.all(Array.from({ length: count }, () => openPostgresStore({ url })));
  });
});

/** Each store is a worker. */
function describeLimits(open: (count: number) => Promise<readonly Store[]>): void {
  const within = async (count: number, use: (stores: readonly Store[]) => Promise<void>): Promise<void> => {
    const stores = await open(count);
    try {
      await use(stores);
    } finally {
      await Promise.all(stores.map((store) => store.close()));
    }
  };

  test("50 agents on 3 workers never spend more than the ceiling, and nearly all of it [CLU-5]", () =>
    within(3, async (stores) => {
      const budgets = stores.map((store) => createSharedBudget(store, "tree", 0.6));
      let spent = 0;
      const agents = Array.from({ length: 50 }, async (_, number) => {
        const budget = budgets[number % 3];
        for (let call = 0; call < 2; call += 1) {
          const hold = await budget?.reserve({ least: 0.005, most: 0.02, agent: `a${number}` }, { signal });
          if (hold === undefined) return "refused";
          await pause(number % 4);
          const cost = hold.usd * (0.6 + (number % 5) / 10);
          spent += cost;
          await hold.settle(cost);
        }
        return "done";
      });
      const outcomes = await Promise.all(agents);
      expect(spent).toBeLessThanOrEqual(0.6 + 1e-9);
      expect(spent).toBeGreaterThan(0.57);
      expect(outcomes).toContain("refused");
      const state = await budgets[1]?.state();
      expect(state?.held).toBe(0);
      expect(state?.spent).toBeCloseTo(spent, 3);
    }));

  test("what a dead worker held counts as spent, once [CLU-5]", () =>
    within(2, async ([first, second]) => {
      const before = createSharedBudget(first as Store, "tree", 1);
      await before.reserve({ least: 0.1, most: 0.7, agent: "a" }, { signal });
      const after = createSharedBudget(second as Store, "tree", 1);
      await after.chargeAbandoned("a");
      await after.chargeAbandoned("a");
      expect(await after.state()).toEqual({ limit: 1, spent: 0.7, held: 0 });
      expect(await after.reserve({ least: 0.4, most: 0.4, agent: "a" }, { signal })).toBeUndefined();
      expect((await after.reserve({ least: 0.1, most: 0.4, agent: "a" }, { signal }))?.usd).toBeCloseTo(0.3);
    }));

  test("a call waits for what another worker gives back [CLU-5]", () =>
    within(2, async ([first, second]) => {
      const one = createSharedBudget(first as Store, "tree", 1);
      const other = createSharedBudget(second as Store, "tree", 1);
      const hold = await one.reserve({ least: 1, most: 1, agent: "a" }, { signal });
      const waiting = other.reserve({ least: 0.5, most: 0.5, agent: "b" }, { signal });
      await pause(20);
      await hold?.settle(0.2);
      expect((await waiting)?.usd).toBe(0.5);
      const stopped = AbortSignal.timeout(20);
      await expect(
        other.reserve({ least: 0.5, most: 0.5, agent: "c" }, { signal: stopped }),
      ).rejects.toThrow();
    }));

  test("a model call pays what it took, and is refused with the numbers when nothing is left [CLU-5]", () =>
    within(1, async ([store]) => {
      const price = { input: 1_000, output: 1_000, cacheRead: 0, cacheWrite: 1_000 };
      const usage = { inputTokens: 100, outputTokens: 400, cacheReadTokens: 0, cacheWriteTokens: 0 };
      const facts = { maxOutputTokens: 1_000, price };
      const scripted = createScriptedModel([{ text: "yes", usage, times: "any" }], { facts });
      const coolDowns = await openSharedCoolDowns(store as Store, () => undefined);
      const budget = createSharedBudget(store as Store, "tree", 2.1);
      const model = withSharedLimits(scripted, { agent: "a", budget, coolDowns });
      await ask(model);
      const { spent, held } = await budget.state();
      expect({ spent, held }).toEqual({ spent: 0.5, held: 0 });
      await ask(model);
      await ask(model);
      await expect(ask(model)).rejects.toThrow(
        "0.6000 of 2.1 US dollars of the whole tree left, over all workers",
      );
      expect(scripted.requests).toHaveLength(3);
    }));

  test("a provider that refuses one worker is left alone by all, also by one that starts later [CLU-5]", () =>
    within(3, async ([first, second, third]) => {
      const ignore = (): void => undefined;
      const one = await openSharedCoolDowns(first as Store, ignore);
      const two = await openSharedCoolDowns(second as Store, ignore);
      const isHeld = async (by: SharedCoolDowns): Promise<boolean> => {
        const ending = new AbortController();
        const free = by.wait("anthropic", "m", ending.signal).then(
          () => false,
          () => true,
        );
        const held = await Promise.race([free, pause(5, true)]);
        ending.abort();
        return held;
      };
      one.refused("anthropic", "m", 3_600_000);
      await becomes(() => isHeld(two));
      await becomes(async () => (await (first as Store).log.read("cool-downs")).length > 0);
      const late = await openSharedCoolDowns(third as Store, ignore);
      expect(await isHeld(late)).toBe(true);
      await late.wait("anthropic", "other", signal);
      const refusedAt = performance.now();
      one.refused("anthropic", "short", 200);
      await one.wait("anthropic", "short", signal);
      expect(performance.now() - refusedAt).toBeGreaterThan(100);
    }));
}

async function ask(model: Model): Promise<void> {
  const messages = [{ role: "user" as const, content: "hello" }];
  for await (const _ of model.stream({ system: [], tools: [], messages }, { signal }));
}
