import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { carveBudget } from "./carve-budget.ts";
import type { CallNeed } from "./need-estimator.ts";
import { createTreeBudget, type TreeBudget } from "./tree-budget.ts";

const signal = new AbortController().signal;
const price = { input: 1, output: 1, cacheRead: 1, cacheWrite: 1 };
const need = (tokens: number): CallNeed =>
  ({ model: "m", inputTokens: tokens, maxOutput: tokens, price }) as unknown as CallNeed;
const limit = (value: number) => ({ value, from: "a test" });

describe("[NST-1] the budget of agents below a subagent", () => {
  test("is taken from the subagent's, and its refusal names that one", async () => {
    const tree = createTreeBudget(undefined);
    const lead = tree.agent({ tokens: limit(5000) });
    const below = carveBudget(lead, { name: "lead", tree }).agent(undefined);
    const first = await below.reserve(need(1500), { signal });
    if (first.type !== "reserved") throw new Error(first.error);
    first.settle({ usd: 0, tokens: 3000 });
    const second = await below.reserve(need(3000), { signal });
    expect(second).toMatchObject({ type: "refused", error: expect.stringContaining("lead") });
    // The subagent itself has no more than what is left.
    expect(await lead.reserve(need(3000), { signal })).toMatchObject({ type: "refused" });
  });

  test("gives back what a call did not take, and counts a failed attempt once", async () => {
    const tree = createTreeBudget({ tokens: limit(10_000) });
    const lead = tree.agent(undefined);
    const below = carveBudget(lead, { name: "lead", tree });
    const reserved = await below.agent(undefined).reserve(need(2000), { signal });
    if (reserved.type !== "reserved") throw new Error(reserved.error);
    await reserved.renew({ usd: 0, tokens: 100 });
    reserved.settle({ usd: 0, tokens: 200 });
    reserved.settle({ usd: 0, tokens: 200 });
    expect(below.spent()).toEqual({ usd: 0, tokens: 300 });
    expect(tree.spent().tokens).toBe(300);
  });

  test("counts tool calls against every agent above", async () => {
    const tree = createTreeBudget(undefined);
    const lead = tree.agent({ toolCalls: limit(3) });
    const below = carveBudget(lead, { name: "lead", tree }).agent({ toolCalls: limit(2) });
    expect(await below.takeCalls(3)).toMatchObject({ granted: 2 });
    expect(await lead.takeCalls(2)).toMatchObject({ granted: 1 });
    expect(await below.takeCalls(1)).toMatchObject({ granted: 0 });
  });

  test("is never exceeded by any order of calls on any level", async () => {
    const level = fc.record({
      most: fc.option(fc.integer({ min: 2000, max: 20_000 })),
      calls: fc.array(fc.tuple(fc.integer({ min: 0, max: 3 }), fc.integer({ min: 1, max: 4000 })), {
        maxLength: 12,
      }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(level, { minLength: 2, maxLength: 4 }), async (levels) => {
        const tree = createTreeBudget({ tokens: limit(50_000) });
        const spent = levels.map(() => 0);
        let budget: TreeBudget = tree;
        const agents = levels.map(({ most }, index) => {
          const agent = budget.agent(most === null ? undefined : { tokens: limit(most) });
          budget = carveBudget(agent, { name: `level ${index}`, tree });
          return agent;
        });
        for (const [at, { calls }] of levels.entries())
          for (const [, tokens] of calls) {
            const reserved = await agents[at]?.reserve(need(tokens), { signal });
            if (reserved?.type !== "reserved") continue;
            const paid = tokens + Math.min(tokens, reserved.maxOutput);
            reserved.settle({ usd: 0, tokens: paid });
            // Each takes from itself and every agent above it.
            for (let up = 0; up <= at; up += 1) spent[up] = (spent[up] ?? 0) + paid;
          }
        for (const [at, { most }] of levels.entries()) expect(spent[at]).toBeLessThanOrEqual(most ?? 50_000);
      }),
    );
  });
});
