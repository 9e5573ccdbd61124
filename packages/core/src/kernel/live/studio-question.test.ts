import { expect, test } from "vitest";
import { quoteParts } from "../../inspection/describe-quote.ts";
import { studioQuestion } from "./studio-question.ts";

test("agents that start together are shown by what they would take, and why it is asked [BIL-1, BIL-2]", async () => {
  const band = { low: 1, likely: 2, high: 3 };
  const quote = {
    agents: [],
    total: { tokens: band, durationMs: band },
    unpriced: 0,
    why: "settings ask",
    refused: [],
  };
  const shown = await studioQuestion({
    state: "waiting",
    uses: [],
    question: {
      version: 1,
      id: "0123456789ab",
      session: "s",
      digest: "d",
      tool: "Agent",
      input: { agents: [] },
      directory: "/p",
      paths: [],
      reason: "a long reason",
      suggestedRules: [],
      everyTime: true,
      places: [],
      at: 1,
      quote,
    },
  });
  expect(shown).toMatchObject({ reason: "settings ask", quote: quoteParts(quote), everyTime: true });
});
