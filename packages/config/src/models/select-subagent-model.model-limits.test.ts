import { expect, test } from "vitest";
import { refuseModel, shippedAliases } from "./select-subagent-model.ts";

const opus = { id: String(shippedAliases.get("opus")) };

test.each([
  [opus, {}, undefined],
  [opus, { denied: ["opus"] }, /deniedModels/],
  [opus, { denied: ["claude-opus-*"] }, /deniedModels/],
  [opus, { denied: ["haiku"] }, undefined],
  [opus, { available: ["opus", "haiku"] }, undefined],
  [opus, { available: ["sonnet"] }, /availableModels/],
  [opus, { available: [] }, /availableModels/],
  [opus, { available: ["opus"], denied: ["opus"] }, /deniedModels/],
  [{ id: "gpt-x", provider: "openai" }, { denied: ["openai/*"] }, /deniedModels/],
  [{ id: "gpt-x", provider: "openai" }, { available: ["openai/gpt-x"] }, undefined],
])("%j under %j: %s", (model, limits, expected) => {
  const refusal = refuseModel(model, limits, shippedAliases);
  if (expected === undefined) expect(refusal).toBeUndefined();
  else expect(refusal).toMatch(expected);
});
