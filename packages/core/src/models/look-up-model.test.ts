import { shippedAliases } from "@retinue/config/models/select-subagent-model.ts";
import { describe, expect, test } from "vitest";
import { costOf } from "../conversation/usage.ts";
import { lookUpModel, readModelOverrides, shippedModels } from "./look-up-model.ts";

describe("lookUpModel [MDL-2]", () => {
  test.each([
    ["claude-opus-5", 1_000_000, 128_000, 5],
    ["claude-opus-5-5", 1_000_000, 128_000, 4],
    ["claude-sonnet-4-20250514", 200_000, 64_000, 3],
    ["claude-sonnet-4-0", 200_000, 64_000, 3],
    ["claude-sonnet-4-5-20250929", 200_000, 64_000, 3],
    ["claude-opus-4-5@20251101", 200_000, 64_000, 5],
    ["us.anthropic.claude-sonnet-4-6-v1:0", 1_000_000, 64_000, 3],
    ["claude-sonnet-4-20250514[1m]", 1_000_000, 64_000, 3],
    ["claude-haiku-4-5", 200_000, 64_000, 1],
  ])("%s has a window of %i, answers up to %i, and costs %d", (id, window, answer, input) => {
    const { facts } = lookUpModel(id);
    expect(facts).toMatchObject({
      id,
      provider: "anthropic",
      contextWindow: window,
      maxOutputTokens: answer,
    });
    expect(facts.price?.input).toBe(input);
  });

  test.each([
    "claude-opus-5-9",
    "claude-opus-55",
    "claude-opus-7",
    "my-model",
    "",
    "__proto__",
  ])("%j is unknown: a careful window and no price", (id) => {
    const { facts, traits } = lookUpModel(id);
    expect(facts.contextWindow).toBe(200_000);
    expect(facts.price).toBeUndefined();
    expect(traits).toMatchObject({ thinking: "none", efforts: [] });
  });

  test("our window suffix is not part of the provider's id, and asks for the window only where it is not there anyway", () => {
    expect(lookUpModel("claude-sonnet-4-5[1m]")).toMatchObject({
      wireId: "claude-sonnet-4-5",
      asksForLargeWindow: true,
    });
    expect(lookUpModel("claude-opus-5[1m]")).toMatchObject({
      wireId: "claude-opus-5",
      asksForLargeWindow: false,
    });
  });

  test("every model an alias represents is in the table with a price", () => {
    for (const alias of ["sonnet", "opus", "haiku", "fable"]) {
      expect(lookUpModel(String(shippedAliases.get(alias))).facts.price, alias).toBeDefined();
    }
  });

  test("the table is whole: numbers everywhere, a month for each price, no id twice", () => {
    for (const { prefix, contextWindow, maxOutputTokens, price, priceAsOf } of shippedModels) {
      expect(Number.isInteger(contextWindow) && Number.isInteger(maxOutputTokens), prefix).toBe(true);
      if (price === undefined) continue;
      expect(priceAsOf, prefix).toMatch(/^20\d\d-\d\d/);
      expect(
        Object.values({ ...price, longPrompt: 1 }).every((rate) => rate > 0),
        prefix,
      ).toBe(true);
    }
    expect(new Set(shippedModels.map(({ prefix }) => prefix)).size).toBe(shippedModels.length);
  });

  test("a price that depends on the prompt's length is applied to the whole call", () => {
    const price = lookUpModel("claude-haiku-5-5").facts.price;
    if (price === undefined) throw new Error("no price");
    const usage = { inputTokens: 0, outputTokens: 1_000_000, cacheWriteTokens: 0 };
    expect(costOf({ ...usage, cacheReadTokens: 100_000 }, price)).toBeCloseTo(0.501);
    expect(costOf({ ...usage, cacheReadTokens: 100_001 }, price)).toBeCloseTo(2.505, 5);
  });
});

describe("readModelOverrides", () => {
  test("names, facts and prices from settings are laid over the table", () => {
    const { facts, names } = readModelOverrides({
      modelOverrides: {
        "claude-opus-5": "arn:aws:bedrock:x",
        "my-model": { contextWindow: 32_000, maxOutputTokens: 4000 },
      },
      modelPricing: { "my-model": { input: 1, output: 2 } },
    });
    expect(names.get("claude-opus-5")).toBe("arn:aws:bedrock:x");
    expect(lookUpModel("my-model", facts).facts).toMatchObject({
      contextWindow: 32_000,
      maxOutputTokens: 4000,
      price: { input: 1, output: 2, cacheRead: 0.1, cacheWrite: 1.25 },
    });
  });

  test.each([
    [{ modelOverrides: 7, modelPricing: [] }],
    [
      {
        modelOverrides: { a: { contextWindow: -1 }, b: 5, c: null },
        modelPricing: { d: { input: "1", output: 2 } },
      },
    ],
    [JSON.parse('{"modelOverrides": {"__proto__": {"contextWindow": 1}}}')],
  ])("what is malformed is passed over: %j", (settings) => {
    const { facts, names } = readModelOverrides(settings);
    expect(names.size).toBe(0);
    expect(lookUpModel("claude-opus-5", facts).facts).toEqual(lookUpModel("claude-opus-5").facts);
  });
});
