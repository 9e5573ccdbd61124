import { join } from "node:path";
import { createRuntime, type Runtime } from "@retinue/core/kernel/create-runtime.ts";
import { type FakeProvider, startFakeProvider } from "@retinue/testing/fake-provider.ts";
import { createWorkspace } from "@retinue/testing/sample-runtime.ts";
import type { ScriptedStep } from "@retinue/testing/script.ts";
import { describe, expect, onTestFinished, test } from "vitest";

const wires = {
  anthropic: { model: "claude-sonnet-5", path: "/v1/messages" },
  openai: { model: "openai-compatible/house-model", path: "/v1/chat/completions" },
};
const usage = { inputTokens: 1000, outputTokens: 100, cacheReadTokens: 0, cacheWriteTokens: 0 };

async function createStage(script: readonly ScriptedStep[]): Promise<{
  readonly runtime: Runtime;
  readonly provider: FakeProvider;
}> {
  const workspace = await createWorkspace();
  await workspace.write("notes.txt", "The word is heron.\n");
  const provider = await startFakeProvider({ script });
  const runtime = createRuntime({
    cwd: workspace.project,
    home: join(workspace.root, "home"),
    settingSources: ["user", "project", "local"],
    transcripts: true,
    managedDirectory: join(workspace.root, "managed"),
    env: {
      PATH: process.env["PATH"],
      ANTHROPIC_API_KEY: "key",
      ANTHROPIC_BASE_URL: provider.url,
      OPENAI_BASE_URL: `${provider.url}/v1`,
    },
    settings: JSON.stringify({
      modelOverrides: {
        "claude-sonnet-5": { price: { input: 2, output: 10 } },
        "openai-compatible/house-model": { price: { input: 1, output: 5 } },
      },
    }),
  });
  onTestFinished(async () => {
    await runtime[Symbol.asyncDispose]();
    await provider[Symbol.asyncDispose]();
    await workspace[Symbol.asyncDispose]();
  });
  return { runtime, provider };
}

describe("[MDL-3] two providers in one tree", () => {
  test.each([
    { above: wires.anthropic, below: wires.openai, costs: { above: 0.009, below: 0.003 } },
    { above: wires.openai, below: wires.anthropic, costs: { above: 0.0045, below: 0.006 } },
  ])("a main agent on $above.model with a child on $below.model, both with tools", async (pair) => {
    const { above, below, costs } = pair;
    const readNotes = { name: "Read", input: { file_path: "notes.txt" } };
    const send = { description: "Find the word", prompt: "Find the word.", subagent_type: "finder" };
    const { runtime, provider } = await createStage([
      { calls: [readNotes], usage },
      { calls: [{ name: "Agent", input: send }], usage },
      { calls: [readNotes], usage },
      { text: "It is heron.", usage },
      { text: "The child says heron.", usage },
    ]);
    runtime.register({
      name: "finder",
      description: "Finds.",
      prompt: "You find words.",
      model: below.model,
    });
    const result = await runtime.run("Which word?", { model: above.model }).result;

    expect(result).toMatchObject({ status: "completed", text: "The child says heron." });
    const order = [above, above, below, below, above];
    expect(provider.requests.map(({ path }) => path)).toEqual(order.map(({ path }) => path));
    expect(provider.requests.map(({ body }) => body["model"])).toEqual(
      order.map(({ model }) => model.replace(/^.*\//, "")),
    );
    const last = (index: number): string => JSON.stringify(provider.requests[index]?.request.messages.at(-1));
    expect(last(1)).toContain("The word is heron.");
    expect(last(3)).toContain("The word is heron.");
    expect(last(4)).toContain("It is heron.");

    const [own] = result.agents;
    expect(own).toMatchObject({
      agentId: "main",
      totals: { turns: 3, toolUses: 2, usage: { inputTokens: 3000, outputTokens: 300 } },
    });
    expect(own?.totals.costUsd).toBeCloseTo(costs.above, 10);
    expect(result.totals.usage).toMatchObject({ inputTokens: 5000, outputTokens: 500 });
    expect(result.totals.costUsd).toBeCloseTo(costs.above + costs.below, 10);
    provider.finish();
  });
});
