// A test of one's own agent: the model is a script, so the test is about the program and not about the model.
import assert from "node:assert/strict";
import test from "node:test";
import { createRuntime, defineTool } from "retinue";
import { createScriptedModel } from "retinue/testing";
import { z } from "zod";

const refunds: number[] = [];
const refund = defineTool({
  name: "refund",
  description: "Gives money back.",
  input: z.object({ amount: z.number().positive() }),
  call: ({ amount }) => `Refund ${refunds.push(amount)} is on its way.`,
});

await test("the shop gives back at most 100", async () => {
  const model = createScriptedModel([
    { calls: [{ name: "refund", input: { amount: 500 } }] },
    { match: "at most 100", text: "I cannot do that." },
  ]);
  await using runtime = createRuntime({
    model,
    tools: [refund],
    canUseTool: async (_tool, { amount }) =>
      Number(amount) > 100 ? { behavior: "deny", message: "at most 100" } : { behavior: "allow" },
  });
  assert.equal(await runtime.run("I want 500 back.").text, "I cannot do that.");
  assert.deepEqual(refunds, []);
  model.finish();
});
console.log("tested");
