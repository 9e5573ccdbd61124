import type { JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { describe, expect, test } from "vitest";
import { createPromptCache, type PromptCache } from "./prompt-cache.ts";

const mark = { cache_control: { type: "ephemeral" } };
const long = "word ".repeat(2_000);

describe("[MDL-5] the fake provider counts cached prompts by the provider's rules", () => {
  test("what is marked is written first and read again, and all of it adds up", () => {
    const { cache } = start();
    const body = ask([text("question", mark)]);
    const first = count(cache, body);
    const second = count(cache, body);
    expect(first.cacheReadTokens).toBe(0);
    expect(first.cacheWriteTokens).toBeGreaterThan(2_000);
    expect(second).toEqual({
      inputTokens: first.inputTokens,
      cacheReadTokens: first.cacheWriteTokens,
      cacheWriteTokens: 0,
    });
  });

  test("without a mark nothing is cached", () => {
    const { cache } = start();
    const body = { ...ask([text("question")]), system: [text(long)] };
    count(cache, body);
    expect(count(cache, body)).toMatchObject({ cacheReadTokens: 0, cacheWriteTokens: 0 });
  });

  test("a prefix below the minimum is not kept", () => {
    const { cache } = start({ minimumTokens: 100_000 });
    const body = ask([text("question", mark)]);
    count(cache, body);
    expect(count(cache, body)).toMatchObject({ cacheReadTokens: 0, cacheWriteTokens: 0 });
  });

  test("a conversation that grows reads what it wrote a turn before", () => {
    const { cache } = start();
    const first = count(cache, ask([text("one", mark)]));
    const grown = ask([text("one"), text("two"), text("three", mark)]);
    expect(count(cache, grown).cacheReadTokens).toBe(first.cacheReadTokens + first.cacheWriteTokens);
  });

  test.each([
    [19, true],
    [20, false],
  ])("an entry %d blocks before the mark is found: %s", (distance, isFound) => {
    const { cache } = start();
    const first = { ...ask([text("one", mark)]), system: [text(long)] };
    count(cache, first);
    const added = Array.from({ length: distance }, (_, at) => text(`block ${at}`));
    const last = { ...added.at(-1), ...mark };
    const grown = {
      ...first,
      messages: [{ role: "user", content: [text("one"), ...added.slice(0, -1), last] }],
    };
    expect(count(cache, grown).cacheReadTokens > 0).toBe(isFound);
  });

  test.each([
    ["a tool", { tools: [{ name: "Other", input_schema: {} }] }],
    ["the system prompt", { system: [text("other"), text(long, mark)] }],
    ["the model", { model: "other" }],
  ])("another beginning reads nothing: %s", (_, change) => {
    const { cache } = start();
    const body = ask([text("question", mark)]);
    count(cache, body);
    expect(count(cache, { ...body, ...change }).cacheReadTokens).toBe(0);
  });

  test("another tool choice keeps tools and system and loses the messages", () => {
    const { cache } = start();
    const body = ask([text(long), text("question", mark)]);
    const first = count(cache, body);
    const read = count(cache, { ...body, tool_choice: { type: "none" } }).cacheReadTokens;
    expect(read).toBeGreaterThan(1_000);
    expect(read).toBeLessThan(first.cacheWriteTokens);
  });

  test("five minutes after the last use an entry is gone, and each use renews it", () => {
    const { cache, clock } = start();
    const body = ask([text("question", mark)]);
    count(cache, body);
    clock.now += 299_000;
    expect(count(cache, body).cacheReadTokens).toBeGreaterThan(0);
    clock.now += 299_000;
    expect(count(cache, body).cacheReadTokens).toBeGreaterThan(0);
    clock.now += 300_000;
    expect(count(cache, body).cacheReadTokens).toBe(0);
  });

  test("an hour may be asked for", () => {
    const { cache, clock } = start();
    const body = ask([text("question", { cache_control: { type: "ephemeral", ttl: "1h" } })]);
    count(cache, body);
    clock.now += 3_599_000;
    expect(count(cache, body).cacheReadTokens).toBeGreaterThan(0);
  });

  test("a request that runs beside the first finds nothing: entries appear when an answer begins", () => {
    const { cache } = start();
    const body = ask([text("question", mark)]);
    const first = cache.count(body);
    expect(cache.count(body).cacheReadTokens).toBe(0);
    first.keep();
    expect(cache.count(body).cacheReadTokens).toBeGreaterThan(0);
  });
});

function start({ minimumTokens = 1_024 } = {}) {
  const clock = { now: 0 };
  return { clock, cache: createPromptCache({ minimumTokens, now: () => clock.now }) };
}

function count(cache: PromptCache, body: JsonRecord) {
  const { keep, ...counted } = cache.count(body);
  keep();
  return counted;
}

function ask(content: readonly JsonRecord[]): JsonRecord {
  return {
    model: "m",
    tools: [{ name: "Read", input_schema: {} }],
    system: [text(long, mark)],
    messages: [{ role: "user", content }],
  };
}

function text(words: string, more: JsonRecord = {}): JsonRecord {
  return { type: "text", text: words, ...more };
}
