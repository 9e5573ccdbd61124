import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { RunLimits } from "../planning/agent-plan.ts";
import { amountOf, type CallNeed } from "./need-estimator.ts";
import { createTreeBudget, type Reserved } from "./tree-budget.ts";

const signal = new AbortController().signal;
/** One cent for a thousand tokens read, five for a thousand written. */
const price = { input: 10, output: 50, cacheRead: 1, cacheWrite: 10 };
const nothing = { usd: 0, tokens: 0 };

function need(inputTokens: number, maxOutput: number): CallNeed {
  return { model: "m", inputTokens, maxOutput, price };
}

function limits(values: { usd?: number; tokens?: number; toolCalls?: number }): RunLimits {
  const from = "a test";
  return {
    costUsd: values.usd === undefined ? undefined : { value: values.usd, from },
    tokens: values.tokens === undefined ? undefined : { value: values.tokens, from },
    toolCalls: values.toolCalls === undefined ? undefined : { value: values.toolCalls, from },
  };
}

function held(reserved: Reserved) {
  if (reserved.type === "refused") throw new Error(reserved.error);
  return reserved;
}

describe("[LIM-3] what a call may cost at most is reserved before it is made", () => {
  test("and given back to what it really cost", async () => {
    const tree = createTreeBudget(limits({ usd: 1 }));
    const call = held(await tree.agent(undefined).reserve(need(1000, 10_000), { signal }));
    expect(call).toMatchObject({ maxOutput: 10_000 });
    expect(call.shortened).toBeUndefined();
    call.settle({ usd: 0.02, tokens: 1200 });
    call.settle({ usd: 9, tokens: 9 });
    expect(tree.spent()).toEqual({ usd: 0.02, tokens: 1200 });
  });

  test.each([
    ["money of the tree", { usd: 0.6 }, {}, "max_budget"],
    ["money of the agent", { usd: 10 }, { usd: 0.6 }, "max_budget"],
    ["tokens of the tree", { tokens: 12_000 }, {}, "max_total_tokens"],
    ["tokens of the agent", {}, { tokens: 12_000 }, "max_total_tokens"],
  ])("an answer is made shorter where the whole does not fit: %s", async (_what, tree, agent, reason) => {
    const budget = createTreeBudget(limits(tree)).agent(limits(agent));
    const call = held(await budget.reserve(need(1000, 64_000), { signal }));
    expect(call.maxOutput).toBeGreaterThanOrEqual(8192);
    expect(call.maxOutput).toBeLessThanOrEqual(11_800);
    expect(call.shortened?.reason).toBe(reason);
  });

  test("down to a sensible length, then the call is refused with what was left and needed", async () => {
    const budget = createTreeBudget(limits({ usd: 0.1 })).agent(undefined);
    const first = held(await budget.reserve(need(1000, 64_000), { signal }));
    expect(first.maxOutput).toBe(1800);
    first.settle({ usd: 0.0868, tokens: 2000 });
    const second = await budget.reserve(need(1000, 64_000), { signal });
    expect(second).toEqual({
      type: "refused",
      reason: "max_budget",
      error:
        "Budget limit reached: 0.0132 of 0.10 US dollars of the whole tree left; the next call may cost up to 0.0612.",
    });
  });

  test("tokens are refused in tokens", async () => {
    const budget = createTreeBudget(undefined).agent(limits({ tokens: 1500 }));
    expect(await budget.reserve(need(1000, 64_000), { signal })).toMatchObject({
      reason: "max_total_tokens",
      error: "Token limit reached: 1500 of 1500 tokens of the agent left; the next call may take up to 2024.",
    });
  });

  test("while others hold the rest, a call waits for what they give back, in order", async () => {
    const tree = createTreeBudget(limits({ usd: 0.6 }));
    const first = held(await tree.agent(undefined).reserve(need(1000, 10_000), { signal }));
    const order: string[] = [];
    const waiting = ["second", "third"].map(async (name) => {
      const call = held(await tree.agent(undefined).reserve(need(1000, 10_000), { signal }));
      order.push(name);
      call.settle({ usd: 0.05, tokens: 2000 });
    });
    await Promise.resolve();
    expect(order).toEqual([]);
    first.settle({ usd: 0.05, tokens: 2000 });
    await Promise.all(waiting);
    expect(order).toEqual(["second", "third"]);
    expect(tree.spent().usd).toBeCloseTo(0.15);
  });

  test("nothing waits for the hair that fractions leave behind when all is given back", async () => {
    const tree = createTreeBudget(limits({ usd: 0.3 }));
    const dear = { ...price, input: 5, output: 25, cacheWrite: 6.25 };
    const take = (inputTokens: number, maxOutput: number) =>
      tree.agent(undefined).reserve({ model: "m", inputTokens, maxOutput, price: dear }, { signal });
    const calls = [held(await take(250, 5300)), held(await take(30, 5300))];
    for (const call of calls) call.settle(nothing);
    const next = held(await take(33_000, 64_000));
    expect(next.maxOutput).toBe(3750);
  });

  test("one whose agent is stopped while it waits leaves the queue to the next", async () => {
    const tree = createTreeBudget(limits({ usd: 0.6 }));
    const first = held(await tree.agent(undefined).reserve(need(1000, 10_000), { signal }));
    const stop = new AbortController();
    const second = tree.agent(undefined).reserve(need(1000, 10_000), { signal: stop.signal });
    const third = tree.agent(undefined).reserve(need(1000, 10_000), { signal });
    stop.abort(new Error("stopped"));
    await expect(second).rejects.toThrow("stopped");
    first.settle(nothing);
    expect((await third).type).toBe("reserved");
  });

  test("an attempt that failed is paid, and the next one needs as much again", async () => {
    const budget = createTreeBudget(limits({ usd: 0.6 })).agent(undefined);
    const call = held(await budget.reserve(need(1000, 10_000), { signal }));
    expect(call.renew({ usd: 0.05, tokens: 1000 })).toBeUndefined();
    expect(call.renew({ usd: 0.05, tokens: 1000 })).toMatchObject({ reason: "max_budget" });
  });

  test("a model without a known price is let through, or refused where the setting asks for it", async () => {
    const { price: _price, ...unpriced } = need(1000, 10_000);
    const kind = async (unknownPrice: "allow" | "refuse") =>
      (
        await createTreeBudget(limits({ usd: 0.01 }), { unknownPrice })
          .agent({})
          .reserve(unpriced, { signal })
      ).type;
    expect(await kind("allow")).toBe("reserved");
    expect(await kind("refuse")).toBe("refused");
  });

  test("tool calls are counted for the agent and the tree", () => {
    const tree = createTreeBudget(limits({ toolCalls: 5 }));
    const agent = tree.agent(limits({ toolCalls: 3 }));
    expect(agent.takeCalls(2)).toEqual({ granted: 2 });
    expect(agent.takeCalls(2)).toEqual({
      granted: 1,
      limit: { reason: "max_tool_calls", error: "The limit of 3 tool calls of the agent was reached." },
    });
    expect(tree.agent(undefined).takeCalls(9)).toMatchObject({
      granted: 2,
      limit: { error: "The limit of 5 tool calls of the whole tree was reached." },
    });
    expect(tree.refusal()?.reason).toBe("max_tool_calls");
  });

  test("any order of reserving and giving back keeps the ceiling, and everyone gets an answer", async () => {
    const call = fc.record({
      inputTokens: fc.integer({ min: 1, max: 4000 }),
      maxOutput: fc.integer({ min: 1, max: 40_000 }),
      /** What part of the reserved it really takes. */
      share: fc.double({ min: 0, max: 1, noNaN: true }),
      /** After how many others it is over. */
      rounds: fc.integer({ min: 0, max: 5 }),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.array(call, { minLength: 1, maxLength: 40 }),
        fc.double({ min: 0.01, max: 3, noNaN: true }),
        fc.integer({ min: 100, max: 200_000 }),
        async (calls, usd, tokens) => {
          const tree = createTreeBudget(limits({ usd, tokens }));
          let reservedUsd = 0;
          let most = 0;
          const results = await Promise.all(
            calls.map(async ({ inputTokens, maxOutput, share, rounds }) => {
              const own = need(inputTokens, maxOutput);
              const reserved = await tree.agent(undefined).reserve(own, { signal });
              if (reserved.type === "refused") return reserved.error;
              const amount = amountOf(own, reserved.maxOutput);
              reservedUsd += amount.usd;
              most = Math.max(most, tree.spent().usd + reservedUsd);
              for (let round = 0; round < rounds; round += 1) await Promise.resolve();
              reservedUsd -= amount.usd;
              reserved.settle({ usd: amount.usd * share, tokens: Math.floor(amount.tokens * share) });
              return "paid";
            }),
          );
          expect(results).toHaveLength(calls.length);
          expect(
            results.every((result) => result === "paid" || / left; the next call may /.test(result)),
          ).toBe(true);
          expect(most).toBeLessThanOrEqual(usd + 1e-9);
          expect(tree.spent().usd).toBeLessThanOrEqual(usd + 1e-9);
          expect(tree.spent().tokens).toBeLessThanOrEqual(tokens);
        },
      ),
      { numRuns: 80 },
    );
  });
});
