import type { JsonRecord } from "@retinue/base/foundation/json-record.ts";
import fc from "fast-check";
import { expect, test } from "vitest";
import { foldTranscript } from "./transcript-task.ts";

const at = (second: number) => `2026-01-01T00:00:0${second}.000Z`;
const prompt = { type: "user", timestamp: at(1), message: { role: "user", content: "Go." } };
const answer = {
  type: "assistant",
  timestamp: at(2),
  costUSD: 0.5,
  message: {
    id: "m1",
    content: [{ type: "tool_use", id: "t1", name: "Read", input: {} }],
    usage: { input_tokens: 10, output_tokens: 5, cache_read_input_tokens: 100 },
  },
};
const ending = (status: unknown) => ({
  type: "system",
  timestamp: at(3),
  runEnding: { status, reason: "end_turn" },
});

test("times, tokens, calls and the end come from the lines [TSK-4]", () => {
  expect(foldTranscript([prompt, answer, ending("completed")])).toEqual({
    state: "completed",
    reason: "end_turn",
    startedAt: Date.parse(at(1)),
    lastSignAt: Date.parse(at(3)),
    tokens: 115,
    toolUses: 1,
    costUsd: 0.5,
  });
});

test("a line after the end means that it was taken up again", () => {
  expect(foldTranscript([prompt, ending("completed"), prompt])).not.toHaveProperty("state");
  expect(foldTranscript([prompt, ending("completed"), prompt, ending("stopped")]).state).toBe("stopped");
});

test("any lines will do", () => {
  fc.assert(
    fc.property(fc.array(fc.dictionary(fc.string(), fc.jsonValue())), (records) => {
      expect(foldTranscript(records as readonly JsonRecord[]).tokens).toBe(0);
    }),
  );
  expect(foldTranscript([ending("odd")])).not.toHaveProperty("state");
});
