import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import type { LanguageModelV2, LanguageModelV3 } from "@ai-sdk/provider";
import { type FakeProvider, startFakeProvider } from "@retinue/testing/fake-provider.ts";
import { describe, expect, expectTypeOf, test } from "vitest";
import { createModelFromLanguageModel, type LanguageModel } from "../language-model.ts";
import type { Model, ModelEvent, ModelRequest } from "../model.ts";
import { createAiSdkModel } from "./create-ai-sdk-model.ts";

const image = {
  type: "image" as const,
  source: { type: "base64" as const, media_type: "image/png", data: "AAAA" },
};

describe("[MDL-3] a provider's package is loaded only when its model is made", () => {
  test("a package that is not installed is named with the command that installs it", async () => {
    const making = createAiSdkModel({
      provider: "google",
      modelId: "gemini-3-pro",
      environment: { GEMINI_API_KEY: "k" },
    });
    await expect(making).rejects.toMatchObject({
      code: "provider-package-missing",
      message: "The package @ai-sdk/google for google is not installed.",
      advice: "Run: npm install @ai-sdk/google",
    });
  });

  test("a package that is there but broken is not called missing", async () => {
    const load = async () => {
      throw Object.assign(new Error("Cannot find package 'zod'"), { code: "ERR_MODULE_NOT_FOUND" });
    };
    await expect(createAiSdkModel({ ...ollama, load })).rejects.toMatchObject({
      message: expect.stringContaining("cannot be loaded: Cannot find package 'zod'"),
    });
  });

  test("a key that is not set is asked for before anything is loaded", async () => {
    const load = () => Promise.reject(new Error("must not be loaded"));
    const making = createAiSdkModel({ provider: "openai", modelId: "gpt-5", environment: {}, load });
    await expect(making).rejects.toMatchObject({
      code: "provider-not-configured",
      message: "openai/gpt-5 needs OPENAI_API_KEY.",
    });
  });

  test("an unknown provider is refused with the one that was meant", async () => {
    const making = createAiSdkModel({ provider: "olama", modelId: "x", environment: {} });
    await expect(making).rejects.toMatchObject({
      code: "unknown-provider",
      advice: 'Did you mean "ollama"?',
    });
  });

  test.each([
    ["no factory", {}],
    ["no model", { createOpenAICompatible: () => ({}) }],
  ])("a package with %s is called unfit", async (_, exported) => {
    const making = createAiSdkModel({ ...ollama, load: async () => exported });
    await expect(making).rejects.toMatchObject({ code: "provider-package-unfit" });
  });

  test("each generation of the interface fits", () => {
    expectTypeOf<LanguageModelV2>().toExtend<LanguageModel>();
    expectTypeOf<LanguageModelV3>().toExtend<LanguageModel>();
  });
});

