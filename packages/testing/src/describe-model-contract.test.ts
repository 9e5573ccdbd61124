import { createAiSdkModel } from "@retinue/core/models/ai-sdk/create-ai-sdk-model.ts";
import { createAnthropicModel } from "@retinue/core/models/anthropic/create-anthropic-model.ts";
import type { Model } from "@retinue/core/models/model.ts";
import { describe, expect, test } from "vitest";
import { type CreateSubject, describeModelContract } from "./describe-model-contract.ts";
import { startFakeProvider } from "./fake-provider.ts";
import { createScriptedModel } from "./scripted-model.ts";

const runner = { describe, test, expect };

describeModelContract(
  "[MDL-5] the scripted model",
  async (steps) => ({ model: createScriptedModel(steps), dispose: async () => undefined }),
  runner,
  { exceptErrors: ["stall"] },
);

describeModelContract(
  "[MDL-3] an AI SDK provider over HTTP",
  overHttp((url, limitMs) =>
    createAiSdkModel({
      provider: "openai-compatible",
      modelId: "scripted",
      environment: { OPENAI_BASE_URL: `${url}/v1`, OPENAI_API_KEY: "key" },
      timeouts: { firstTokenMs: limitMs, betweenTokensMs: limitMs },
    }),
  ),
  runner,
);

describeModelContract(
  "[MDL-3] the Anthropic provider over HTTP",
  overHttp(async (url, limitMs) =>
    createAnthropicModel({
      id: "claude-sonnet-5",
      apiKey: "key",
      baseUrl: url,
      timeouts: { firstTokenMs: limitMs, betweenTokensMs: limitMs },
    }),
  ),
  runner,
);

function overHttp(createModel: (url: string, limitMs: number) => Promise<Model>): CreateSubject {
  return async (steps, { stallMs }) => {
    const provider = await startFakeProvider({ script: steps });
    return {
      model: await createModel(provider.url, stallMs),
      openRequests: () => provider.requests.filter(({ status }) => status === "open").length,
      dispose: async () => provider[Symbol.asyncDispose](),
    };
  };
}
