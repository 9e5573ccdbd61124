// Three children under one budget that is enough for two of them, and what became of them.
import { createRuntime, isRetinueError } from "retinue";
import { createScriptedModel } from "retinue/testing";

// Each answer costs a dollar: 100,000 tokens at 10 dollars the million.
const price = { input: 0, output: 10, cacheRead: 0, cacheWrite: 0 };
const model = createScriptedModel(
  [{ text: "Looked.", usage: { inputTokens: 0, outputTokens: 100_000 }, times: 3 }],
  { facts: { maxOutputTokens: 100_000, price } },
);

await using runtime = createRuntime({ model, maxBudgetUsd: 2 });
const session = await runtime.open();
for (const place of ["src", "docs", "test"]) {
  try {
    const { status, totals } = await session.spawn("Explore", `Look at ${place}.`).result;
    console.log(place, status, totals.costUsd);
  } catch (error) {
    // A child that could not pay its first call is not started; `limits` of `spawn` would narrow a single one.
    console.log(place, isRetinueError(error) ? error.message : error);
  }
}