describe("[MDL-3] a conversation with another provider, over HTTP", () => {
  test("system, tools, calls, results and images reach the server", async () => {
    await using provider = await startFakeProvider({ respond: () => "Done." });
    const model = await connect(provider);
    await drain(model, {
      system: ["You read.", "Be brief."],
      tools: [{ name: "Read", description: "Reads.", inputSchema: { type: "object", properties: {} } }],
      toolChoice: { tool: "Read" },
      maxTokens: 77,
      messages: [
        { role: "user", content: [{ type: "text", text: "Look." }, image] },
        {
          role: "assistant",
          content: [
            { type: "text", text: "Reading." },
            { type: "tool_use", id: "c1", name: "Read", input: { path: "a.png" } },
            { type: "tool_use", id: "c2", name: "Read", input: { path: "b" } },
          ],
        },
        {
          role: "user",
          content: [
            { type: "tool_result", tool_use_id: "c1", content: [{ type: "text", text: "an image" }, image] },
            { type: "tool_result", tool_use_id: "c2", content: "not there", is_error: true },
            { type: "text", text: "Continue." },
          ],
        },
      ],
    });
    const [{ body, request } = { body: {}, request: undefined }] = provider.requests;
    expect(request?.system).toEqual(["You read.\n\nBe brief."]);
    expect(request?.tools).toEqual([
      { name: "Read", description: "Reads.", inputSchema: { type: "object", properties: {} } },
    ]);
    expect(request?.messages).toEqual([
      { role: "user", content: [{ type: "text", text: "Look." }, image] },
      {
        role: "assistant",
        content: [
          { type: "text", text: "Reading." },
          { type: "tool_use", id: "c1", name: "Read", input: { path: "a.png" } },
          { type: "tool_use", id: "c2", name: "Read", input: { path: "b" } },
        ],
      },
      {
        role: "user",
        content: [
          {
            type: "tool_result",
            tool_use_id: "c1",
            content: "an image\n[The file of this result is in the message that follows.]",
          },
          { type: "tool_result", tool_use_id: "c2", content: "not there" },
          { type: "text", text: "What Read returned for call c1:" },
          image,
          { type: "text", text: "Continue." },
        ],
      },
    ]);
    expect(body).toMatchObject({ max_tokens: 77, tool_choice: { function: { name: "Read" } } });
  });

  test("thinking goes back to the provider that thought it, and not to another", async () => {
    await using provider = await startFakeProvider({ respond: () => ({ thinking: "Hm.", text: "Yes." }) });
    const first = await drain(await connect(provider), ask("Is it?"));
    const messages = [...ask("").messages, first.message, { role: "user" as const, content: "Sure?" }];
    await drain(await connect(provider), { ...ask(""), messages });
    const other = await createAiSdkModel({
      provider: "openai-compatible",
      modelId: "m",
      environment: { OPENAI_BASE_URL: `${provider.url}/v1` },
    });
    await drain(other, { ...ask(""), messages });
    const kinds = provider.requests.slice(1).map(({ request }) => {
      const content = request.messages.find(({ role }) => role === "assistant")?.content;
      return typeof content === "object" ? content.map(({ type }) => type) : [];
    });
    expect(kinds).toEqual([["thinking", "text"], ["text"]]);
  });

  test("a language model that a program made itself serves as well", async () => {
    await using provider = await startFakeProvider({ respond: () => "Yes." });
    const made = createOpenAICompatible({ name: "own", baseURL: `${provider.url}/v1` });
    const model = createModelFromLanguageModel(made("m"), { facts: { contextWindow: 4_096 } });
    expect(model.facts).toMatchObject({ id: "m", provider: "own", contextWindow: 4_096 });
    const { message, usage } = await drain(model, ask("Is it?"));
    expect(message.content).toEqual([{ type: "text", text: "Yes." }]);
    expect(usage.outputTokens).toBeGreaterThan(0);
  });

  test("cached tokens are counted apart", async () => {
    const usage = { inputTokens: 100, cacheReadTokens: 900, cacheWriteTokens: 0, outputTokens: 5 };
    await using provider = await startFakeProvider({ respond: () => ({ text: "x", usage }) });
    expect((await drain(await connect(provider), ask("a"))).usage).toEqual(usage);
  });

  test("local servers are not reported how hard to think, others are", async () => {
    await using provider = await startFakeProvider({ respond: () => "x" });
    const environment = { OPENAI_BASE_URL: `${provider.url}/v1` };
    await drain(await connect(provider), { ...ask("a"), effort: "max" });
    const other = await createAiSdkModel({ provider: "openai", modelId: "m", environment });
    await drain(other, { ...ask("a"), effort: "max" });
    expect(provider.requests.map(({ body }) => body["reasoning_effort"])).toEqual([undefined, "high"]);
  });

  test("a server that is not there is a connection that failed, with advice", async () => {
    const provider = await startFakeProvider({ respond: () => "x" });
    const model = await connect(provider);
    await provider[Symbol.asyncDispose]();
    await expect(drain(model, ask("a"))).rejects.toMatchObject({
      code: "connection-failed",
      advice: expect.stringContaining("start the server"),
      mayPass: true,
    });
  });
});

const ollama = { provider: "ollama", modelId: "m", environment: {} };

function connect(provider: FakeProvider): Promise<Model> {
  return createAiSdkModel({ ...ollama, environment: { OLLAMA_BASE_URL: `${provider.url}/v1` } });
}

function ask(text: string): ModelRequest {
  return { system: [], tools: [], messages: [{ role: "user", content: text === "" ? "Is it?" : text }] };
}

async function drain(
  model: Model,
  request: ModelRequest,
): Promise<Extract<ModelEvent, { type: "message-ended" }>> {
  for await (const event of model.stream(request, { signal: new AbortController().signal })) {
    if (event.type === "message-ended") return event;
  }
  throw new Error("The stream ended without its message.");
}
