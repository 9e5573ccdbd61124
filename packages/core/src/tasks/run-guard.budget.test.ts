import { createScriptedModel } from "@retinue/testing/scripted-model.ts";
import { describe, expect, test } from "vitest";
import type { Model, ModelEvent } from "../models/model.ts";
import { withBudget } from "./run-guard.ts";
import { createTreeBudget } from "./tree-budget.ts";

const signal = new AbortController().signal;
const price = { input: 10, output: 50, cacheRead: 1, cacheWrite: 10 };
const request = { system: ["Work."], tools: [], messages: [{ role: "user" as const, content: "Go." }] };
const usage = { inputTokens: 1000, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 };

function treeOf(usd: number) {
  return createTreeBudget({ costUsd: { value: usd, from: "a test" } });
}

async function drain(model: Model): Promise<ModelEvent[]> {
  const events: ModelEvent[] = [];
  for await (const event of model.stream(request, { signal })) events.push(event);
  return events;
}

describe("[LIM-3] a model whose calls are paid", () => {
  test("pays what the answer took, and asks for no longer one than is left", async () => {
    const tree = treeOf(0.2);
    const scripted = createScriptedModel([{ text: "Hi.", usage: { inputTokens: 1000, outputTokens: 100 } }], {
      facts: { price },
    });
    await drain(withBudget(scripted, { budget: tree.agent(undefined) }));
    expect(tree.spent()).toEqual({ usd: 0.015, tokens: 1100 });
    expect(scripted.requests[0]?.maxTokens).toBeLessThan(4000);
  });

  test("is the model itself where nothing is limited", () => {
    const scripted = createScriptedModel([]);
    const budget = createTreeBudget(undefined).agent(undefined);
    expect(withBudget(scripted, { budget })).toBe(scripted);
  });

  test("refuses before the provider is asked", async () => {
    const scripted = createScriptedModel(["Never."], { facts: { price } });
    const model = withBudget(scripted, { budget: treeOf(0.001).agent(undefined) });
    await expect(drain(model)).rejects.toMatchObject({
      code: "max_budget",
      message: expect.stringMatching(
        /0\.001 of 0\.001 US dollars .* left; the next call may cost up to 0\.05/,
      ),
    });
    expect(scripted.requests).toEqual([]);
  });

  test.each([
    ["cut in the middle", { text: "x".repeat(400), failure: "cut" as const, after: 5 }],
    ["that cannot be read", { text: "x".repeat(400), failure: "malformed" as const, after: 5 }],
  ])("pays for an answer %s as far as the provider said what it took", async (_what, step) => {
    const tree = treeOf(1);
    const scripted = createScriptedModel([{ ...step, usage: { inputTokens: 1000 } }], { facts: { price } });
    await expect(drain(withBudget(scripted, { budget: tree.agent(undefined) }))).rejects.toThrow();
    expect(tree.spent().usd).toBeGreaterThan(0.01);
    expect(tree.spent().usd).toBeLessThan(0.02);
  });

  test("pays nothing for a request that was turned away", async () => {
    const tree = treeOf(1);
    const scripted = createScriptedModel([{ failure: "overloaded" }], { facts: { price } });
    await expect(drain(withBudget(scripted, { budget: tree.agent(undefined) }))).rejects.toThrow();
    expect(tree.spent()).toEqual({ usd: 0, tokens: 0 });
  });

  test("does not try again what it cannot pay again", async () => {
    const tree = treeOf(0.6);
    let attempts = 0;
    const patient: Model = {
      facts: { ...createScriptedModel([]).facts, price, maxOutputTokens: 11_500 },
      async *stream() {
        while (true) {
          attempts += 1;
          yield { type: "message-started", id: "m", model: "m", usage };
          yield { type: "text-delta", index: 0, text: "x".repeat(1000) };
          yield {
            type: "attempt-failed",
            attempt: attempts,
            maxAttempts: 99,
            delayMs: 0,
            code: "stream-cut",
            message: "cut",
          };
        }
      },
    };
    await expect(drain(withBudget(patient, { budget: tree.agent(undefined) }))).rejects.toMatchObject({
      code: "max_budget",
    });
    expect(attempts).toBeLessThan(4);
    expect(tree.spent().usd).toBeLessThanOrEqual(0.6);
  });

  test("gives back what it holds when it is stopped, also where the model does not respect it", async () => {
    const tree = treeOf(0.6);
    const facts = { ...createScriptedModel([]).facts, price, maxOutputTokens: 10_000 };
    const deaf: Model = {
      facts,
      async *stream() {
        yield { type: "message-started", id: "m", model: "m", usage };
        await new Promise(() => undefined);
      },
    };
    const stop = new AbortController();
    const stream = withBudget(deaf, { budget: tree.agent(undefined) }).stream(request, stop);
    const events = stream[Symbol.asyncIterator]();
    await events.next();
    void events.next();
    const next = tree
      .agent(undefined)
      .reserve({ model: "m", inputTokens: 100, maxOutput: 10_000, price }, { signal });
    stop.abort(new Error("stopped"));
    expect(await next).toMatchObject({ type: "reserved" });
    expect(tree.spent().usd).toBeCloseTo(0.01);
  });
});
