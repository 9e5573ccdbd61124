import { expect, test } from "vitest";
import { createPaint } from "../../shared/paint.ts";
import { renderTranscript } from "./render-transcript.ts";

const line = (type: string, content: unknown) => ({ type, message: { content } });

test("a transcript reads as prompt, words, calls, failures and end, without control characters", () => {
  const text = renderTranscript(
    [
      line("user", "Find \u001b[31mit."),
      line("assistant", [{ type: "text", text: "Looking.\nStill." }]),
      line("assistant", [{ type: "tool_use", id: "t1", name: "Grep", input: { pattern: "it" } }]),
      line("user", [{ type: "tool_result", tool_use_id: "t1", content: "found\nmuch" }]),
      line("user", [{ type: "tool_result", tool_use_id: "t2", is_error: true, content: "no\nmore" }]),
      { type: "custom-title", customTitle: "x" },
      { type: "system", runEnding: { status: "failed", reason: "error", error: "It broke." } },
    ],
    createPaint(false),
  );
  expect(text).not.toContain("\u001b");
  expect(text.replace(/^> Find .*it\.$/m, "> Find it.")).toBe(
    "> Find it.\nLooking.\nStill.\n· Grep it\n  failed: no\n[failed: error, It broke.]\n",
  );
});
