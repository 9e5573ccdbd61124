import { describe, expect, it } from "vitest";
import { assistantLine, compactBoundaryLine, userLine } from "./line-makers.ts";
import {
  aiTitleLine,
  customTitleLine,
  summaryLine,
  type TranscriptFacts,
  tagLine,
} from "./transcript-facts.ts";

const facts: TranscriptFacts = {
  sessionId: "s",
  cwd: "/w",
  version: "1.0.0",
  entrypoint: "cli",
  gitBranch: "main",
};
const place = { uuid: "u", parentUuid: null, timestamp: "2026-01-02T03:04:05.006Z" };
const written = (line: object) => JSON.parse(JSON.stringify(line));
const keys = (line: object) => Object.keys(written(line)).join(" ");

describe("[TRN-1] lines have the fields that viewers know, in the order existing files have them", () => {
  it("a prompt", () => {
    const line = userLine(place, facts, {
      message: { role: "user", content: "Hello" },
      origin: { kind: "human" },
      permissionMode: "default",
    });
    expect(JSON.stringify(line)).toBe(
      '{"parentUuid":null,"isSidechain":false,"type":"user","message":{"role":"user","content":"Hello"},"uuid":"u",' +
        '"timestamp":"2026-01-02T03:04:05.006Z","origin":{"kind":"human"},"permissionMode":"default","userType":"external",' +
        '"entrypoint":"cli","cwd":"/w","sessionId":"s","version":"1.0.0","gitBranch":"main"}',
    );
  });

  it("a result, with what programs keep of it and the line of its call", () => {
    const line = userLine(place, facts, {
      message: { role: "user", content: [{ type: "tool_result", tool_use_id: "t", content: "ok" }] },
      toolUseResult: { stdout: "ok" },
      sourceToolAssistantUUID: "a",
    });
    expect(keys(line)).toBe(
      "parentUuid isSidechain type message uuid timestamp toolUseResult sourceToolAssistantUUID userType entrypoint cwd sessionId version gitBranch",
    );
  });

  it("[LIM-4] a block of an answer, with the tokens and the cost of the whole answer", () => {
    const line = assistantLine({ ...place, parentUuid: "p" }, facts, {
      id: "msg_1",
      model: "m",
      content: [{ type: "text", text: "Hi" }],
      stopReason: "end_turn",
      usage: { inputTokens: 1, outputTokens: 2, cacheReadTokens: 3, cacheWriteTokens: 4 },
      costUsd: 0.5,
      requestId: "req_1",
    });
    expect(keys(line)).toBe(
      "parentUuid isSidechain message requestId costUSD type uuid timestamp userType entrypoint cwd sessionId version gitBranch",
    );
    expect(written(line).message).toEqual({
      model: "m",
      id: "msg_1",
      type: "message",
      role: "assistant",
      content: [{ type: "text", text: "Hi" }],
      stop_reason: "end_turn",
      stop_sequence: null,
      usage: {
        input_tokens: 1,
        cache_creation_input_tokens: 4,
        cache_read_input_tokens: 3,
        output_tokens: 2,
      },
    });
  });

  it("a child's line is a side chain with the child's id and the main session's", () => {
    const line = written(
      userLine(
        place,
        { ...facts, agentId: "a0123456789abcdef" },
        { message: { role: "user", content: "x" } },
      ),
    );
    expect(line).toMatchObject({ isSidechain: true, agentId: "a0123456789abcdef", sessionId: "s" });
  });

  it("a boundary begins a new chain and remembers the old one", () => {
    const line = compactBoundaryLine(place, facts, {
      trigger: "auto",
      preTokens: 9,
      logicalParentUuid: "before",
    });
    expect(written(line)).toMatchObject({
      parentUuid: null,
      logicalParentUuid: "before",
      type: "system",
      subtype: "compact_boundary",
      compactMetadata: { trigger: "auto", preTokens: 9 },
    });
  });

  it("what is only about the session", () => {
    expect(customTitleLine("s", "t")).toEqual({ type: "custom-title", customTitle: "t", sessionId: "s" });
    expect(aiTitleLine("s", "t")).toEqual({ type: "ai-title", aiTitle: "t", sessionId: "s" });
    expect(tagLine("s", "t")).toEqual({ type: "tag", tag: "t", sessionId: "s" });
    expect(summaryLine("t", "u")).toEqual({ type: "summary", summary: "t", leafUuid: "u" });
  });
});
