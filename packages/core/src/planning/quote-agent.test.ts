import type { QuotedAgent } from "@retinue/gate/batch-quote.ts";
import { describe, expect, test } from "vitest";
import { quoteBatch, quotedRights } from "./quote-agent.ts";

type Planned = Parameters<typeof quotedRights>[0];
const plan = (tools: Planned["tools"], mode: Planned["policy"]["mode"] = "default"): Planned => ({
  tools,
  policy: { mode, allow: [], ask: [], deny: [], workingDirectories: ["/p"], home: "/h" },
});
const none = { level: "none", tools: [] };

describe("what a planned agent may write, run and reach [BIL-1]", () => {
  test("is what the plan left of its tools", () => {
    expect(
      quotedRights(
        plan([
          { name: "Read" },
          { name: "Edit", allowOnly: ["src/**"] },
          { name: "Write" },
          { name: "Bash", deny: ["git push"] },
          { name: "WebFetch" },
          { name: "mcp__db__query" },
        ]),
      ),
    ).toEqual({
      mode: "default",
      write: { level: "narrowed", tools: ["Edit(src/**)", "Write"] },
      run: { level: "narrowed", tools: ["Bash but not git push"] },
      reach: { level: "narrowed", tools: ["WebFetch", "mcp__db__query"] },
    });
  });

  test("is nothing for tools that only read, and no file in plan mode", () => {
    expect(quotedRights(plan([{ name: "Read" }, { name: "Grep" }, { name: "TodoWrite" }]))).toMatchObject({
      write: none,
      run: none,
      reach: none,
    });
    expect(quotedRights(plan([{ name: "Edit" }, { name: "Bash" }], "plan"))).toMatchObject({
      mode: "plan",
      write: none,
      run: { level: "full", tools: ["Bash"] },
    });
  });

  test("has a program's own tool among what it may run, since only the program knows what it does", () => {
    expect(quotedRights(plan([{ name: "deploy" }])).run).toEqual({ level: "full", tools: ["deploy"] });
  });

  test("has what is confined to its memory as narrowed", () => {
    expect(quotedRights(plan([{ name: "Write", confinedTo: "memory" }])).write).toEqual({
      level: "narrowed",
      tools: ["Write(its memory)"],
    });
  });
});

describe("agents together [BIL-1]", () => {
  const band = (likely: number) => ({ low: likely / 2, likely, high: likely * 2 });
  const agent = (likely: number): QuotedAgent => ({
    agentType: "a",
    description: "d",
    model: "m",
    costUsd: band(likely),
    tokens: band(likely * 1000),
    durationMs: band(likely * 60_000),
    basis: { from: "estimate" },
    rights: quotedRights(plan([])),
  });

  test("cost the sum, and take the time of the longest where all have a place", () => {
    expect(quoteBatch([agent(1), agent(3)])).toMatchObject({
      total: { costUsd: band(4), tokens: band(4000), durationMs: band(180_000) },
      unpriced: 0,
    });
  });

  test("take turns where there are fewer places", () => {
    expect(quoteBatch([agent(1), agent(1), agent(1), agent(1)], { places: 2 }).total.durationMs).toEqual(
      band(120_000),
    );
  });

  test("are counted where their price is not known, and are not in the sum", () => {
    const { costUsd: _cost, ...unpriced } = agent(1);
    expect(quoteBatch([agent(2), unpriced])).toMatchObject({ total: { costUsd: band(2) }, unpriced: 1 });
    expect(quoteBatch([unpriced]).total).not.toHaveProperty("costUsd");
    expect(quoteBatch([])).toMatchObject({ agents: [], total: { tokens: { low: 0, likely: 0, high: 0 } } });
  });
});
