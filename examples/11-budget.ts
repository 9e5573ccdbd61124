// Three children under one budget that is enough for two of them, and what became of them, from their files.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createRuntime, isRetinueError } from "retinue";
import { createScriptedModel } from "retinue/testing";

const home = await mkdtemp(join(tmpdir(), "retinue-budget-"));
const cwd = fileURLToPath(new URL("workspace", import.meta.url));

// Each answer costs a dollar: 100,000 tokens at 10 dollars the million.
const model = createScriptedModel(
  [{ text: "Looked.", usage: { inputTokens: 0, outputTokens: 100_000 }, times: 3 }],
  {
    facts: { maxOutputTokens: 100_000, price: { input: 0, output: 10, cacheRead: 0, cacheWrite: 0 } },
  },
);

try {
  const runtime = createRuntime({ cwd, home, model, transcripts: true });
  const session = await runtime.open({ maxBudgetUsd: 2 });
  for (const place of ["src", "docs", "test"]) {
    try {
      const { status, totals } = await session.spawn("Explore", `Look at ${place}.`).result;
      console.log(place, status, totals.costUsd);
    } catch (error) {
      // A child that could not pay its first call is not started; `limits` of `spawn` would narrow a single one.
      if (!isRetinueError(error)) throw error;
      console.log(place, error.message);
    }
  }
  const { agents, totals } = await runtime.inspect(session.plan.sessionId);
  for (const agent of agents) console.log(agent.agentType, agent.state, agent.totals.toolUses, "calls");
  console.log("dollars", totals.costUsd);
  await session.close();
  await runtime.close();
} finally {
  await rm(home, { recursive: true, force: true });
}
