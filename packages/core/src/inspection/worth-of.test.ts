import { describe, expect, test } from "vitest";
import type { CallStep, InspectedAgent, Inspection, Step, TurnStep } from "./inspection.ts";
import { noTotals, totalsOf } from "./totals-of.ts";
import { worthOf } from "./worth-of.ts";

const turn = (at: number, read: number, out: number, cached = 0, cost = 0.01): TurnStep => ({
  type: "turn",
  at,
  durationMs: 100,
  model: "m",
  usage: { inputTokens: read - cached, outputTokens: out, cacheReadTokens: cached, cacheWriteTokens: 0 },
  costUsd: cost,
  costFrom: "line",
  text: "",
});
const call = (at: number, durationMs: number, fields: Partial<CallStep>): CallStep => ({
  type: "call",
  at,
  durationMs,
  callId: "c",
  tool: "Read",
  about: "",
  outcome: "ok",
  ...fields,
});
const starts = (agentId: string, at: number, durationMs: number): CallStep =>
  call(at, durationMs, { tool: "Agent", agentId });

function agent(id: string, steps: readonly Step[], more: Partial<InspectedAgent> = {}): InspectedAgent {
  const last = steps.at(-1)?.at ?? 0;
  const runs = [{ from: 0, to: last + 100 }];
  return {
    id,
    depth: id === "main" ? 0 : 1,
    ...(id === "main" ? {} : { parentId: "main" }),
    agentType: "Explore",
    description: "d",
    models: ["m"],
    state: "completed",
    isLive: false,
    runs,
    totals: totalsOf(steps, runs),
    tree: noTotals,
    inFlight: [],
    steps,
    ...more,
  };
}

function worth(...agents: readonly InspectedAgent[]) {
  const inspection: Inspection = {
    version: 1,
    session: { id: "s", title: "t", file: "/s.jsonl", isLive: false },
    takenAt: 0,
    agents,
    totals: totalsOf(
      agents.flatMap(({ steps }) => steps),
      [],
    ),
    byModel: [],
    byTool: [],
    refusals: [],
    notes: [],
  };
  return worthOf(inspection);
}

describe("[LIM-4] what a delegation was worth", () => {
  test("is its tokens, its return, its share and what it kept out of its parent", () => {
    const { children, verdict } = worth(
      agent("main", [turn(0, 100, 10, 0, 0.03), starts("a1", 100, 900)]),
      agent("a1", [turn(200, 1000, 20), call(300, 10, { about: "x.ts" }), turn(400, 5000, 50)]),
    );
    expect(children).toMatchObject([
      {
        tokensRead: 6000,
        largestContext: 5000,
        tokensReturned: 50,
        filesRead: 1,
        filesReadAgain: [],
        criticalMs: 900,
        costUsd: 0.02,
        costShare: expect.closeTo(0.4, 10),
        paid: true,
      },
    ]);
    expect(verdict).toContain("1 of 1 delegations paid");
    expect(verdict).toContain("4950 tokens");
  });

  test("is nothing where its parent reads the same files again, later", () => {
    const child = agent("a1", [call(200, 10, { about: "x.ts" }), turn(400, 5000, 50)]);
    const before = call(10, 5, { about: "x.ts" });
    const after = call(2000, 5, { about: "x.ts" });
    expect(worth(agent("main", [before, starts("a1", 100, 900)]), child).children[0]).toMatchObject({
      paid: true,
    });
    expect(worth(agent("main", [starts("a1", 100, 900), after]), child).children[0]).toMatchObject({
      paid: false,
      filesReadAgain: ["x.ts"],
      verdict: "did not pay: its parent read 1 of its 1 files again",
    });
  });

  test.each([
    [{ state: "failed" }, "it ended as failed"],
    [{ state: "running" }, "it still runs"],
  ] as const)("is nothing for one that is %j", (more, why) => {
    const { children, verdict } = worth(agent("main", []), agent("a1", [turn(0, 5000, 50)], more));
    expect(verdict).toBe("0 of 1 delegations paid.");
    const [child] = children;
    expect(child).toMatchObject({ paid: false, verdict: `did not pay: ${why}` });
  });

  test("cannot be known where no tokens were counted", () => {
    const { children, verdict } = worth(agent("main", []), agent("a1", [turn(0, 0, 0)]));
    expect(children[0]).not.toHaveProperty("paid");
    expect(verdict).toContain("0 of 1 delegations paid, 1 cannot be judged");
  });

  test("is nothing where it gives back as much as it took in", () => {
    expect(worth(agent("main", []), agent("a1", [turn(0, 50, 50)])).children[0]?.paid).toBe(false);
  });

  test("each moment that a parent waits for several belongs to the child that ends last", () => {
    const { children } = worth(
      agent("main", [starts("a1", 100, 300), starts("a2", 100, 900), starts("a3", 50, 200)]),
      ...["a1", "a2", "a3"].map((id) => agent(id, [turn(0, 5000, 50)])),
    );
    expect(children.map(({ criticalMs }) => criticalMs)).toEqual([0, 900, 50]);
  });

  test("a cache miss is a later turn that finds nothing in a cache that is used", () => {
    const misses = (...cached: readonly number[]) =>
      worth(
        agent("main", []),
        agent(
          "a1",
          cached.map((tokens, at) => turn(at, 5000, 5, tokens)),
        ),
      ).children[0]?.cacheMisses;
    expect([misses(0, 4000, 0, 4000), misses(0, 0, 0), misses(0, 4000)]).toEqual([1, 0, 0]);
  });

  test("a session without children says so, and an unknown price gives no share", () => {
    expect(worth(agent("main", []))).toMatchObject({
      children: [],
      verdict: "Nothing was delegated to children.",
    });
    const unknown: TurnStep = { ...turn(0, 5000, 50), costFrom: "unknown" };
    const { costUsd: _, ...free } = unknown;
    const [child] = worth(agent("main", []), agent("a1", [free])).children;
    expect(child).not.toHaveProperty("costShare");
  });
});
