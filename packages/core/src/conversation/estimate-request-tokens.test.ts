import { anyCharacter } from "@retinue/testing/any-character.ts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { estimateBlockTokens, estimateRequestTokens, estimateTextTokens } from "./estimate-request-tokens.ts";

describe("the token estimate needs no tokenizer", () => {
  test.each([
    ["", 0],
    ["a", 1],
    ["abcd", 1],
    ["abcde", 2],
    ["fünf", 1],
    ["漢字", 3],
    ["한글", 3],
    ["привет", 3],
  ])("%j counts %d", (text, tokens) => {
    expect(estimateTextTokens(text)).toBe(tokens);
  });

  test("longer text never counts less", () => {
    fc.assert(
      fc.property(fc.string({ unit: anyCharacter }), fc.string({ unit: anyCharacter }), (a, b) => {
        expect(estimateTextTokens(a + b)).toBeGreaterThanOrEqual(estimateTextTokens(a));
      }),
    );
  });

  test("an image counts the same however many bytes it has, and also inside a tool result", () => {
    const image = (data: string) => ({
      type: "image" as const,
      source: { type: "base64" as const, media_type: "image/png", data },
    });
    expect(estimateBlockTokens(image("a".repeat(1_000_000)))).toBe(estimateBlockTokens(image("a")));
    const result = {
      type: "tool_result" as const,
      tool_use_id: "x",
      content: [image("a".repeat(1_000_000))],
    };
    expect(estimateBlockTokens(result)).toBeLessThan(2 * estimateBlockTokens(image("a")));
  });

  test("system, tools and messages all add to a request", () => {
    const tool = { name: "Read", description: "Reads a file.", inputSchema: { type: "object" } };
    const empty = { system: [], tools: [], messages: [] };
    const message = { role: "user" as const, content: "hello" };
    const parts = [
      { ...empty, system: ["Be brief."] },
      { ...empty, tools: [tool] },
      { ...empty, messages: [message] },
    ];
    const whole = { system: ["Be brief."], tools: [tool], messages: [message] };
    expect(estimateRequestTokens(empty)).toBe(0);
    expect(estimateRequestTokens(whole)).toBe(
      parts.map(estimateRequestTokens).reduce((total, tokens) => total + tokens, 0),
    );
  });

  test("a value that JSON does not have counts nothing rather than throwing", () => {
    const call = { type: "tool_use" as const, id: "x", name: "", input: undefined };
    expect(estimateBlockTokens(call)).toBeGreaterThan(0);
  });
});
