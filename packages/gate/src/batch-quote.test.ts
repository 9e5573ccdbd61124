import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type BatchQuote, readBatchQuote, readQuotedBands } from "./batch-quote.ts";

const band = { low: 1, likely: 2, high: 3 };
const right = { level: "narrowed", tools: ["Edit(src/**)"] } as const;
const quote: BatchQuote = {
  agents: [
    {
      agentType: "a",
      description: "d",
      model: "m",
      tokens: band,
      durationMs: band,
      basis: { from: "history", runs: 3, coverage: { inside: 1, of: 2 } },
      rights: { mode: "default", write: right, run: right, reach: { level: "none", tools: [] } },
    },
  ],
  total: { costUsd: band, tokens: band, durationMs: band },
  unpriced: 1,
  why: "settings ask",
  refused: [{ agentType: "b", reason: "r" }],
};

describe("a quote that was written down [BIL-1, BIL-3]", () => {
  test("is read as it was written", () => {
    expect(readBatchQuote(JSON.parse(JSON.stringify(quote)))).toEqual(quote);
  });

  test.each([
    [{ ...quote, unpriced: "1" }],
    [{ ...quote, total: { tokens: band } }],
    [{ ...quote, refused: [{}] }],
    [{ ...quote, agents: [{ ...quote.agents[0], tokens: { ...band, low: -1 } }] }],
    [{ ...quote, agents: [{ ...quote.agents[0], rights: { mode: "default" } }] }],
    [{ ...quote, agents: [{ ...quote.agents[0], basis: { from: "a guess" } }] }],
  ])("is none where a part of it is of another form", (wrong) => {
    expect(readBatchQuote(wrong)).toBeUndefined();
  });

  test("never throws, whatever a file holds", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        readBatchQuote(value);
        readBatchQuote({ ...quote, agents: [value], refused: [value] });
        readQuotedBands(value);
      }),
      { numRuns: Number(process.env["FAST_CHECK_RUNS"] ?? 40), seed: 1 },
    );
  });
});
