import { describe, expect, test } from "vitest";
import { noUsage, type Usage } from "../conversation/usage.ts";
import {
  bandOfValues,
  coverageOf,
  isInside,
  type PastRun,
  predictRun,
  type RunOutlook,
} from "./predict-run.ts";

const price = { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 };
const outlook: RunOutlook = { model: "m", price, prefixTokens: 5_000, tools: "acting" };
const usage = (outputTokens: number): Usage => ({ ...noUsage, outputTokens });
const run = (costUsd: number, more: Partial<PastRun> = {}): PastRun => ({
  usage: usage(Math.round(costUsd * 100_000)),
  costUsd,
  durationMs: costUsd * 60_000,
  model: "m",
  ...more,
});

/** Numbers of one seed, normally distributed. */
function createNormal(seed: number): () => number {
  let state = seed;
  const next = (): number => {
    state = (state * 1_664_525 + 1_013_904_223) % 2 ** 32;
    return (state + 0.5) / 2 ** 32;
  };
  return () => Math.sqrt(-2 * Math.log(next())) * Math.cos(2 * Math.PI * next());
}

describe("an agent without recorded runs is estimated [BIL-1]", () => {
  test("and more tools, turns and text make it dearer", () => {
    const likely = (changes: Partial<RunOutlook>) =>
      predictRun({ ...outlook, ...changes }, []).costUsd?.likely ?? 0;
    expect(predictRun(outlook, []).basis).toEqual({ from: "estimate" });
    expect(likely({ tools: "none" })).toBeLessThan(likely({ tools: "reading" }));
    expect(likely({ tools: "reading" })).toBeLessThan(likely({}));
    expect(likely({ maxTurns: 2 })).toBeLessThan(likely({}));
    expect(likely({ prefixTokens: 50_000 })).toBeGreaterThan(likely({}));
  });

  test("in order from low to high, also where one turn is all it has", () => {
    for (const maxTurns of [1, 5, 100]) {
      const { costUsd, tokens, durationMs } = predictRun({ ...outlook, maxTurns }, []);
      for (const band of [costUsd, tokens, durationMs]) {
        expect(band?.low).toBeGreaterThan(0);
        expect(band?.low).toBeLessThanOrEqual(band?.likely ?? 0);
        expect(band?.likely).toBeLessThanOrEqual(band?.high ?? 0);
      }
    }
  });

  test("without money where the price is not known", () => {
    const { price: _price, ...unpriced } = outlook;
    expect(predictRun(unpriced, [])).not.toHaveProperty("costUsd");
    expect(predictRun({ ...unpriced }, [{ ...run(1), model: "other" }])).not.toHaveProperty("costUsd");
  });

  test("each request at the price of its own prompt, and not of the sum", () => {
    const longPrompt = { overTokens: 200_000, input: 6, output: 30, cacheRead: 0.6, cacheWrite: 7.5 };
    const few = { ...outlook, tools: "reading" } as const;
    const plain = predictRun(few, []).costUsd?.likely;
    expect(predictRun({ ...few, price: { ...price, longPrompt } }, []).costUsd?.likely).toBe(plain);
  });

  test("and nothing is expected beyond the limits that hold", () => {
    const { costUsd, tokens, durationMs } = predictRun(
      { ...outlook, most: { costUsd: 0.01, tokens: 7, durationMs: 1000 } },
      [run(5), run(7)],
    );
    expect([costUsd?.high, tokens.high, durationMs.high]).toEqual([0.01, 7, 1000]);
    expect(costUsd?.low).toBeLessThanOrEqual(0.01);
  });
});

describe("recorded runs of the same agent type are what a quote rests on [BIL-1, BIL-3]", () => {
  test("and show their number", () => {
    const { basis, costUsd } = predictRun(outlook, [run(1), run(1.2), run(0.9)]);
    expect(basis).toEqual({ from: "history", runs: 3 });
    expect(costUsd?.likely).toBeCloseTo(1.03, 1);
    expect(isInside(costUsd ?? { low: 0, likely: 0, high: 0 }, 1.5)).toBe(true);
  });

  test("the band narrows with every run that is like the others", () => {
    const widths = [1, 3, 10, 40].map((count) => {
      const { low, high } = bandOfValues(Array.from({ length: count }, (_, at) => 1 + (at % 3) * 0.05));
      return high / low;
    });
    expect(widths).toEqual(widths.toSorted((a, b) => b - a));
    expect(widths.at(-1)).toBeLessThan(2);
  });

  test("a run with another model counts at the price of the one that is planned", () => {
    const { costUsd } = predictRun(outlook, [run(1, { model: "dear", usage: usage(1_000) })]);
    expect(costUsd?.likely).toBeCloseTo(0.015, 6);
  });

  test("a run that took nothing is none", () => {
    expect(predictRun(outlook, [{ usage: noUsage, costUsd: 0, durationMs: 5 }]).basis.from).toBe("estimate");
  });

  test("runs that cost nothing are quoted at nothing", () => {
    expect(predictRun(outlook, [{ ...run(0), usage: usage(10) }]).costUsd).toEqual({
      low: 0,
      likely: 0,
      high: 0,
    });
  });

  test.each([
    0.1, 0.3, 0.6, 0.9,
  ])("over 20 runs in a row at least 80 of 100 take what was quoted: deviation %d", (deviation) => {
    for (const seed of [1, 2, 3, 4, 5]) {
      const normal = createNormal(seed);
      const past: PastRun[] = [];
      for (let number = 0; number < 21; number += 1) {
        const cost = 0.4 * Math.exp(deviation * normal());
        const quoted = predictRun(outlook, past);
        past.push(run(cost, past.length === 0 ? {} : { quoted }));
      }
      const { inside, of } = coverageOf(past) ?? { inside: 0, of: 1 };
      expect(of).toBe(20);
      expect(inside).toBeGreaterThanOrEqual(16);
    }
  });

  test("a band that was missed too often becomes wider", () => {
    const tight = { low: 0.99, likely: 1, high: 1.01 };
    const missed = (costUsd: number) =>
      run(costUsd, {
        quoted: { costUsd: tight, tokens: tight, durationMs: tight, basis: { from: "history", runs: 9 } },
      });
    const values = [0.8, 1.3, 0.9, 1.1, 0.7, 1.2];
    const before = predictRun(
      outlook,
      values.map((value) => run(value)),
    ).costUsd;
    const after = predictRun(outlook, values.map(missed));
    expect(after.basis).toEqual({ from: "history", runs: 6, coverage: { inside: 0, of: 6 } });
    expect(after.costUsd?.high).toBeGreaterThan(before?.high ?? 0);
    expect(after.costUsd?.low).toBeLessThan(before?.low ?? 0);
  });
});
