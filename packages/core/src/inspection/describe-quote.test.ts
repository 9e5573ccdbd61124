import { describe, expect, test } from "vitest";
import {
  type BatchQuote,
  describeBasis,
  describeMoney,
  describeQuoted,
  describeTime,
  type QuotedAgent,
  quoteRows,
} from "./describe-quote.ts";

const none = { level: "none", tools: [] } as const;
const agent = (agentType: string, likely: number, more: Partial<QuotedAgent> = {}): QuotedAgent => ({
  agentType,
  description: `do ${agentType}`,
  model: "m",
  costUsd: { low: likely / 2, likely, high: likely * 2.5 },
  tokens: { low: 90_000, likely: 210_000, high: 1_300_000 },
  durationMs: { low: 50_000, likely: 130_000, high: 240_000 },
  basis: { from: "history", runs: 14 },
  rights: { mode: "default", write: none, run: none, reach: none },
  ...more,
});
const batch = (agents: readonly QuotedAgent[], more: Partial<BatchQuote> = {}): BatchQuote => ({
  agents,
  total: {
    costUsd: { low: 0.36, likely: 0.8, high: 2.4 },
    tokens: { low: 290_000, likely: 640_000, high: 1_900_000 },
    durationMs: { low: 50_000, likely: 180_000, high: 360_000 },
  },
  unpriced: 0,
  refused: [],
  ...more,
});

describe("a quote for people [BIL-1]", () => {
  test("has the sum and the rights first, then a line for each kind of agent", () => {
    const fixer = agent("fixer", 0.32, {
      basis: { from: "estimate" },
      rights: {
        mode: "acceptEdits",
        write: { level: "full", tools: ["Edit", "Write"] },
        run: { level: "narrowed", tools: ["Bash(npm test)"] },
        reach: none,
      },
    });
    expect(quoteRows(batch([agent("reviewer", 0.24), agent("reviewer", 0.24), fixer]))).toEqual([
      "3 agents, together likely $0.80 ($0.36 to $2.40)",
      "640k tokens (290k to 1.9M), 3 min (50 s to 6 min)",
      "may write: fixer (acceptEdits): Edit, Write",
      "may run:   fixer (acceptEdits): Bash(npm test)",
      "may reach: none of them",
      "",
      "agent        likely  low to high     tokens  time   from",
      "2x reviewer  $0.24   $0.12 to $0.60  210k    2 min  14 runs",
      "fixer        $0.32   $0.16 to $0.80  210k    2 min  estimate",
    ]);
  });

  test("fits into 74 columns, however many agents there are and whatever they are called", () => {
    const tools = Array.from({ length: 30 }, (_, at) => `mcp__server__tool_number_${at}`);
    const many = Array.from({ length: 40 }, (_, at) =>
      agent(`an-agent-with-a-very-long-name-${at}`, at + 0.5, {
        rights: { mode: "plan", write: none, run: none, reach: { level: "full", tools } },
      }),
    );
    const rows = quoteRows(
      batch(many, { refused: [{ agentType: "x", reason: "a reason with many words ".repeat(9) }] }),
    );
    expect(Math.max(...rows.map(({ length }) => length))).toBeLessThanOrEqual(74);
    expect(rows).toContain("and 28 more");
    expect(rows.length).toBeLessThan(40);
  });

  test("cannot be made to say something else by a name", () => {
    const rows = quoteRows(
      batch([agent("a\nmay write: nothing", 1)], { refused: [{ agentType: "b\n\nc", reason: "d\ne" }] }),
    );
    expect(rows.filter((row) => row.startsWith("may write"))).toHaveLength(1);
    expect(rows.join("")).not.toContain("\n");
    expect(rows.at(-1)).toBe("would not start: b c: d e");
  });

  test("says where a price is not known", () => {
    const { costUsd: _cost, ...unpriced } = agent("local", 1);
    const { costUsd: _sum, ...total } = batch([]).total;
    const rows = quoteRows(batch([unpriced], { total, unpriced: 1 }));
    expect(rows[0]).toBe("1 agent, likely at an unknown price");
    expect(rows.join("\n")).toContain("The price of their models is not known");
  });
});

test.each([
  [0, "$0"],
  [0.0001, "<$0.001"],
  [0.021, "$0.021"],
  [0.0999, "$0.10"],
  [1.2, "$1.20"],
  [99.4, "$99.40"],
  [99.9, "$100"],
])("%d US dollars are %s", (usd, text) => {
  expect(describeMoney(usd)).toBe(text);
});

test.each([
  [1, "1 s"],
  [50_000, "50 s"],
  [130_000, "2 min"],
  [9_000_000, "2.5 h"],
])("%d ms are about %s", (milliseconds, text) => {
  expect(describeTime(milliseconds)).toBe(text);
});

test("what a run took is shown beside its quote, in money where that is known [BIL-3]", () => {
  const { costUsd: _cost, ...unpriced } = agent("a", 0.4);
  const real = { costUsd: 0.34, tokens: 200_000, durationMs: 60_000 };
  expect(describeQuoted({ ...agent("a", 0.4), real, isInside: true })).toBe(
    "quoted $0.20 to $1.00, took $0.34; 50 s to 4 min, took 60 s",
  );
  expect(describeQuoted({ ...unpriced, real: { ...real, tokens: 10 }, isInside: false })).toBe(
    "quoted 90k to 1.3M tokens, took 10, which is outside; 50 s to 4 min, took 60 s",
  );
  expect(describeBasis({ from: "history", runs: 1, coverage: { inside: 1, of: 1 } })).toBe(
    "1 run on this machine; 1 of 1 quotes were right",
  );
});
