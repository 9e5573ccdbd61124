import { createAgentFold, type FoldedAgent } from "@retinue/core/inspection/agent-fold.ts";
import { inspectSession } from "@retinue/core/inspection/inspect-session.ts";
import { expect, test } from "vitest";
import { renderCost } from "./render-cost.ts";

const start = Date.parse("2026-10-01T10:00:00.000Z");

function answered(id: string, model: string, costUSD: number | undefined): FoldedAgent {
  const agent = createAgentFold();
  agent.add({
    type: "assistant",
    uuid: id,
    timestamp: new Date(start).toISOString(),
    costUSD,
    durationMs: 900,
    message: {
      id,
      model,
      content: [{ type: "text", text: "Done." }],
      usage: { input_tokens: 1200, output_tokens: 300, cache_read_input_tokens: 45_000 },
    },
  });
  return agent.result({ isLive: false, now: start });
}

test("what a session took is shown in all, by model, and by agent with the dearest first [CLI-3]", () => {
  const inspection = inspectSession({
    id: "3f0b1c1e-9a51-4c62-8d0c-5a4f3e2b1a00",
    title: "Review the shop",
    file: "/x.jsonl",
    now: start,
    notes: [],
    agents: [
      { id: "main", folded: answered("m1", "claude-opus-5", 0.25) },
      {
        id: "a0123456789abcdef",
        folded: answered("b1", "claude-sonnet-5", 1.5),
        known: { agentType: "Explore", description: "Look \u001b[31maround", toolUseId: "c1" },
      },
    ],
  });
  expect(renderCost(inspection, 80).split("\n")).toEqual([
    "$1.75, 2 turns of 2 agents, 93k tokens",
    "2.4k in, 600 out, 90k read from the cache, 0 written to it",
    "",
    "MODEL            TURNS  IN    OUT  READ  WRITE  COST",
    "claude-sonnet-5  1      1.2k  300  45k   0      $1.50",
    "claude-opus-5    1      1.2k  300  45k   0      $0.2500",
    "",
    "AGENT                      TURNS  IN    OUT  READ  WRITE  COST",
    "Explore: Look \ufffd[31maround  1      1.2k  300  45k   0      $1.50",
    "main                       1      1.2k  300  45k   0      $0.2500",
    "",
  ]);
});
