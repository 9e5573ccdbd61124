import { describe, expect, test } from "vitest";
import { estimateTextTokens } from "../conversation/estimate-request-tokens.ts";
import type { ModelEvent } from "../conversation/message.ts";
import { createAttemptUsage } from "./attempt-usage.ts";

const usage = { inputTokens: 100, outputTokens: 1, cacheReadTokens: 20, cacheWriteTokens: 3 };
const started: ModelEvent = { type: "message-started", id: "m", model: "x", usage };
const text = "Some words that were written before it broke off. ";
const delta: ModelEvent = { type: "text-delta", index: 0, text };

function taken(...events: readonly ModelEvent[]) {
  const attempt = createAttemptUsage(() => 777);
  for (const event of events) attempt.onEvent(event);
  return attempt.take();
}

describe("[LIM-4] what an answer that broke off has taken", () => {
  test("is nothing before it began", () => {
    expect(taken()).toBeUndefined();
  });

  test("is what the provider reported at its beginning, and what was received of it", () => {
    expect(taken(started)).toEqual(usage);
    expect(taken(started, delta, { ...delta, type: "thinking-delta" })).toEqual({
      ...usage,
      outputTokens: 2 * estimateTextTokens(text),
    });
    expect(taken(started, { type: "input-delta", index: 0, json: text })?.outputTokens).toBe(
      estimateTextTokens(text),
    );
  });

  test("has an estimated prompt where the provider said nothing yet", () => {
    expect(taken({ type: "message-started", id: "m", model: "x" })?.inputTokens).toBe(777);
  });

  test("is exact where it was whole and only came too late", () => {
    const message = { role: "assistant" as const, content: [] };
    const whole = { ...usage, outputTokens: 9 };
    const ended = { id: "m", model: "x", message, stopReason: "end_turn", usage: whole } as const;
    expect(taken(started, delta, { type: "message-ended", ...ended })).toEqual(whole);
  });

  test("is reported once", () => {
    const attempt = createAttemptUsage(() => 0);
    attempt.onEvent(started);
    attempt.take();
    expect(attempt.take()).toBeUndefined();
  });
});
