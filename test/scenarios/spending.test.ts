import type { HookInput } from "@retinue/config/hooks/hook-input.ts";
import { startFakeProvider } from "@retinue/testing/fake-provider.ts";
import { createSampleRuntime } from "@retinue/testing/sample-runtime.ts";
import type { Step } from "@retinue/testing/script.ts";
import { expect, onTestFinished, test } from "vitest";
import { createPlace, runInProcess } from "./run-command.ts";

const spawning: Step = {
  calls: [{ name: "Agent", input: { description: "look", prompt: "Look.", subagent_type: "Explore" } }],
};

test("[LIM-4] results have usage and cost by agent and by model, and SubagentStop receives those of its agent", async () => {
  const stops: HookInput<"SubagentStop">[] = [];
  await using sample = await createSampleRuntime(
    [spawning, { calls: [{ name: "Glob", input: { pattern: "*" } }] }, "Looked.", "Done."],
    {
      hooks: {
        SubagentStop: [{ hooks: [async (input) => void stops.push(input as HookInput<"SubagentStop">)] }],
      },
    },
  );
  const result = await sample.runtime.run("Go.").result;
  const [main, child] = result.agents;
  expect([main?.agentId, child?.agentType]).toEqual(["main", "Explore"]);
  for (const { totals, models } of result.agents) {
    const sums = Object.values(models);
    expect(sums.reduce((sum, { usage }) => sum + usage.outputTokens, 0)).toBe(totals.usage.outputTokens);
    expect(sums.reduce((sum, { calls }) => sum + calls, 0)).toBe(totals.turns);
  }
  expect(child?.totals).toMatchObject({ turns: 2, toolUses: 1 });
  expect(stops).toHaveLength(1);
  expect(stops[0]).toMatchObject({
    agent_type: "Explore",
    usage: { output_tokens: child?.totals.usage.outputTokens },
    num_turns: 2,
    tool_uses: 1,
  });
  expect(Object.keys(stops[0]?.model_usage ?? {})).toEqual(Object.keys(child?.models ?? {}));
});

test("[LIM-4, CLI-3] the JSON result has both, and worth shows what each child brought", async () => {
  const provider = await startFakeProvider({ script: [spawning, "Looked around.", "Done."] });
  onTestFinished(() => provider[Symbol.asyncDispose]());
  const place = createPlace();
  const environment = { ANTHROPIC_BASE_URL: provider.url, ANTHROPIC_API_KEY: "x" };
  const retinue = (...words: string[]) => runInProcess(place, words, { environment });
  const printed = await retinue("-p", "Go.", "--output-format", "json");
  const result = JSON.parse(printed.out);
  const [main, child] = result.agent_usage;
  expect(main).toMatchObject({ agent_id: "main", status: "completed", num_turns: 2 });
  expect(child).toMatchObject({
    agent_type: "Explore",
    parent_agent_id: "main",
    status: "completed",
    num_turns: 1,
  });
  const sum = (main.total_cost_usd ?? 0) + (child.total_cost_usd ?? 0);
  expect(sum).toBeCloseTo(result.total_cost_usd, 10);
  expect(Object.keys(child.model_usage)).toHaveLength(1);

  const shown = await retinue("worth");
  expect(shown.code).toBe(0);
  expect(shown.out).toContain("Explore");
  expect(shown.out).toMatch(/[01] of 1 delegations paid/);
  const json = JSON.parse((await retinue("worth", "--json")).out);
  expect(json).toMatchObject({ version: 1, children: [{ agentType: "Explore", state: "completed" }] });
  expect(json.children[0].costShare).toBeGreaterThan(0);
  const missing = await retinue("worth", "nothing-like-it");
  expect(missing.code).toBe(1);
  expect(missing.err).not.toContain(" at ");
});
