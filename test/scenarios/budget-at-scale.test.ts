import { join } from "node:path";
import {
  estimateRequestTokens,
  estimateTextTokens,
} from "@retinue/core/conversation/estimate-request-tokens.ts";
import { costOf, noUsage, type Usage } from "@retinue/core/conversation/usage.ts";
import { findInspected } from "@retinue/core/inspection/find-named-inspected.ts";
import { createInspectionSource } from "@retinue/core/inspection/inspection-source.ts";
import { lookUpModel } from "@retinue/core/models/look-up-model.ts";
import { startFakeProvider } from "@retinue/testing/fake-provider.ts";
import type { StepFunction } from "@retinue/testing/script.ts";
import { describe, expect, onTestFinished, test } from "vitest";
import { claude, createErrorStage, foreign, noteCall, promptOf, taskOf } from "./errors-stage.ts";
import type { Place } from "./run-command.ts";

const words = "An answer that is long enough to come in many pieces, one after the other. ".repeat(4);
const deltaSize = 24;

async function startProvider(respond: StepFunction) {
  const provider = await startFakeProvider({ respond, deltaSize });
  onTestFinished(() => provider[Symbol.asyncDispose]());
  return provider;
}

/** Deterministic numbers that look like chance. */
function createChance(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state / 2_147_483_648;
  };
}

function priceOf(usage: Usage): number {
  const { price } = lookUpModel(claude).facts;
  if (price === undefined) throw new Error("the price is needed for this test");
  return costOf(usage, price);
}

/** A provider that writes every bill itself, whether or not its answer arrives. */
function createBiller(chance: () => number, breaksOff: number) {
  let billed = 0;
  let open = 0;
  let maxAtRisk = 0;
  let maxOpen = 0;
  let atRisk = 0;
  const respond: StepFunction = async (request) => {
    const { maxTokens = 64_000 } = request;
    // Each conversation is counted by the same measure, as by a real tokenizer.
    const measure = 0.7 + ((Number(taskOf(request)) * 7) % 10) / 20;
    const tokens = Math.ceil(estimateRequestTokens(request) * measure);
    const read = chance() < 0.5 ? { inputTokens: tokens } : { inputTokens: 0, cacheWriteTokens: tokens };
    const worst = priceOf({ ...noUsage, cacheWriteTokens: tokens, outputTokens: maxTokens });
    atRisk += worst;
    open += 1;
    maxOpen = Math.max(maxOpen, open);
    maxAtRisk = Math.max(maxAtRisk, billed + atRisk);
    for (let turns = Math.floor(chance() * 20); turns > 0; turns -= 1) await new Promise(setImmediate);
    const outputTokens = Math.min(maxTokens, Math.ceil(chance() ** 4 * 20_000));
    const after = chance() < breaksOff ? Math.floor(chance() * 8) : undefined;
    const sent = after === undefined ? outputTokens : estimateTextTokens(words.slice(0, after * deltaSize));
    const usage = { ...noUsage, ...read, outputTokens };
    billed += priceOf({ ...usage, outputTokens: sent });
    atRisk -= worst;
    open -= 1;
    const isCut = outputTokens === maxTokens;
    return {
      text: words,
      ...(after === undefined ? {} : { failure: "cut", after }),
      ...(chance() < 0.7 && !isCut ? { calls: [noteCall(request)] } : {}),
      ...(isCut ? { stopReason: "max_tokens" } : {}),
      usage,
    };
  };
  return { respond, bill: () => ({ billed, maxAtRisk, maxOpen }) };
}

