import { describe, expect, it } from "vitest";
import { sumTranscriptUsage } from "./transcript-usage.ts";

const line = (id: string, fields: object = {}, message: object = {}) => ({
  type: "assistant",
  uuid: `${id}-${Math.abs(JSON.stringify([fields, message]).length)}`,
  costUSD: 0.25,
  message: {
    id,
    model: "m",
    content: [],
    usage: { input_tokens: 1, output_tokens: 2, cache_read_input_tokens: 3, cache_creation_input_tokens: 4 },
    ...message,
  },
  ...fields,
});

describe("[LIM-4] a transcript shows what it took", () => {
  it("an answer counts once, however many lines it has", () => {
    const call = { content: [{ type: "tool_use", id: "t1", name: "Read", input: {} }] };
    expect(sumTranscriptUsage([line("a"), line("a", {}, call), line("b", {}, { model: "n" })])).toEqual({
      usage: { inputTokens: 2, outputTokens: 4, cacheReadTokens: 6, cacheWriteTokens: 8 },
      byModel: new Map([
        ["m", { inputTokens: 1, outputTokens: 2, cacheReadTokens: 3, cacheWriteTokens: 4 }],
        ["n", { inputTokens: 1, outputTokens: 2, cacheReadTokens: 3, cacheWriteTokens: 4 }],
      ]),
      answers: 2,
      toolUses: 1,
      costUsd: 0.5,
    });
  });

  it("errors, copies made by a fork and other lines count nothing", () => {
    const others = [
      line("a", { isApiErrorMessage: true }),
      line("b", { forkedFrom: { sessionId: "s", messageUuid: "u" } }),
      { type: "user", message: { role: "user", content: "x" } },
      { type: "assistant" },
    ];
    expect(sumTranscriptUsage(others)).toMatchObject({ answers: 0, toolUses: 0, costUsd: 0 });
  });

  it("one answer without a cost makes the sum unknown, and odd numbers count as none", () => {
    const odd = line("a", { costUSD: undefined }, { usage: { input_tokens: "7", output_tokens: 1 } });
    const sum = sumTranscriptUsage([odd, line("b")]);
    expect(sum).not.toHaveProperty("costUsd");
    expect(sum.usage).toEqual({ inputTokens: 1, outputTokens: 3, cacheReadTokens: 3, cacheWriteTokens: 4 });
  });
});