describe("[LIM-3] fifty children at the same time under one ceiling of money", () => {
  const ceiling = 0.5;
  const refusal = /Budget limit reached: (\d+\.\d+) of 0\.50 US dollars of the whole tree left/;

  test.each([
    ["whatever their answers cost", 1, 0],
    ["whatever their answers cost", 2, 0],
    ["also where answers break off and are asked for again", 3, 0.2],
    ["also where answers break off and are asked for again", 4, 0.2],
  ])("never exceed it at any moment, %s (%i)", async (_how, seed, breaksOff) => {
    const { respond, bill } = createBiller(createChance(seed), breaksOff);
    const { url } = await startProvider(respond);
    const { runtime } = createErrorStage({ url, limits: { tree: { usd: ceiling } }, retries: 3 });
    await using session = await runtime.open();
    const handles = Array.from({ length: 50 }, (_, index) =>
      session.spawn("general-purpose", promptOf(String(index))),
    );
    const results = await Promise.allSettled(handles.map(({ result }) => result));
    const { billed, maxAtRisk, maxOpen } = bill();
    expect(maxAtRisk).toBeLessThanOrEqual(ceiling);
    // How many meet depends on scheduling; that any do shows that they are not made one after the other.
    expect(maxOpen).toBeGreaterThan(1);
    expect(billed).toBeGreaterThan(ceiling / 2);

    const refused = results.flatMap((result) => {
      if (result.status === "rejected") return [String(result.reason)];
      return result.value.reason === "max_budget" ? [result.value.error ?? ""] : [];
    });
    expect(refused.length).toBeGreaterThan(0);
    for (const text of refused) expect(text).toMatch(refusal);

    const costs = results.map((result) =>
      result.status === "fulfilled" ? (result.value.totals.costUsd ?? 0) : 0,
    );
    const counted = costs.reduce((sum, cost) => sum + cost, 0);
    const last = session.spawn("general-purpose", "One more.".repeat(40_000)).result;
    const left = await last.then(String, (error: unknown) => Number(refusal.exec(String(error))?.[1]));
    if (breaksOff === 0) {
      expect(counted).toBeCloseTo(billed, 9);
      expect(left).toBe(Math.floor((ceiling - billed) * 10_000) / 10_000);
    } else {
      // What was written of an answer that broke off is estimated, piece by piece, and rather too high than too low.
      expect(counted).toBeGreaterThanOrEqual(billed - 1e-9);
      expect(counted).toBeLessThan(billed * 1.05);
      expect(left).toBeLessThanOrEqual(ceiling - billed);
    }
  });

  test("of tokens, where the provider shows what an answer took only with its end", async () => {
    let isFirst = true;
    const { url } = await startProvider(() => {
      const breaks = isFirst;
      isFirst = false;
      return { text: words, usage: { inputTokens: 12_000 }, ...(breaks ? { failure: "cut", after: 3 } : {}) };
    });
    const limits = { tree: { tokens: 45_000 } };
    const { runtime } = createErrorStage({ url, model: foreign, limits });
    const ending = await runtime.spawn("general-purpose", promptOf("x")).result;
    expect(ending).toMatchObject({ status: "completed" });
    expect(ending.totals.usage.inputTokens).toBeGreaterThan(12_000 + 1000);
  });
});

describe("[LIM-4] an answer that broke off", () => {
  const usage = { inputTokens: 1000, outputTokens: 500, cacheReadTokens: 0, cacheWriteTokens: 0 };

  test.each([
    ["and was asked for again", [{ failure: "cut", after: 3 }], "completed"],
    [
      "until the attempts were used up",
      [
        { failure: "malformed", after: 3 },
        { failure: "malformed", after: 3 },
      ],
      "failed",
    ],
  ] as const)("%s counts in totals, transcripts and inspections alike", async (_how, errors, status) => {
    let asked = 0;
    const { url } = await startProvider(() => ({ text: words, usage, ...errors[asked++] }));
    const { runtime, place } = createErrorStage({ url, limits: { tree: { usd: 5 } }, retries: 1 });
    await using session = await runtime.open();
    const handle = session.spawn("general-purpose", promptOf("x"));
    const child = await handle.result;
    expect(child.status).toBe(status);
    const { inputTokens, outputTokens } = child.totals.usage;
    expect(inputTokens).toBe(2000);
    expect(outputTokens).toBeGreaterThan((2 - errors.length) * 500);
    expect(child.totals.costUsd).toBeCloseTo((inputTokens + outputTokens * 5) / 1e6, 9);
    expect(handle.state()).toMatchObject({ usage: child.totals.usage, costUsd: child.totals.costUsd });
    asked = 0;
    const main = await session.prompt("Go.").result;
    expect(main.totals).toMatchObject({ usage: child.totals.usage, costUsd: child.totals.costUsd });
    await session[Symbol.asyncDispose]();
    const inspection = await inspectLatest(place);
    expect(inspection.agents.map(({ totals }) => [totals.usage, totals.costUsd])).toEqual([
      [main.totals.usage, main.totals.costUsd],
      [main.totals.usage, main.totals.costUsd],
    ]);
    expect(inspection.byModel).toMatchObject([
      { turns: status === "completed" ? 2 : 0, costUsd: inspection.totals.costUsd },
    ]);
    expect(inspection.notes).toEqual([]);
  });
});

async function inspectLatest({ cwd, home }: Place) {
  const transcripts = join(home, ".claude/projects", cwd.replace(/[^A-Za-z0-9]/g, "-"));
  const search = await findInspected(transcripts);
  if (search.type !== "found") throw new Error("no session was written");
  return createInspectionSource({ transcripts, ...search.inspected, now: () => Date.now() }).load();
}
